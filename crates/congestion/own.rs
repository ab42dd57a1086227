//! The controllers of `PATHCAST_CONTROLLERS`, looked at before a compiler is, which would tell of what they lack in pages of
//! expanded macros.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const HOOKS: [&str; 8] = ["init", "ack", "grow", "ssthresh", "event", "send", "undo", "release"];
const MACROS: [&str; 5] = ["hooks", "KERNEL", "PAPER", "BASIS", "PARAMS"];
/// TCP_CA_NAME_MAX without the 0 at the end and the `_2` of a second one.
const KERNEL_BYTES: usize = 13;

/// One controller: its name, which is its header's, and the header.
#[derive(Debug, PartialEq)]
pub struct Own {
    pub name: String,
    pub header: PathBuf,
}

/// The headers that `list` names, with `:` between them; relative ones are of `root`. `headers` is where flow.h is.
/// `compiler` makes a C compiler's command.
///
/// # Errors
/// One line with the header and what is wrong with it.
pub fn read(list: &OsStr, root: &Path, headers: &Path, compiler: impl Fn() -> Command) -> Result<Vec<Own>, String> {
    let mut names = BTreeSet::new();
    let mut found = Vec::new();
    for path in env::split_paths(list).filter(|path| !path.as_os_str().is_empty()) {
        let told = root.join(path);
        let refuse = |what: String| format!("PATHCAST_CONTROLLERS: {}: {what}", told.display());
        let header = fs::canonicalize(&told).map_err(|error| refuse(words(&error)))?;
        if !header.is_file() {
            return Err(refuse("not a file; needed: the header of a controller".into()));
        }
        let name = name(&told).ok_or_else(|| {
            refuse("a controller has its header's name: NAME.h, of letters, digits and _, and no digit first".into())
        })?;
        if headers.join(format!("{name}.h")).exists() {
            return Err(refuse(format!("`{name}` is the name of a header of pathcast's own")));
        }
        if !names.insert(name.clone()) {
            return Err(refuse(format!("there are two controllers `{name}`")));
        }
        check(&name, &header, headers, compiler()).map_err(refuse)?;
        found.push(Own { name, header });
    }
    Ok(found)
}

/// The headers beside it, which it may include.
pub fn beside(header: &Path) -> Vec<PathBuf> {
    let entries = header.parent().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.extension().is_some_and(|end| end == "h")).collect()
}

fn words(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".into(),
        _ => error.to_string(),
    }
}

fn name(path: &Path) -> Option<String> {
    let name = path.file_stem()?.to_str()?;
    let allowed = name.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_');
    (allowed && !name.starts_with(|c: char| c.is_ascii_digit())).then(|| name.to_owned())
}

fn check(name: &str, header: &Path, headers: &Path, compiler: Command) -> Result<(), String> {
    let text = expand(name, header, headers, compiler)?;
    let tokens = tokens(&text);
    let has = |wanted: &[&str]| tokens.windows(wanted.len()).any(|window| window == wanted);
    let mut lacks: Vec<String> =
        MACROS.iter().filter(|part| has(&["flow_lacks", part])).map(|part| format!("{name}_{part}")).collect();
    for part in ["params", "state"] {
        if !has(&["struct", &format!("{name}_{part}"), "{"]) {
            lacks.push(format!("struct {name}_{part}"));
        }
    }
    for hook in HOOKS.iter().filter(|hook| has(&["flow_calls", hook])) {
        if !has(&[&format!("{name}_{hook}"), "("]) {
            lacks.push(format!("the function {name}_{hook}, of which {name}_hooks speaks"));
        }
    }
    if !lacks.is_empty() {
        return Err(format!(
            "it lacks {}; a header NAME.h defines NAME_hooks, NAME_KERNEL, NAME_PAPER, NAME_BASIS, NAME_PARAMS(P), struct \
             NAME_params, struct NAME_state and a function for each bit of NAME_hooks: see {}",
            lacks.join(", "),
            headers.join("flow.h").display()
        ));
    }
    let kernel = text.lines().find_map(|line| line.trim().strip_prefix("flow_kernel \"")?.strip_suffix('"'));
    let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
    match kernel {
        Some(kernel) if !kernel.is_empty() && kernel.len() <= KERNEL_BYTES && kernel.bytes().all(allowed) => Ok(()),
        _ => Err(format!(
            "{name}_KERNEL is no name for the kernel: 1 to {KERNEL_BYTES} of a-z, 0-9, _ and - between quotes, for example \
             \"pc_{name}\""
        )),
    }
}

/// The header without its macros, and behind it what it lacks and which hooks it has.
fn expand(name: &str, header: &Path, headers: &Path, mut compiler: Command) -> Result<String, String> {
    let mut source = format!("#include \"{}\"\n#include \"flow.h\"\n", header.display());
    for part in MACROS {
        source += &format!("#ifndef {name}_{part}\nflow_lacks {part}\n#endif\n");
    }
    source += &format!("#ifdef {name}_KERNEL\nflow_kernel {name}_KERNEL\n#endif\n#ifdef {name}_hooks\n");
    for hook in HOOKS {
        source += &format!("#if ({name}_hooks) & FLOW_{}\nflow_calls {hook}\n#endif\n", hook.to_uppercase());
    }
    source += "#endif\n";
    let failed = |error: std::io::Error| format!("the C compiler does not run: {error}");
    let mut child = compiler
        .args(["-std=c11", "-E", "-P", "-x", "c", "-I"])
        .arg(headers)
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // a page at most, and dropped behind it, so that the compiler sees its end
    child.stdin.take().expect("piped").write_all(source.as_bytes()).map_err(failed)?;
    let done = child.wait_with_output().map_err(failed)?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    let told = String::from_utf8_lossy(&done.stderr);
    Err(told.lines().find(|line| line.contains("error:")).unwrap_or("the C compiler refuses it").to_owned())
}

/// Words and single characters.
fn tokens(text: &str) -> Vec<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut found = Vec::new();
    for piece in text.split_whitespace() {
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            let end = match word(first) {
                true => rest.find(|c| !word(c)).unwrap_or(rest.len()),
                false => first.len_utf8(),
            };
            found.push(&rest[..end]);
            rest = &rest[end..];
        }
    }
    found
}
