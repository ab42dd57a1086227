//! What stands for a `bpf/NAME.bpf.c` where the header is one of `PATHCAST_CONTROLLERS`.

use std::path::Path;

/// The program of a header, which says itself what the shim has to know of it: see flow.h.
pub fn program(name: &str, header: &Path) -> String {
    let mut text = format!("#include \"{}\"\n#define CC {name}\n", header.display());
    for (told, of_shim) in [("UNCOUPLED", "CC_UNCOUPLED"), ("DELAY", "CC_DELAY")] {
        text += &format!("#ifdef {name}_{told}\n#define {of_shim}\n#endif\n");
    }
    text + &format!("#ifdef {name}_PHASE\n#define CC_PHASE {name}_PHASE\n#endif\n#include \"shim.bpf.h\"\n")
}
