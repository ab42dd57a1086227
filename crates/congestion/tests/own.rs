//! What is said of a header of one's own that is none: one line, which names it and what it lacks.

#[path = "../own.rs"]
mod own;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use own::Own;

const HEADER: &str = r#"
#include "flow.h"
#define my_hooks (FLOW_GROW | FLOW_SSTHRESH)
#define my_KERNEL "pc_my"
#define my_PAPER "none"
#define my_BASIS "ours"
#define my_PARAMS(P) P(keep, 50, 1, 99, "hundredths", "ours")
struct my_params { my_PARAMS(FLOW_PARAM_FIELD) };
struct my_state
{ u32 unused; };
FLOW_FN void my_grow (struct flow *f, const struct flow_ack *a, struct my_state *s, const struct my_params *p)
{ flow_reno_grow(f, a); }
FLOW_FN u32 my_ssthresh(struct flow *f, struct my_state *s, const struct my_params *p) { return flow_half(f); }
"#;

fn read(list: impl AsRef<OsStr>, root: &Path) -> Result<Vec<Own>, String> {
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/c");
    own::read(list.as_ref(), root, &headers, || Command::new("cc"))
}

/// A header `name` in a test's folder.
fn write(test: &str, name: &str, text: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own").join(test);
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    fs::canonicalize(path).unwrap()
}

#[test]
fn a_whole_header_is_taken_also_by_a_relative_path() {
    let header = write("whole", "my.h", HEADER);
    let own = || Own { name: "my".into(), header: header.clone() };
    let root = header.parent().unwrap();
    assert_eq!(read("", root).unwrap(), []);
    assert_eq!(read(&header, Path::new("/")).unwrap(), [own()]);
    assert_eq!(read("my.h:", root).unwrap(), [own()]);
    assert!(own::beside(&header).contains(&header));
}

#[test]
fn each_part_that_it_lacks_is_named() {
    for (line, lacks) in [
        ("#define my_hooks", "my_hooks"),
        ("#define my_KERNEL", "my_KERNEL"),
        ("#define my_PAPER", "my_PAPER"),
        ("#define my_BASIS", "my_BASIS"),
        ("#define my_PARAMS", "my_PARAMS"),
        ("struct my_params {", "struct my_params"),
        ("struct my_state", "struct my_state"),
        ("FLOW_FN void my_grow", "the function my_grow, of which my_hooks speaks"),
    ] {
        let text: String = HEADER.lines().filter(|l| !l.starts_with(line)).map(|l| format!("{l}\n")).collect();
        let header = write("parts", "my.h", &text);
        let told = read(&header, Path::new("/")).unwrap_err();
        let start = format!("PATHCAST_CONTROLLERS: {}: it lacks {lacks}; a header NAME.h defines", header.display());
        assert!(told.starts_with(&start) && told.contains("NAME_PARAMS(P)") && !told.contains('\n'), "{told}");
    }
}

#[test]
fn what_is_no_header_of_a_controller_is_refused() {
    let absent = read("/nowhere/my.h", Path::new("/")).unwrap_err();
    assert_eq!(absent, "PATHCAST_CONTROLLERS: /nowhere/my.h: there is no such file");
    for (name, text, words) in [
        ("my-own.h", HEADER, "letters, digits and _"),
        ("reno.h", HEADER, "`reno` is the name of a header of pathcast's own"),
        ("long.h", &HEADER.replace("pc_my", "pc_much_too_long").replace("my_", "long_"), "long_KERNEL is no name"),
        ("without.h", "#include \"absent.h\"\n", "absent.h: No such file"),
    ] {
        let told = read(write("none", name, text), Path::new("/")).unwrap_err();
        assert!(told.contains(name) && told.contains(words) && !told.contains('\n'), "{told}");
    }
    let folder = write("none", "my2.h", "").parent().unwrap().to_owned();
    assert!(read(&folder, Path::new("/")).unwrap_err().contains("not a file"));
    let twice = write("none", "twice.h", &HEADER.replace("my", "twice"));
    let list = format!("{0}:{0}", twice.display());
    assert!(read(list, Path::new("/")).unwrap_err().contains("two controllers `twice`"));
}
