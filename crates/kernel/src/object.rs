//! The compiled programs, and what the machine must have for them.

use std::fs;
use std::path::Path;

use libbpf_rs::btf::{Btf, types::Struct};
use libbpf_rs::{ErrorKind, Link, MapCore, MapType, Object, ObjectBuilder, OpenObject};

use crate::error::KernelError;

/// libbpf reads the object's 64-bit fields where they lie.
#[repr(C, align(8))]
struct Aligned<T: ?Sized>(T);

/// The objects of `bpf/*.bpf.c` by name; without them if clang was not there when this crate was built.
static OBJECTS: &[(&str, Option<&Aligned<[u8]>>)] = include!(concat!(env!("OUT_DIR"), "/objects.in"));

/// The object of `bpf/NAME.bpf.c`.
pub(crate) fn object(name: &str) -> Option<&'static [u8]> {
    OBJECTS.iter().find(|(of, _)| *of == name)?.1.map(|object| &object.0)
}

/// Whether there is a `bpf/NAME.bpf.c`.
pub(crate) fn has_source(name: &str) -> bool {
    OBJECTS.iter().any(|(of, _)| *of == name)
}

/// TCP_CA_NAME_MAX: a controller's name and the 0 behind it.
const NAME_BYTES: usize = 16;
const CAP_NET_ADMIN: u32 = 12;
const CAP_BPF: u32 = 39;

/// Whether this machine and this build can bring controllers into the kernel.
///
/// # Errors
/// [`KernelError::Missing`] names the first thing that is not there.
pub fn ready() -> Result<(), KernelError> {
    if OBJECTS.iter().any(|(_, object)| object.is_none()) {
        return Err(KernelError::missing(
            "clang (this build has no eBPF programs)",
            "install the Debian package clang and build again",
        ));
    }
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("CapEff:")?.trim(), 16).ok());
    let has = |capability: u32| effective.unwrap_or(0) >> capability & 1 == 1;
    if !(has(CAP_NET_ADMIN) && has(CAP_BPF)) {
        return Err(KernelError::missing("the privilege to load controllers (CAP_BPF, CAP_NET_ADMIN)", "run as root"));
    }
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(KernelError::missing("/sys/kernel/btf/vmlinux", "a kernel built with CONFIG_DEBUG_INFO_BTF"));
    }
    let btf = Btf::from_vmlinux().map_err(|e| KernelError::refused("reading the kernel's type information", e))?;
    // the kernel has the first type if it takes controllers, the second if it can keep one for as long as a link to it lives
    for name in ["bpf_struct_ops_tcp_congestion_ops", "bpf_struct_ops_link"] {
        if btf.type_by_name::<Struct<'_>>(name).is_none() {
            return Err(KernelError::missing(
                format!("struct_ops for congestion controllers (`{name}`)"),
                "a kernel from 6.4 on with CONFIG_BPF_JIT and CONFIG_BPF_SYSCALL",
            ));
        }
    }
    Ok(())
}

/// Refuses what the kernel cannot take for a controller's name.
pub(crate) fn check_name(name: &str) -> Result<(), KernelError> {
    let allowed = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'_' || c == b'-';
    if name.is_empty() || name.len() >= NAME_BYTES || !name.bytes().all(allowed) {
        return Err(KernelError::Name { name: name.into() });
    }
    Ok(())
}

/// The names of the controllers that this kernel has now; all network namespaces share them.
pub fn registered() -> Vec<String> {
    let text = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    text.split_whitespace().map(str::to_owned).collect()
}

/// Loads an object with one controller in it, of which `placeholder` is the name in its source, as `name`; `prepare`
/// sees it before.
pub(crate) fn load(
    bytes: &[u8],
    placeholder: &str,
    name: &str,
    prepare: impl FnOnce(&mut OpenObject) -> Result<(), KernelError>,
) -> Result<Object, KernelError> {
    check_name(name)?;
    if registered().iter().any(|taken| taken == name) {
        return Err(KernelError::InUse { name: name.into() });
    }
    let mut open = ObjectBuilder::default()
        .open_memory(bytes)
        .map_err(|e| KernelError::refused(format!("opening the programs of `{name}`"), e))?;
    for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
        let ops = map.initial_value_mut().unwrap_or_default();
        // `ops` is the C struct as the object has it; nothing else in it reads like the name
        if let Some(at) = ops.windows(placeholder.len()).position(|bytes| bytes == placeholder.as_bytes()) {
            ops[at..at + NAME_BYTES].fill(0);
            ops[at..at + name.len()].copy_from_slice(name.as_bytes());
        }
    }
    prepare(&mut open)?;
    open.load().map_err(|e| KernelError::refused(format!("loading the programs of `{name}`"), e))
}

/// Makes the controller of a loaded object known to TCP until the link is dropped; sockets that use it then keep it.
pub(crate) fn attach(object: &mut Object, name: &str) -> Result<Link, KernelError> {
    let mut map = object
        .maps_mut()
        .find(|map| map.map_type() == MapType::StructOps)
        .ok_or_else(|| KernelError::refused(format!("registering `{name}`"), "the object has no controller"))?;
    map.attach_struct_ops().map_err(|e| match e.kind() {
        ErrorKind::AlreadyExists => KernelError::InUse { name: name.into() },
        _ => KernelError::refused(format!("registering `{name}`"), e),
    })
}

/// Whether a map's name ends so; that of a section has the object's name before it.
pub(crate) fn names(map: &str, end: &str) -> bool {
    if end.starts_with('.') { map.ends_with(end) } else { map == end }
}

/// The bytes of a global variable section of a loaded object.
pub(crate) fn globals(object: &Object, section: &str) -> Result<Vec<u8>, KernelError> {
    let what = || format!("reading {section}");
    let map = object
        .maps()
        .find(|map| names(&map.name().to_string_lossy(), section))
        .ok_or_else(|| KernelError::refused(what(), "there is no such section"))?;
    let value =
        map.lookup(&0u32.to_ne_bytes(), libbpf_rs::MapFlags::ANY).map_err(|e| KernelError::refused(what(), e))?;
    value.ok_or_else(|| KernelError::refused(what(), "it is empty"))
}
