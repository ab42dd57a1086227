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
    let own: Vec<PathBuf> = env::split_paths(&env::var_os("DEP_PATHCAST_CONGESTION_OWN").unwrap_or_default())
        .filter(|path| !path.as_os_str().is_empty())
        .collect();
    for path in own.iter().flat_map(|header| digest::beside(header).expect("the controllers' folders can be read")) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let digest = digest::digest(root, &own).expect("the workspace can be read");
    println!("cargo::rustc-env=PATHCAST_SOURCE_DIGEST={digest}");
}
