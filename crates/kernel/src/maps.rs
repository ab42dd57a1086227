//! The maps of a controller in the kernel: those by which it is read and set, and which are pinned with it.

use std::collections::BTreeMap;

use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};

use crate::error::KernelError;
use crate::object::names;

/// Goes up whenever something that is read from maps changes its form.
pub(crate) const LAYOUT: u32 = 2;
/// The size of `struct about`: layout, controller and version.
const ABOUT_BYTES: usize = 64;
pub(crate) const FIRST: [u8; 4] = [0; 4]; // the key of maps with one element

/// The maps that are pinned beside the link, and the ends of their names in the object.
pub(crate) const MAPS: [(&str, &str); 6] = [
    ("about", "about"),
    ("flows", "flows"),
    ("sums", "sums"),
    ("params", ".data"),
    ("counts", ".bss"),
    (GROUPS, GROUPS),
];
/// Only controllers that couple subflows have it.
pub(crate) const GROUPS: &str = "groups";

/// A map that is not as this version has it.
pub(crate) fn size(what: &str, bytes: usize, expected: usize) -> KernelError {
    let why = format!("{bytes} bytes where {expected} are expected: another version of pathcast has loaded it");
    KernelError::refused(what, why)
}

/// The maps of [`MAPS`] by name.
pub(crate) struct Maps(pub BTreeMap<&'static str, MapHandle>);

impl Maps {
    pub(crate) fn of(object: &Object) -> Result<Maps, KernelError> {
        let mut maps = BTreeMap::new();
        for (name, end) in MAPS {
            let map = object.maps().find(|map| names(&map.name().to_string_lossy(), end));
            if name == GROUPS && map.is_none() {
                continue;
            }
            let map =
                map.ok_or_else(|| KernelError::refused(format!("finding `{end}`"), "the object has no such map"))?;
            let handle = MapHandle::try_from(&map).map_err(|e| KernelError::refused(format!("opening `{end}`"), e))?;
            maps.insert(name, handle);
        }
        Ok(Maps(maps))
    }

    pub(crate) fn get(&self, name: &str) -> &MapHandle {
        &self.0[name]
    }

    pub(crate) fn read(&self, name: &str, key: &[u8]) -> Result<Option<Vec<u8>>, KernelError> {
        self.get(name).lookup(key, MapFlags::ANY).map_err(|e| KernelError::refused(format!("reading `{name}`"), e))
    }

    pub(crate) fn write(&self, name: &str, value: &[u8]) -> Result<(), KernelError> {
        self.get(name)
            .update(&FIRST, value, MapFlags::ANY)
            .map_err(|e| KernelError::refused(format!("writing `{name}`"), e))
    }

    /// Says to whoever finds the maps pinned what they are of.
    pub(crate) fn introduce(&self, controller: &str) -> Result<(), KernelError> {
        let mut bytes = vec![0; ABOUT_BYTES];
        bytes[..4].copy_from_slice(&LAYOUT.to_ne_bytes());
        bytes[8..8 + controller.len()].copy_from_slice(controller.as_bytes());
        let version = env!("CARGO_PKG_VERSION").as_bytes();
        let version = &version[..version.len().min(24)];
        bytes[40..40 + version.len()].copy_from_slice(version);
        self.write("about", &bytes)
    }

    /// Layout, controller and version.
    pub(crate) fn about(&self) -> Result<(u32, String, String), KernelError> {
        let bytes = self.read("about", &FIRST)?.unwrap_or_default();
        if bytes.len() != ABOUT_BYTES {
            return Err(size("reading `about`", bytes.len(), ABOUT_BYTES));
        }
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned();
        let layout = u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Ok((layout, text(&bytes[8..40]), text(&bytes[40..64])))
    }
}
