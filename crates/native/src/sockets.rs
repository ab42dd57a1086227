//! Sockets inside a namespace: where `net` meets `emu`.

use std::io;
use std::sync::Arc;

use pathcast_net::{HostSockets, SocketMaker};

struct InNamespace(String);

impl SocketMaker for InNamespace {
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> io::Result<()> {
        pathcast_emu::inside(&self.0, work)
    }
}

/// Of the namespace, or of this host.
pub fn sockets(namespace: Option<String>) -> Arc<dyn SocketMaker> {
    match namespace {
        Some(name) => Arc::new(InNamespace(name)),
        None => Arc::new(HostSockets),
    }
}
