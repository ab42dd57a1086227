//! The eBPF program of a run, loaded and attached to its cgroup.

use std::collections::BTreeMap;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use libbpf_rs::{Iter, Link, MapCore, MapFlags, Object, ObjectBuilder};

use crate::counters::{FAULT_BYTES, Faults, Flow, Key, Use};
use crate::error::LaunchError;
use crate::orders::Orders;

/// libbpf reads the object's 64-bit fields where they lie.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

/// The object of `launch.bpf.c`, if clang was there when this crate was built.
static OBJECT: Option<&Aligned<[u8]>> = include!(concat!(env!("OUT_DIR"), "/launch.in"));

const ORDERS: &str = ".data.orders";
const LOOK: &str = "look";
/// Of which `look` is one (Linux 5.9).
const ITERATOR: &CStr = c"bpf_iter_tcp";
/// Sums are read again at most so often while connections close meanwhile.
const READINGS: usize = 20;
const CAP_NET_ADMIN: u32 = 12;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_BPF: u32 = 39;

/// Whether this thread may use a capability.
fn has(capability: u32) -> bool {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    effective.unwrap_or(0) >> capability & 1 == 1
}

/// CAP_SYS_ADMIN: a seccomp filter then needs no `no_new_privs`.
pub(crate) fn may_filter() -> bool {
    has(CAP_SYS_ADMIN)
}

/// Whether the program can be loaded here.
///
/// # Errors
/// `Missing` names the first thing that is not there.
pub(crate) fn ready() -> Result<(), LaunchError> {
    if OBJECT.is_none() {
        return Err(LaunchError::missing(
            "clang (this build has no eBPF programs)",
            "install the Debian package clang and build again",
        ));
    }
    if !(has(CAP_NET_ADMIN) && (has(CAP_BPF) || has(CAP_SYS_ADMIN))) {
        let what = "the privilege to attach a program to a cgroup (CAP_BPF, CAP_NET_ADMIN)";
        return Err(LaunchError::missing(what, "run with sudo; the program itself will run as you"));
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(LaunchError::missing("/sys/kernel/btf/vmlinux", "a kernel built with CONFIG_DEBUG_INFO_BTF"));
    }
    Ok(())
}

/// The object in the kernel, with or without the iterator.
fn load(control: &str, iterator: bool) -> Result<Object, LaunchError> {
    let bytes = &OBJECT.expect("ready() has seen it").0;
    let refused = |what: &str| {
        let what = what.to_owned();
        move |e: libbpf_rs::Error| LaunchError::System { what, source: io::Error::other(e.to_string()) }
    };
    let mut open = ObjectBuilder::default().open_memory(bytes).map_err(refused("opening the eBPF program"))?;
    for mut map in open.maps_mut().filter(|map| map.name() == ORDERS) {
        let bytes = Orders { control, pace: None, number: 0 }.bytes();
        map.initial_value_mut().expect("`orders`").copy_from_slice(&bytes);
    }
    for mut program in open.progs_mut().filter(|p| p.name() == LOOK) {
        program.set_autoload(iterator);
    }
    open.load().map_err(refused("loading the eBPF program"))
}

/// What `load` gives with the iterator; without it only where the kernel has none: any other refusal is told as it is.
fn with_iterator<T>(load: impl Fn(bool) -> Result<T, LaunchError>, has: impl Fn() -> bool) -> Result<T, LaunchError> {
    load(true).or_else(|refused| if has() { Err(refused) } else { load(false) })
}

/// Whether the kernel's types tell of an iterator.
fn has_iterator(name: &CStr) -> bool {
    // SAFETY: what was loaded is freed once, and not used then; the name ends with 0
    unsafe {
        let types = libbpf_sys::btf__load_vmlinux_btf();
        if types.is_null() {
            return false;
        }
        let found = libbpf_sys::btf__find_by_name_kind(types, name.as_ptr(), libbpf_sys::BTF_KIND_FUNC);
        libbpf_sys::btf__free(types);
        found > 0
    }
}

