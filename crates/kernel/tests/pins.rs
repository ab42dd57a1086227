//! Privileged: controllers that are pinned outlive their loader, are found, changed and removed.

mod live;

use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use live::{able, defaults, name, until};
use pathcast_base::{Exit, Fault};
use pathcast_kernel::{Loaded, pin_root, pinned, registered, remove};

/// A bpffs that the calling thread alone sees from now on: others would take it for the machine's.
struct Mount(PathBuf);

impl Mount {
    fn new() -> Option<Mount> {
        let at = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name());
        fs::create_dir_all(&at).unwrap();
        let target = CString::new(at.to_str().unwrap()).unwrap();
        let (none, private) = (std::ptr::null(), libc::MS_REC | libc::MS_PRIVATE);
        // SAFETY: valid C strings; mounts and the working directory become this thread's own
        let failed = unsafe {
            libc::unshare(libc::CLONE_NEWNS) != 0
                || libc::mount(c"none".as_ptr(), c"/".as_ptr(), none, private, none.cast()) != 0
                || libc::mount(c"bpf".as_ptr(), target.as_ptr(), c"bpf".as_ptr(), 0, none.cast()) != 0
        };
        if failed {
            let error = std::io::Error::last_os_error();
            assert_eq!(error.kind(), std::io::ErrorKind::PermissionDenied, "{error}");
            return None;
        }
        Some(Mount(at))
    }
}
impl Drop for Mount {
    fn drop(&mut self) {
        let target = CString::new(self.0.to_str().unwrap()).unwrap();
        // SAFETY: a valid C string
        unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
        let _ = fs::remove_dir(&self.0);
    }
}

fn pin_and_remove(root: &Path) {
    let kernel = name();
    let at = root.join(&kernel);
    let mut params = defaults("gsam");
    params.set("st_div", 9).unwrap();
    let error = Loaded::load(&kernel, &params, Some(&root.join("other"))).unwrap_err();
    assert_eq!((error.code(), error.exit()), ("pin-path", Exit::Usage), "{error}");
    drop(Loaded::load(&kernel, &params, Some(&at)).unwrap());
    assert!(registered().contains(&kernel), "a pinned one stays");
    let of = pinned(root).unwrap().into_iter().find(|pin| pin.name == kernel).unwrap();
    assert_eq!((of.path.as_path(), of.of), (at.as_path(), Some(("gsam".into(), env!("CARGO_PKG_VERSION").into()))));
    let again = Loaded::load(&kernel, &params, Some(&at)).unwrap_err();
    assert_eq!(again.code(), "controller-in-use", "{again}");
    assert!(at.join("link").exists(), "the refusal has touched nothing");
    let opened = Loaded::open(&at).unwrap();
    assert_eq!((opened.name(), opened.controller()), (kernel.as_str(), "gsam"));
    assert_eq!(opened.params().unwrap().value("st_div").unwrap(), 9);
    opened.set(&[("st_div", 10)]).unwrap();
    drop(opened);
    let opened = Loaded::open(&at).unwrap();
    assert_eq!(opened.params().unwrap().value("st_div").unwrap(), 10);
    assert_eq!(opened.flows().unwrap(), []);
    opened.unload().unwrap();
    // the kernel takes the name back when the last reference is gone
    until("the end of the registration", || !registered().contains(&kernel));
    assert!(!at.exists(), "unloaded, nothing is left");
    assert_eq!(Loaded::open(&at).unwrap_err().code(), "not-pinned");
}

#[test]
fn a_directory_that_another_has_removed_meanwhile_is_made_again() {
    let what = "a directory of pins that others leave";
    if !able(what) {
        return;
    }
    let (directory, kernel) = (name(), name());
    let root = pin_root(&directory).unwrap();
    if !root.starts_with("/run/pathcast/bpf") {
        return println!(
            "SKIPPED: {what}: a bpffs is mounted, of which none is removed; mend: unmount {}",
            root.display()
        );
    }
    // what whoever unloads the last one in it does, and where nobody else has pins that takes the bpffs away too
    let (first, second) = (root.join(&kernel), root.join(name()));
    drop(Loaded::load(&kernel, &defaults("reno"), Some(&first)).unwrap());
    remove(&first).unwrap();
    assert!(!root.exists(), "nothing is left");
    let name = second.file_name().unwrap().to_str().unwrap();
    drop(Loaded::load(name, &defaults("reno"), Some(&second)).unwrap());
    remove(&second).unwrap();
    assert!(!root.exists(), "nothing is left");
}

#[test]
fn a_pinned_controller_outlives_its_loader() {
    let what = "pinned controllers";
    if !able(what) {
        return;
    }
    thread::scope(|scope| scope.spawn(|| pins_of_ones_own(what)).join().unwrap());
    // where pathcast itself pins
    pin_and_remove(&pin_root("pathcast-test").unwrap());
}

fn pins_of_ones_own(what: &str) {
    let Some(mount) = Mount::new() else {
        return println!("SKIPPED: {what}: a bpffs cannot be mounted here; mend: run as root");
    };
    pin_and_remove(&mount.0);
    // what a loader leaves that dies half way: no link
    let kernel = name();
    let at = mount.0.join(&kernel);
    drop(Loaded::load(&kernel, &defaults("lp"), Some(&at)).unwrap());
    fs::remove_file(at.join("link")).unwrap();
    until("the end of a registration without a link", || !registered().contains(&kernel));
    assert_eq!(pinned(&mount.0).unwrap()[0].of, None, "it is stale");
    drop(Loaded::load(&kernel, &defaults("lp"), Some(&at)).unwrap());
    assert!(pinned(&mount.0).unwrap()[0].of.is_some(), "and the next load replaces it");
    remove(&at).unwrap();
    assert_eq!(pinned(&mount.0).unwrap(), []);
    assert_eq!(remove(&at).unwrap_err().exit(), Exit::Usage);
}
