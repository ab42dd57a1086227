//! The kernel's log from now on: nothing that a test does may make the kernel warn.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

/// The log from where it stood when this was made; every reader has a place of its own in it.
pub struct KernelLog(Option<File>);

impl KernelLog {
    pub fn open() -> KernelLog {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg");
        let file = file.and_then(|mut file| file.seek(SeekFrom::End(0)).map(|_| file));
        if let Err(error) = &file {
            println!(
                "SKIPPED: the kernel's warnings: its log cannot be read: {error}; mend: a machine that has /dev/kmsg"
            );
        }
        KernelLog(file.ok())
    }

    /// Fails if the kernel has warned since.
    pub fn quiet(mut self) {
        let Some(file) = &mut self.0 else { return };
        let mut record = [0; 8192];
        let mut warnings = Vec::new();
        loop {
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(n) => {
                    let text = String::from_utf8_lossy(&record[..n]);
                    if is_warning(&text) {
                        warnings.push(text.into_owned());
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {} // old records were overwritten
                Err(error) => panic!("the kernel's log: {error}"),
            }
        }
        assert!(warnings.is_empty(), "the kernel warns:\n{}", warnings.join(""));
    }
}

fn is_warning(record: &str) -> bool {
    let has = |words: &[&str]| words.iter().any(|word| record.contains(word));
    // as after a pause of a virtual machine, or on a starved one; stalls of RCU are of that kind too
    let late = has(&["lockup"]);
    !late && has(&["WARNING:", "BUG:", "Oops", "refcount_t:", "UBSAN:", "KASAN:", "general protection"])
}

#[test]
fn warnings_are_told_from_other_records() {
    assert!(is_warning("4,1139,140900,-;WARNING: CPU: 0 PID: 1 at net/ipv4/tcp_cong.c:100\n"));
    assert!(is_warning("1,1140,140901,-;BUG: kernel NULL pointer dereference, address: 0000000000000008\n"));
    assert!(!is_warning("6,339,5140900,-;NET: Registered PF_VSOCK protocol family\n"));
    assert!(!is_warning(
        "1,1141,140902,-;BUG: workqueue lockup - pool cpus=1 node=0 flags=0x0 nice=0 stuck for 33s!\n"
    ));
    assert!(!is_warning("0,1142,140903,-;watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [faults:4711]\n"));
    assert!(!is_warning("3,1143,140904,-;rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:\n"));
}