/// The loaded program. It stays attached until the cgroup is removed, whatever becomes of this process.
pub(crate) struct Program {
    object: Object,
    /// The iterator that brings the counts of live connections up to now, where the kernel has it (5.9).
    look: Option<Link>,
}

impl Program {
    /// Loads it with the controller `control` (empty: none) and attaches it to `cgroup`.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn attach(control: &str, cgroup: &File) -> Result<Program, LaunchError> {
        ready()?;
        let object = with_iterator(|iterator| load(control, iterator), || has_iterator(ITERATOR))?;
        let look = object.progs_mut().find(|p| p.name() == LOOK).and_then(|p| p.attach().ok());
        let program = object.progs().find(|p| p.name() == "launch").expect("launch.bpf.c has it");
        // SAFETY: two open descriptors; programs of cgroups above ours run too (BPF_F_ALLOW_MULTI)
        let done = unsafe {
            libbpf_sys::bpf_prog_attach(
                program.as_fd().as_raw_fd(),
                cgroup.as_raw_fd(),
                libbpf_sys::BPF_CGROUP_SOCK_OPS,
                libbpf_sys::BPF_F_ALLOW_MULTI,
            )
        };
        if done != 0 {
            let error = std::io::Error::from_raw_os_error(-done);
            return Err(LaunchError::system("attaching the eBPF program to a cgroup")(error));
        }
        Ok(Program { object, look })
    }

    /// Gives connections other orders: the established ones at their next ACK.
    ///
    /// # Errors
    /// The system's.
    pub fn order(&self, orders: Orders<'_>) -> io::Result<()> {
        let map = self.object.maps().find(|map| map.name() == ORDERS).expect("launch.bpf.c has it");
        map.update(&0u32.to_ne_bytes(), &orders.bytes(), MapFlags::ANY).map_err(|e| io::Error::other(e.to_string()))
    }

    /// By key: the walk begins anew where the key that it is at is deleted meanwhile.
    fn each<K: Ord, V>(
        &self,
        name: &str,
        key: fn(&[u8]) -> Option<K>,
        value: fn(&[u8]) -> Option<V>,
    ) -> BTreeMap<K, V> {
        let Some(map) = self.object.maps().find(|map| map.name() == name) else { return BTreeMap::new() };
        let of = |k: Vec<u8>| Some((key(&k)?, value(&map.lookup(&k, MapFlags::ANY).ok()??)?));
        map.keys().filter_map(of).collect()
    }

    /// Connections that are open; their counts are those of now where they are in this thread's network namespace, else
    /// of their last ACK.
    pub fn flows(&self) -> Vec<Flow> {
        self.entries().into_iter().filter(|flow| flow.counts.flows > 0).collect()
    }

    /// And those that wait for an answer.
    pub fn entries(&self) -> Vec<Flow> {
        self.refresh();
        self.open().into_values().collect()
    }

    /// Best effort: without it the counts are older.
    fn refresh(&self) {
        if let Some(mut look) = self.look.as_ref().and_then(|link| Iter::new(link).ok()) {
            let _ = io::copy(&mut look, &mut io::sink());
        }
    }

    /// By socket.
    fn open(&self) -> BTreeMap<u64, Flow> {
        self.each("flows", |cookie| cookie.try_into().ok().map(u64::from_ne_bytes), Flow::read)
    }

    /// Sums over those that are closed.
    fn closed(&self) -> BTreeMap<Key, Use> {
        self.each("paths", Key::read, Use::read)
    }

    /// The sums of everything, open or closed, and those that are open. What waits for an answer counts where it has
    /// waited in vain.
    pub fn sums(&self) -> (BTreeMap<Key, Use>, Vec<Flow>) {
        self.refresh();
        let (mut sums, mut open) = together(|| self.closed(), || self.open());
        for flow in open.iter().filter(|flow| flow.counts.flows > 0 || flow.counts.timeouts > 0) {
            sums.entry(flow.key.clone()).or_default().add(&flow.counts);
        }
        open.retain(|flow| flow.counts.flows > 0);
        (sums, open)
    }

    /// What could not be controlled or counted.
    pub fn faults(&self) -> Faults {
        let map = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss"));
        let bytes = map.and_then(|map| map.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).ok()?);
        bytes.and_then(|b| Faults::read(b.get(..FAULT_BYTES)?)).unwrap_or_default()
    }
}

