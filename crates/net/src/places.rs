//! Which path each flow of a connection takes where addresses do not tell: by the flow's port at this end. A fabric of
//! switches is told of a flow before its first packet leaves, and of its end.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use pathcast_base::{PathAddr, Protocol};

use crate::error::NetError;
use crate::maker::{Family, SocketMaker, bind};

/// Whose ports a flow's are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Transport {
    /// TCP, and each subflow of MPTCP.
    Tcp,
    /// UDP.
    Udp,
}

impl Transport {
    /// As it is written: `tcp` or `udp`.
    pub fn name(self) -> &'static str {
        match self {
            Transport::Tcp => "tcp",
            Transport::Udp => "udp",
        }
    }
}

/// A flow, as its packets leave this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowEnds {
    /// Whose ports they are.
    pub transport: Transport,
    /// At this host.
    pub local: SocketAddr,
    /// At the far end.
    pub remote: SocketAddr,
}

/// A network that carries each flow over the path that it is told, such as OpenFlow switches with their controller.
pub trait Fabric: Send + Sync {
    /// Returns when packets of `flow`, in both directions, take `path`.
    ///
    /// # Errors
    /// Why they do not.
    fn begin(&self, flow: FlowEnds, path: &str) -> Result<(), String>;

    /// There will be no more packets of `flow`.
    fn end(&self, flow: FlowEnds);
}

/// The paths of one connection, and the local port of each of its flows where it is chosen here.
pub(crate) struct Places {
    paths: Vec<PathAddr>,
    ports: Vec<Option<u16>>,
    told: Vec<bool>,
    far_port: u16,
    maker: Arc<dyn SocketMaker>,
    fabric: Option<Arc<dyn Fabric>>,
}

impl Places {
    /// Of a connection to `far_port`. Nothing is told yet.
    pub fn new(
        paths: &[PathAddr],
        far_port: u16,
        maker: Arc<dyn SocketMaker>,
        fabric: Option<Arc<dyn Fabric>>,
    ) -> Places {
        let ports = paths.iter().map(|path| path.local_port).collect();
        Places { paths: paths.to_vec(), ports, told: vec![false; paths.len()], far_port, maker, fabric }
    }

    /// The paths.
    pub fn paths(&self) -> &[PathAddr] {
        &self.paths
    }

    /// The end at this host that the flow over path number `i` is to have; port 0: the kernel's choice.
    pub fn local(&self, i: usize) -> SocketAddr {
        SocketAddr::new(self.paths[i].local, self.ports[i].unwrap_or(0))
    }

    /// The far end of path number `i`.
    pub fn remote(&self, i: usize) -> SocketAddr {
        SocketAddr::new(self.paths[i].remote, self.far_port)
    }

    /// The number of the path that a flow between these ends takes.
    pub fn find(&self, local: SocketAddr, remote: IpAddr) -> Option<usize> {
        self.paths.iter().zip(&self.ports).position(|(path, port)| {
            (path.local, path.remote) == (local.ip(), remote) && port.is_none_or(|port| port == local.port())
        })
    }

    /// Chooses the port of the flow over path number `i`, and tells the fabric. Without a fabric nothing is done.
    ///
    /// # Errors
    /// No port, or a fabric that says no.
    pub fn begin(&mut self, i: usize) -> Result<(), NetError> {
        let Some(fabric) = self.fabric.clone() else { return Ok(()) };
        let path = &self.paths[i];
        if self.ports[i].is_none() {
            let ours: Vec<u16> = self.ports.iter().flatten().copied().collect();
            self.ports[i] = Some(free_port(&*self.maker, path.local, &ours).map_err(|e| match e.raw_os_error() {
                Some(libc::EADDRNOTAVAIL) => NetError::LocalAddress(path.local),
                _ => NetError::System { what: "choosing a port", source: e },
            })?);
        }
        let refused = |reason| NetError::Fabric { path: path.name.clone(), reason };
        fabric.begin(self.ends(i), &path.name).map_err(refused)?;
        self.told[i] = true;
        Ok(())
    }

