//! Compiles the register of controllers (`src/c/register.c`) into one static library. Needs a C compiler.
//!
//! `PATHCAST_CONTROLLERS`, a list of headers with `:` between them, adds controllers of one's own to it; each is named as its
//! header is (examples/own_controller).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn main() {
    let headers = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("src/c");
    let mut build = cc::Build::new();
    let own = env::var_os("PATHCAST_CONTROLLERS").unwrap_or_default();
    let own: Vec<PathBuf> = env::split_paths(&own).filter(|path| !path.as_os_str().is_empty()).collect();
    if !own.is_empty() {
        let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
        fs::write(out.join("flow_own.h"), include(&own)).expect("cargo's directory can be written");
        build.include(out).define("FLOW_OWN", None);
    }
    build
        .file(headers.join("register.c"))
        .include(&headers)
        .std("c11")
        .opt_level(2) // the headers are one inlined piece each: unoptimised, a simulation is several times slower
        .flag("-Wall")
        .flag("-Wextra")
        .flag("-Wconversion")
        .warnings_into_errors(false)
        .compile("pathcast_congestion");
    println!("cargo::rerun-if-changed=src/c");
    println!("cargo::rerun-if-env-changed=PATHCAST_CONTROLLERS");
    own.iter().for_each(|path| println!("cargo::rerun-if-changed={}", path.display()));
    println!("cargo::metadata=include={}", headers.display());
}

/// What `register.c` includes for them.
fn include(own: &[PathBuf]) -> String {
    let name = |path: &Path| path.file_stem().expect("a file").to_string_lossy().into_owned();
    let mut text = String::new();
    let mut rows = String::from("#define FLOW_OWN_ROWS");
    for path in own {
        let path =
            fs::canonicalize(path).unwrap_or_else(|error| panic!("PATHCAST_CONTROLLERS: {}: {error}", path.display()));
        text += &format!("#include \"{}\"\n#define CC {}\n#include \"flow_export.h\"\n", path.display(), name(&path));
        rows += &format!(" &flow_export_{},", name(&path));
    }
    text + &rows + "\n"
}
