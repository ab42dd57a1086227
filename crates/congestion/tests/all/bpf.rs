//! Every header compiles for the kernel, with every warning an error and no signed division.

use std::fmt::Write;
use std::process::Command;

use pathcast_congestion::controllers;

/// All hooks in one program, on a view that lies in memory as the kernel's map has it.
fn program(name: &str) -> String {
    let mut text = format!(
        "#include \"{name}.h\"\n\
         struct mem {{ struct flow f; struct flow_ack a; struct {name}_state s; }};\n\
         struct {name}_params params = {{ {name}_PARAMS(FLOW_PARAM_DEFAULT) }};\n\
         __attribute__((section(\"p\"))) u32 run(struct mem *m)\n{{\n\tu32 out = 0;\n"
    );
    for (bit, call) in [
        ("INIT", "init(&m->f, &m->s, &params)"),
        ("ACK", "ack(&m->f, &m->a, &m->s, &params)"),
        ("GROW", "grow(&m->f, &m->a, &m->s, &params)"),
        ("EVENT", "event(&m->f, m->a.flags, &m->s, &params)"),
        ("SEND", "send(&m->f, &m->s, &params)"),
        ("RELEASE", "release(&m->f, &m->s, &params)"),
    ] {
        writeln!(text, "#if {name}_hooks & FLOW_{bit}\n\t{name}_{call};\n#endif").unwrap();
    }
    for (bit, call) in [("SSTHRESH", "ssthresh"), ("UNDO", "undo")] {
        writeln!(text, "#if {name}_hooks & FLOW_{bit}\n\tout += {name}_{call}(&m->f, &m->s, &params);\n#endif")
            .unwrap();
    }
    text + "\treturn out;\n}\n"
}

#[test]
fn headers_compile_with_clang_for_bpf() {
    if Command::new("clang").arg("--version").output().is_err() {
        println!("SKIPPED: clang is not installed; mend: apt-get install clang");
        return;
    }
    let headers = concat!(env!("CARGO_MANIFEST_DIR"), "/src/c");
    for info in controllers() {
        let source = format!("{}/bpf_{}.c", env!("CARGO_TARGET_TMPDIR"), info.name);
        std::fs::write(&source, program(info.name)).unwrap();
        let output = Command::new("clang")
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-Wno-missing-braces"])
            .args(["-I", headers, "-c", &source, "-o", &format!("{source}.o")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}: {}", info.name, String::from_utf8_lossy(&output.stderr));
    }
}