    /// Forgets the flow over path number `i`: another one gets another port, unless the caller has named that.
    pub fn end(&mut self, i: usize) {
        if let (true, Some(fabric)) = (std::mem::take(&mut self.told[i]), &self.fabric) {
            fabric.end(self.ends(i));
            self.ports[i] = self.paths[i].local_port;
        }
    }

    /// Has the fabric been told of the flow over path number `i`?
    pub fn is_told(&self, i: usize) -> bool {
        self.told[i] || self.fabric.is_none()
    }

    fn ends(&self, i: usize) -> FlowEnds {
        FlowEnds { transport: Transport::Tcp, local: self.local(i), remote: self.remote(i) }
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        (0..self.paths.len()).for_each(|i| self.end(i));
    }
}

/// A port that nobody has now, and none of `others`, which may be free still. It is not kept: whoever takes it finds out
/// whether it still is free.
pub(crate) fn free_port(maker: &dyn SocketMaker, local: IpAddr, others: &[u16]) -> io::Result<u16> {
    let mut held = Vec::new(); // or the same one might be found again
    loop {
        let socket = maker.tcp(Family::of(local), Protocol::Tcp)?;
        bind(&socket, SocketAddr::new(local, 0))?;
        let bound = socket.local_addr()?.as_socket().map(|bound| bound.port());
        let port = bound.ok_or_else(|| io::Error::other("a TCP socket has no port"))?;
        if !others.contains(&port) {
            return Ok(port);
        }
        held.push(socket);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::maker::HostSockets;

    #[derive(Default)]
    struct Told(Mutex<Vec<(bool, u16, String)>>);

    impl Fabric for Told {
        fn begin(&self, flow: FlowEnds, path: &str) -> Result<(), String> {
            if path == "no" {
                return Err("its table is full".into());
            }
            self.0.lock().unwrap().push((true, flow.local.port(), path.into()));
            Ok(())
        }
        fn end(&self, flow: FlowEnds) {
            self.0.lock().unwrap().push((false, flow.local.port(), String::new()));
        }
    }

    fn path(name: &str) -> PathAddr {
        PathAddr::new(name, [127, 0, 0, 1].into(), [127, 0, 0, 2].into())
    }

    #[test]
    fn every_flow_has_its_port_and_is_ended_once() {
        let (told, paths) = (Arc::new(Told::default()), [path("a"), path("b"), path("no")]);
        let mut places = Places::new(&paths, 5270, Arc::new(HostSockets), Some(told.clone()));
        assert!((0..2).all(|i| places.begin(i).is_ok()));
        let error = places.begin(2).unwrap_err().to_string();
        assert!(error.contains("`no`") && error.contains("its table is full"), "{error}");
        let (a, b) = (places.local(0), places.local(1));
        assert!(a.port() != 0 && a != b);
        let far = paths[0].remote;
        assert_eq!((places.find(a, far), places.find(b, far)), (Some(0), Some(1)));
        places.end(1);
        assert_eq!((places.local(1).port(), places.is_told(1)), (0, false));
        drop(places);
        let seen: Vec<(bool, u16)> = told.0.lock().unwrap().iter().map(|(began, port, _)| (*began, *port)).collect();
        assert_eq!(seen, [(true, a.port()), (true, b.port()), (false, b.port()), (false, a.port())]);
    }

    #[test]
    fn without_a_fabric_the_kernel_chooses() {
        let paths = [path("a")];
        let mut places = Places::new(&paths, 5270, Arc::new(HostSockets), None);
        places.begin(0).unwrap();
        assert_eq!(places.local(0).port(), 0);
        assert_eq!(places.find("127.0.0.1:9".parse().unwrap(), paths[0].remote), Some(0));
    }
}
