//! The digest of the sources that the Python extension is built from: what stands for its version in a sample's key.
//!
//! It depends on the files' relative paths and bytes only, so that it is the same wherever the tree stands, in a checkout
//! and in an unpacked source distribution; the extension's own bytes are not, since panics carry the paths of the build.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// What no program of ours is built from; `cargo` knows the first three by these names.
const TESTS: [&str; 5] = ["tests", "examples", "benches", "tests.rs", "testing.rs"];

/// Sources of the tree at `root`, as sorted relative paths with `/`: the workspace's manifest and lock, and every crate's
/// manifest, build script, `*.rs`, `*.h` and `*.c`, without tests and examples.
///
/// # Errors
///
/// What reading the tree says, and a file name that is no UTF-8.
pub fn files(root: &Path) -> io::Result<Vec<String>> {
    let mut found = vec!["Cargo.lock".to_owned(), "Cargo.toml".to_owned()];
    collect(root, "crates", &mut found)?;
    found.sort();
    Ok(found)
}

/// The SHA-256 of those files in hexadecimal digits: of each its path, its length and its bytes. Headers of
/// `PATHCAST_CONTROLLERS` come behind them, by their names.
///
/// # Errors
///
/// As [`files`], and for a file that cannot be read.
pub fn digest(root: &Path, own: &[PathBuf]) -> io::Result<String> {
    let mut whole = Sha256::new();
    let mut add = |name: &str, file: &Path| {
        let bytes = fs::read(file)?;
        whole.update(format!("{name}\n{}\n", bytes.len()));
        whole.update(bytes);
        io::Result::Ok(())
    };
    for path in files(root)? {
        add(&path, &root.join(&path))?;
    }
    for header in own {
        add(&name_of(header), header)?;
        for file in beside(header)? {
            add(&name_of(&file), &file)?;
        }
    }
    Ok(whole.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The headers in the folder of one of `PATHCAST_CONTROLLERS`, itself among them: it may include them.
///
/// # Errors
///
/// What reading the folder says.
pub fn beside(header: &Path) -> io::Result<Vec<PathBuf>> {
    let folder = fs::read_dir(header.parent().unwrap_or(Path::new(".")))?;
    let mut found = folder.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    found.retain(|path| path.extension().is_some_and(|end| end == "h"));
    found.sort();
    Ok(found)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn collect(root: &Path, directory: &str, found: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(root.join(directory))? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| {
            io::Error::new(ErrorKind::InvalidData, format!("{directory}/{}: not UTF-8", name.display()))
        })?;
        let path = format!("{directory}/{name}");
        if name.starts_with('.') || TESTS.contains(&name.as_str()) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            collect(root, &path, found)?;
        } else if name == "Cargo.toml" || [".rs", ".h", ".c"].iter().any(|ending| name.ends_with(ending)) {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::{env, process};

    use super::*;

    const TREE: [&str; 12] = [
        "Cargo.lock",
        "Cargo.toml",
        "README.md",
        "crates/a/.b.rs",
        "crates/a/Cargo.toml",
        "crates/a/README.md",
        "crates/a/build.rs",
        "crates/a/src/c/flow.h",
        "crates/a/src/c/register.c",
        "crates/a/src/lib.rs",
        "crates/a/src/lib/tests.rs",
        "crates/a/tests/common/mod.rs",
    ];

    /// A tree of that name, in which every file has its own path as text.
    struct Tree(PathBuf);

    impl Tree {
        fn new(name: &str) -> Self {
            let root = env::temp_dir().join(format!("pathcast-sources-{}-{name}", process::id()));
            let tree = Self(root);
            TREE.iter().for_each(|path| tree.write(path, path));
            tree
        }

        fn write(&self, path: &str, text: &str) {
            let file = self.0.join(path);
            fs::create_dir_all(file.parent().expect("below the root")).expect("a temporary directory");
            fs::write(file, text).expect("a temporary file");
        }

        fn digest(&self) -> String {
            digest(&self.0, &[]).expect("it can be read")
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn the_same_tree_elsewhere_has_the_same_digest() {
        let (here, elsewhere) = (Tree::new("here"), Tree::new("else/where"));
        assert_eq!(here.digest(), elsewhere.digest());
        assert_eq!(here.digest().len(), 64);
    }

    #[test]
    fn every_source_counts_and_nothing_else() {
        let tree = Tree::new("counts");
        let before = tree.digest();
        let counts = |path: &&&str| {
            tree.write(path, "");
            let changed = tree.digest() != before;
            tree.write(path, path);
            assert_eq!(tree.digest(), before, "{path} is as it was");
            changed
        };
        let counted: Vec<_> = TREE.iter().filter(counts).collect();
        assert_eq!(
            counted,
            [
                &"Cargo.lock",
                &"Cargo.toml",
                &"crates/a/Cargo.toml",
                &"crates/a/build.rs",
                &"crates/a/src/c/flow.h",
                &"crates/a/src/c/register.c",
                &"crates/a/src/lib.rs",
            ]
        );
    }

    #[test]
    fn controllers_of_ones_own_count_wherever_they_are() {
        let (tree, here, elsewhere) = (Tree::new("own"), Tree::new("own-here"), Tree::new("own-elsewhere"));
        let with = |own: &Tree| digest(&tree.0, &[own.0.join("my.h")]).expect("it can be read");
        for own in [&here, &elsewhere] {
            own.write("my.h", "one");
            own.write("part.h", "of it");
        }
        assert_ne!(with(&here), tree.digest());
        assert_eq!(with(&here), with(&elsewhere));
        here.write("my.h", "two");
        elsewhere.write("part.h", "of it, too");
        assert_ne!(with(&here), with(&elsewhere));
        let changed = with(&here);
        here.write("my.h", "one");
        assert_ne!(with(&here), changed);
    }

    #[test]
    fn a_file_that_moves_or_takes_bytes_of_another_counts() {
        let tree = Tree::new("moves");
        let before = tree.digest();
        fs::rename(tree.0.join("crates/a/build.rs"), tree.0.join("crates/a/built.rs")).expect("one file system");
        assert_ne!(tree.digest(), before);
        let (first, second) = (Tree::new("first"), Tree::new("second"));
        first.write("crates/a/src/c/flow.h", "crates/a/src/c/register.c\n");
        second.write("crates/a/src/c/register.c", "crates/a/src/c/flow.h\n");
        assert_ne!(first.digest(), second.digest());
    }

    #[test]
    fn our_own_tree_has_the_controllers_and_no_tests() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let found = files(&root).expect("it can be read");
        for path in ["crates/congestion/src/c/lia.h", "crates/kernel/bpf/lia.bpf.c", "crates/native/build.rs"] {
            assert!(found.iter().any(|one| one == path), "{path}");
        }
        assert!(!found.iter().any(|one| one.contains("/tests/") || one.contains("/examples/")));
        assert!(found.is_sorted());
    }

    #[test]
    fn a_tree_without_sources_is_an_error() {
        assert_eq!(digest(Path::new("/proc/self/fd"), &[]).unwrap_err().kind(), ErrorKind::NotFound);
    }
}
