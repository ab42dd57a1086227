//! Gives the extension the digest of the sources that it is built from, its own and those of every other crate.

mod digest;

use std::collections::BTreeSet;
use std::env;
use std::path::{Path, PathBuf};

fn main() {
    let native = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let root = native.ancestors().nth(2).expect("crates/native of the workspace");
    let files = digest::files(root).expect("the workspace can be read");
    // `crates/NAME/src` as a whole, so that a new file counts too
    let watched: BTreeSet<PathBuf> = files.iter().map(|path| Path::new(path).components().take(3).collect()).collect();
    for path in watched {
        println!("cargo::rerun-if-changed={}", root.join(path).display());
    }
    let digest = digest::digest(root).expect("the workspace can be read");
    println!("cargo::rustc-env=PATHCAST_SOURCE_DIGEST={digest}");
}
