//! Compiles the register of controllers (`src/c/register.c`) into one static library. Needs a C compiler.
//!
//! `PATHCAST_CONTROLLERS`, a list of headers with `:` between them, adds controllers of one's own to it; each is named as its
//! header is (examples/own_controller).

mod own;

use std::env;
use std::fs;
use std::path::PathBuf;

use own::Own;

fn main() {
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let headers = package.join("src/c");
    println!("cargo::rerun-if-changed=own.rs");
    println!("cargo::rerun-if-changed=src/c");
    println!("cargo::rerun-if-env-changed=PATHCAST_CONTROLLERS");
    let mut build = cc::Build::new();
    let list = env::var_os("PATHCAST_CONTROLLERS").unwrap_or_default();
    let root = package.ancestors().nth(2).expect("crates/congestion of the workspace");
    let own = match own::read(&list, root, &headers, || cc::Build::new().get_compiler().to_command()) {
        Ok(own) => own,
        Err(told) => return println!("cargo::error={told}"),
    };
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
    for path in own.iter().flat_map(|own| own::beside(&own.header)) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    println!("cargo::metadata=include={}", headers.display());
    // for the kernel: nothing in a path of `PATHCAST_CONTROLLERS` is a `:`
    let list = env::join_paths(own.iter().map(|own| &own.header)).expect("they come from such a list");
    println!("cargo::metadata=own={}", list.display());
}

/// What `register.c` includes for them.
fn include(own: &[Own]) -> String {
    let mut text = String::new();
    let mut rows = String::from("#define FLOW_OWN_ROWS");
    for Own { name, header } in own {
        text += &format!("#include \"{}\"\n#define CC {name}\n#include \"flow_export.h\"\n", header.display());
        rows += &format!(" &flow_export_{name},");
    }
    text + &rows + "\n"
}
