//! Compiles the eBPF program with clang. Without clang the crate still builds: the program is absent then, and a run
//! that needs it says what is missing.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let out = PathBuf::from(set("OUT_DIR"));
    let source = PathBuf::from(set("CARGO_MANIFEST_DIR")).join("bpf");
    println!("cargo::rerun-if-changed={}", source.display());
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let object = out.join("launch.bpf.o");
    let text = if compile(&clang, &source.join("launch.bpf.c"), &object) {
        format!("Some(&Aligned(*include_bytes!({object:?})))")
    } else {
        // this file never exists, so that the next build looks for clang again
        println!("cargo::rerun-if-changed={}", out.join("no-clang").display());
        println!("cargo::warning=`{clang}` is missing: built without eBPF programs (Debian package clang)");
        "None".into()
    };
    fs::write(out.join("launch.in"), text).expect("OUT_DIR is ours");
}

/// Whether there is a clang; ends the build if it refuses the program.
fn compile(clang: &str, source: &Path, object: &Path) -> bool {
    let target = if set("CARGO_CFG_TARGET_ENDIAN") == "big" { "bpfeb" } else { "bpfel" };
    let result = Command::new(clang)
        .args(["-target", target, "-mcpu=v3", "-O2", "-g"]) // -g makes the type information that loading needs
        .args(["-Wall", "-Wextra", "-Werror", "-isystem", &set("DEP_BPF_INCLUDE")])
        .args(["-fno-ident", "-fdebug-compilation-dir=."]) // the same bytes wherever the checkout lies
        .arg("-c")
        .arg(source)
        .arg("-o")
        .arg(object)
        .output();
    match result {
        Ok(o) if o.status.success() => true,
        Ok(o) => panic!("{clang} refuses {}:\n{}", source.display(), String::from_utf8_lossy(&o.stderr)),
        Err(e) if e.kind() == ErrorKind::NotFound => false,
        Err(e) => panic!("{clang}: {e}"),
    }
}

fn set(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
