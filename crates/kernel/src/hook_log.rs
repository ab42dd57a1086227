//! The logging controller, loaded and read.

use std::sync::{Arc, Mutex, PoisonError};

use libbpf_rs::{Link, MapCore, Object, RingBuffer, RingBufferBuilder};

use crate::error::KernelError;
use crate::object::{attach, globals, load, object, ready};
use crate::record::Record;

/// A controller in the kernel that behaves as Reno and writes down every call of its hooks. Dropped, it is unregistered;
/// sockets that use it then keep it until they end.
pub struct HookLog {
    ring: RingBuffer<'static>,
    read: Arc<Mutex<Vec<Record>>>,
    // the link goes before the object
    _link: Link,
    object: Object,
    name: String,
}

impl HookLog {
    /// Loads it and registers it under `name`, which must be free in this kernel; all network namespaces share the names.
    ///
    /// # Errors
    /// Missing: clang when this crate was built, a privilege, a kernel feature. Usage: a name that the kernel cannot
    /// take. Runtime: what the kernel refused, such as a name in use.
    pub fn start(name: &str) -> Result<HookLog, KernelError> {
        ready()?;
        let bytes = object("hook_log").expect("ready() has seen that the objects are there");
        let mut object = load(bytes, "pc_hook_log", name, |_| Ok(()))?;
        let read = Arc::new(Mutex::new(Vec::new()));
        let ring = {
            let sink = read.clone();
            let failed = |e| KernelError::refused("reading the log's ring buffer", e);
            let map = object.maps().find(|map| map.name() == "records").expect("hook_log.bpf.c has this map");
            let mut builder = RingBufferBuilder::new();
            builder
                .add(&map, move |bytes| {
                    if let Some(record) = Record::read(bytes) {
                        sink.lock().unwrap_or_else(PoisonError::into_inner).push(record);
                    }
                    0
                })
                .map_err(failed)?;
            builder.build().map_err(failed)?
        };
        let link = attach(&mut object, name)?;
        Ok(HookLog { ring, read, _link: link, object, name: name.into() })
    }

    /// Its name, for `TCP_CONGESTION`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The records since the last call, in the order in which they were written; those of one socket are in the order
    /// of the calls.
    ///
    /// # Errors
    /// Runtime: the ring buffer cannot be read.
    pub fn records(&self) -> Result<Vec<Record>, KernelError> {
        self.ring.consume().map_err(|e| KernelError::refused("reading the log", e))?;
        Ok(std::mem::take(&mut self.read.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Records that found the ring full, since the start.
    ///
    /// # Errors
    /// Runtime: the kernel's map cannot be read.
    pub fn lost(&self) -> Result<u32, KernelError> {
        let bss = globals(&self.object, ".bss")?;
        // `counts`: sockets, lost
        let word = bss.get(4..8).and_then(|b| b.try_into().ok());
        word.map(u32::from_ne_bytes).ok_or_else(|| KernelError::refused("reading .bss", "it is too short"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pathcast_base::{Exit, Fault};

    #[test]
    fn what_is_missing_comes_first_and_bad_names_are_refused() {
        for name in ["", "sixteen_letters_", "Upper", "a b", "nul\0"] {
            let Err(error) = HookLog::start(name) else { panic!("{name:?} was taken") };
            match ready() {
                Ok(()) => assert_eq!(error.exit(), Exit::Usage, "{error}"),
                Err(_) => assert_eq!((error.exit(), error.hint().is_some()), (Exit::Missing, true), "{error}"),
            }
        }
    }
}
