//! Compiles the register of controllers (`src/c/register.c`) into one static library. Needs a C compiler.

use std::env;
use std::path::PathBuf;

fn main() {
    let headers = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("src/c");
    cc::Build::new()
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
    println!("cargo::metadata=include={}", headers.display());
}