/// The sums of what is closed and the open connections, of one moment. Where too much closes for that, some of what closes
/// meanwhile is in neither until the next look, never in both: the sums must not jump over what has passed.
fn together(
    closed: impl Fn() -> BTreeMap<Key, Use>,
    open: impl Fn() -> BTreeMap<u64, Flow>,
) -> (BTreeMap<Key, Use>, Vec<Flow>) {
    let mut before = closed();
    for reading in 1.. {
        let flows = open();
        let after = closed();
        let settled = before == after && !flows.values().any(|flow| flow.closing);
        if settled || reading == READINGS {
            return (before, flows.into_values().filter(|flow| !flow.closing).collect());
        }
        before = after;
    }
    unreachable!("it returns at the last reading")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Connections of 5 bytes each, of which `at` tells how many are closed and which are open at each reading.
    fn read(at: impl Fn(u64) -> (u64, Vec<(u64, bool)>)) -> (u64, usize) {
        let key =
            Key { local: [10, 0, 0, 1].into(), remote: [10, 0, 0, 2].into(), mptcp: false, control: "reno".into() };
        let of = |flows| Use { flows, sent: 5 * flows, ..Use::default() };
        let flow = |closing| Flow { key: key.clone(), closing, ports: (1, 2), pending: 0, counts: of(1) };
        let time = Cell::new(0);
        let next = || at(time.replace(time.get() + 1));
        let closed = || BTreeMap::from([(key.clone(), of(next().0))]);
        let open = || next().1.into_iter().map(|(cookie, closing)| (cookie, flow(closing))).collect();
        let (sums, open) = together(closed, open);
        (sums[&key].sent, open.len())
    }

    #[test]
    fn what_closes_while_the_sums_are_read_is_counted_once() {
        // 8 is open at the first reading, closed at the second
        assert_eq!(read(|t| if t < 2 { (0, vec![(8, false)]) } else { (1, vec![]) }), (5, 0));
        // its counts are among the sums already, its entry not yet gone
        assert_eq!(read(|t| (1, if t < 3 { vec![(8, true)] } else { vec![] })), (5, 0));
        // one more closes at each reading: at most what has passed until the last one
        let (sent, open) = read(|t| (t, vec![(t, false)]));
        assert!(sent <= 5 * 2 * READINGS as u64 && open == 1, "{sent}");
        assert_eq!(read(|_| (3, vec![(8, true), (9, false)])), (15, 1));
    }

    #[test]
    fn without_the_iterator_it_is_loaded_again_only_where_the_kernel_has_none() {
        let refused = |what: &str| Err(LaunchError::Argument(what.into()));
        let load = |iterator| if iterator { refused("no memory") } else { Ok(iterator) };
        assert!(!with_iterator(load, || false).unwrap());
        assert_eq!(with_iterator(load, || true).unwrap_err().to_string(), "no memory");
        assert!(with_iterator(Ok, || unreachable!("nothing was refused")).unwrap());
        let never = |iterator| if iterator { refused("no iterator") } else { refused("no memory") };
        assert_eq!(with_iterator(never, || false).unwrap_err().to_string(), "no memory");
    }

    #[test]
    fn the_kernels_types_tell_which_iterators_it_has() {
        if Path::new("/sys/kernel/btf/vmlinux").exists() {
            assert!(has_iterator(ITERATOR), "Linux 5.9 and later");
        }
        assert!(!has_iterator(c"bpf_iter_nonsense"));
    }
}
