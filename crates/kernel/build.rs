//! Compiles the eBPF programs with clang, those of `PATHCAST_CONTROLLERS` too. Without clang the crate still builds: its
//! objects are absent then, and loading says what is missing.

mod own;

use std::env;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

fn main() {
    let out = PathBuf::from(set("OUT_DIR"));
    let source = PathBuf::from(set("CARGO_MANIFEST_DIR")).join("bpf");
    let headers = set("DEP_PATHCAST_CONGESTION_INCLUDE");
    for watched in [source.display().to_string(), headers.clone(), "own.rs".into()] {
        println!("cargo::rerun-if-changed={watched}");
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".into());
    let flags = flags(&headers, &source);
    // the tests build recording ones themselves
    println!("cargo::rustc-env=PATHCAST_CLANG={clang}");
    println!("cargo::rustc-env=PATHCAST_CLANG_FLAGS={}", flags.join("\t"));

    let mut programs: Vec<PathBuf> = fs::read_dir(&source)
        .expect("bpf/ is here")
        .map(|entry| entry.expect("bpf/ can be read").path())
        .filter(|path| path.to_str().is_some_and(|path| path.ends_with(".bpf.c")))
        .collect();
    programs.sort();
    for header in env::split_paths(&set("DEP_PATHCAST_CONGESTION_OWN")).filter(|path| !path.as_os_str().is_empty()) {
        let name = header.file_stem().expect("the header of a controller").display().to_string();
        let program = out.join(format!("{name}.bpf.c"));
        fs::write(&program, own::program(&name, &header)).expect("OUT_DIR is ours");
        programs.push(program);
    }
    let build = |program: &PathBuf| {
        let object = object(&out, name(program));
        let compiled = compile(&clang, &flags, program, &object);
        if compiled {
            strip(&object);
        }
        compiled
    };
    let (first, second) = programs.split_at(programs.len() / 2);
    let built = thread::scope(|scope| {
        let other = scope.spawn(|| first.iter().all(build));
        second.iter().all(build) & other.join().expect("a refused program ends the build")
    });
    let mut text = String::from("&[\n");
    for name in programs.iter().map(|program| name(program)) {
        let object = match built {
            true => format!("Some(&Aligned(*include_bytes!({:?})))", object(&out, name)),
            false => "None".into(),
        };
        writeln!(text, "    ({name:?}, {object}),").expect("a String");
    }
    if !built {
        // this file never exists, so that the next build looks for clang again
        println!("cargo::rerun-if-changed={}", out.join("no-clang").display());
        println!("cargo::warning=`{clang}` is missing: built without eBPF programs (Debian package clang)");
    }
    fs::write(out.join("objects.in"), text + "]\n").expect("OUT_DIR is ours");
}

/// The controller of a NAME.bpf.c.
fn name(program: &Path) -> &str {
    program.file_name().and_then(|name| name.to_str()?.strip_suffix(".bpf.c")).expect("a NAME.bpf.c")
}

fn object(out: &Path, name: &str) -> PathBuf {
    out.join(format!("{name}.bpf.o"))
}

fn flags(headers: &str, source: &Path) -> Vec<String> {
    let target = match set("CARGO_CFG_TARGET_ENDIAN").as_str() {
        "big" => "bpfeb",
        _ => "bpfel",
    };
    let fixed = ["-target", target, "-mcpu=v3", "-O2", "-g"] // -g makes the type information that loading needs
        .into_iter()
        .chain(["-Wall", "-Wextra", "-Werror", "-Wno-missing-braces", "-Wno-unused-parameter"])
        .chain(["-fno-ident", "-fdebug-compilation-dir=."]) // the same bytes wherever the checkout lies
        .map(str::to_owned);
    let include = set("DEP_BPF_INCLUDE");
    let source = source.to_str().expect("cargo refuses other paths");
    fixed.chain(["-I", headers, "-I", source, "-isystem", &include].map(str::to_owned)).collect()
}

/// Whether there is a clang; ends the build if it refuses the program.
fn compile(clang: &str, flags: &[String], source: &Path, object: &Path) -> bool {
    let result = Command::new(clang).args(flags).arg("-c").arg(source).arg("-o").arg(object).output();
    match result {
        Ok(o) if o.status.success() => true,
        Ok(o) => panic!("{clang} refuses {}:\n{}", source.display(), String::from_utf8_lossy(&o.stderr)),
        Err(e) if e.kind() == ErrorKind::NotFound => false,
        Err(e) => panic!("{clang}: {e}"),
    }
}

/// Leaves out what only a debugger reads, a third of an object; where there is no such tool it stays in.
fn strip(object: &Path) {
    let _ = Command::new("llvm-strip").arg("-g").arg(object).status();
}

fn set(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("cargo sets {name}"))
}
