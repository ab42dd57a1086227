//! Two hosts with two links between them, a server, and a statically linked client.
//!
//! ```text
//! client 10.8.1.1 --- 10.8.1.2 server 10.8.9.1
//!        10.8.2.1 --- 10.8.2.2
//! ```

#![allow(dead_code)] // every test file uses a part

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use pathcast_launch::{Launch, LaunchError, Outcome};
use socket2::{Domain, Protocol, Socket, Type};

pub const SERVER: &str = "10.8.9.1";

/// Waits until `found` gives something.
pub fn until<T>(what: &str, mut found: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(value) = found() {
            return value;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "no {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A directory and namespaces of this test, removed at its end.
pub struct World {
    pub name: String,
    pub directory: PathBuf,
}

fn ip(arguments: &str) -> Result<(), String> {
    let output = Command::new("ip").args(arguments.split_whitespace()).output().map_err(|e| e.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {arguments}: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

impl World {
    /// None, with a line that says what is missing, where it cannot be.
    pub fn new(test: &str) -> Option<World> {
        let skip = |why: &str| {
            println!("SKIPPED: {test}: {why}");
            None
        };
        // SAFETY: no arguments
        if unsafe { libc::geteuid() } != 0 {
            return skip("needs root for network namespaces");
        }
        if !Path::new("/proc/sys/net/mptcp").exists() {
            return skip("this kernel has no MPTCP");
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!("pclaunch{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let directory = std::env::temp_dir().join(&name);
        let world = World { name, directory };
        world.remove(); // what a killed test of the same number has left
        for host in ["c", "s"] {
            if let Err(why) = ip(&format!("netns add {}{host}", world.name)) {
                assert_eq!(host, "c", "{why}");
                return skip(&format!("network namespaces cannot be made here: {why}"));
            }
        }
        world.build().unwrap_or_else(|why| panic!("{why}")); // what has namespaces has the rest
        Some(world)
    }

    fn build(&self) -> Result<(), String> {
        fs::create_dir_all(&self.directory).map_err(|e| e.to_string())?;
        let (c, s) = (format!("{}c", self.name), format!("{}s", self.name));
        for host in [&c, &s] {
            ip(&format!("-n {host} link set lo up"))?;
        }
        ip(&format!("-n {s} addr add {SERVER}/32 dev lo"))?;
        ip(&format!("-n {s} mptcp limits set subflows 8"))?;
        for n in [1, 2] {
            ip(&format!("-n {c} link add c{n} type veth peer name s{n} netns {s}"))?;
            ip(&format!("-n {c} addr add 10.8.{n}.1/24 dev c{n}"))?;
            ip(&format!("-n {s} addr add 10.8.{n}.2/24 dev s{n}"))?;
            ip(&format!("-n {c} link set c{n} up"))?;
            ip(&format!("-n {s} link set s{n} up"))?;
            ip(&format!("-n {c} route add default via 10.8.{n}.2 dev c{n} metric {n}"))?;
            ip(&format!("-n {c} route add default via 10.8.{n}.2 dev c{n} table {n}"))?;
            ip(&format!("-n {c} rule add from 10.8.{n}.1 table {n}"))?;
        }
        Ok(())
    }

    fn remove(&self) {
        for host in ["c", "s"].map(|host| format!("{}{host}", self.name)) {
            if Path::new("/run/netns").join(&host).exists() {
                let _ = ip(&format!("netns del {host}"));
            }
        }
        let _ = fs::remove_dir_all(&self.directory);
    }

    /// A shaped path 1 and 2 from the client.
    pub fn shape(&self, rate: &str) -> bool {
        [1, 2].iter().all(|n| {
            let text = format!("-n {}c qdisc add dev c{n} root tbf rate {rate} burst 20kb limit 60kb", self.name);
            Command::new("tc").args(text.split_whitespace()).status().is_ok_and(|s| s.success())
        })
    }

    /// What `ip -n <client> ARGUMENTS` says.
    pub fn ip(&self, arguments: &str) -> String {
        let text = format!("-n {}c {arguments}", self.name);
        let output = Command::new("ip").args(text.split_whitespace()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// `ip -n <server> ARGUMENTS`.
    pub fn far(&self, arguments: &str) {
        ip(&format!("-n {}s {arguments}", self.name)).unwrap();
    }

    /// Runs `work` on a thread in the namespace of `c` or `s`.
    pub fn inside<T: Send + 'static>(&self, host: &str, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
        let namespace = File::open(format!("/run/netns/{}{host}", self.name)).unwrap();
        thread::spawn(move || {
            // SAFETY: an open descriptor; only this thread changes its namespace
            assert_eq!(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }, 0);
            work()
        })
    }

    /// A launch of `command` with its standard output in a file.
    pub fn launch(&self, out: &str, command: &[&str]) -> Launch {
        let file = self.directory.join(out).display().to_string();
        let mut words = vec!["sh", "-c", "exec \"$@\" >\"$0\"", &file];
        words.extend(command);
        Launch { directory: self.directory.clone(), user: Some("root".into()), ..Launch::new(words) }
    }

    /// Runs it in the client's namespace.
    pub fn run(&self, launch: Launch) -> Result<Outcome, LaunchError> {
        self.inside("c", move || launch.run()).join().unwrap()
    }

    /// The file that [`World::launch`] names.
    pub fn output(&self, out: &str) -> String {
        fs::read_to_string(self.directory.join(out)).unwrap_or_default()
    }

    /// The statically linked client; none without a C compiler.
    pub fn client(&self, test: &str) -> Option<String> {
        let program = self.directory.join("client");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/client.c");
        let mut cc = Command::new("cc");
        cc.args(["-static", "-O1", "-pthread", "-o"]).arg(&program).arg(source);
        match cc.output() {
            Ok(o) if o.status.success() => Some(program.display().to_string()),
            Ok(o) => {
                let why = String::from_utf8_lossy(&o.stderr);
                assert!(why.contains("cannot find -l"), "{why}"); // else the program is wrong
                println!("SKIPPED: {test}: no static libraries here: {}", why.lines().next().unwrap_or_default());
                None
            }
            Err(e) => {
                println!("SKIPPED: {test}: no C compiler (Debian package gcc): {e}");
                None
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Reads what comes on a port until the end, answers, and closes.
pub struct Sink {
    /// Reads nothing before it is true.
    pub reads: Arc<AtomicBool>,
    pub port: u16,
    pub connections: Arc<AtomicU64>,
    /// Connections that spoke Multipath TCP to us.
    pub mptcp: Arc<AtomicU64>,
    pub bytes: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

fn over_mptcp(socket: &Socket) -> bool {
    let mut info = [0u8; 96];
    let mut size = info.len() as libc::socklen_t;
    // SAFETY: the buffer is as long as is said; 284 is SOL_MPTCP, 1 MPTCP_INFO
    let done = unsafe { libc::getsockopt(socket.as_raw_fd(), 284, 1, info.as_mut_ptr().cast(), &raw mut size) };
    done == 0 && info[8] & 1 == 0 // the first flag: fallen back
}

impl Sink {
    /// In the server's namespace; `answer` bytes go back.
    pub fn start(world: &World, answer: usize) -> Sink {
        Sink::make(world, answer, true)
    }

    /// It has little room, and does not read yet.
    pub fn full(world: &World) -> Sink {
        Sink::make(world, 0, false)
    }

    fn make(world: &World, answer: usize, reads: bool) -> Sink {
        let make = move || {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).unwrap();
            if !reads {
                socket.set_recv_buffer_size(1 << 14).unwrap();
            }
            socket.bind(&"0.0.0.0:0".parse::<SocketAddr>().unwrap().into()).unwrap();
            socket.listen(512).unwrap();
            socket
        };
        let socket = world.inside("s", make).join().unwrap();
        let port = socket.local_addr().unwrap().as_socket().unwrap().port();
        let [connections, mptcp, bytes] = [(); 3].map(|()| Arc::new(AtomicU64::new(0)));
        let [reads, ended] = [reads, false].map(|is| Arc::new(AtomicBool::new(is)));
        let sink = Sink {
            reads: reads.clone(),
            port,
            connections: connections.clone(),
            mptcp: mptcp.clone(),
            bytes: bytes.clone(),
            ended: ended.clone(),
        };
        socket.set_nonblocking(true).unwrap();
        thread::spawn(move || {
            while !ended.load(Ordering::SeqCst) {
                let mut poll = libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one valid pollfd
                unsafe { libc::poll(&mut poll, 1, 50) };
                let Ok((mut peer, _)) = socket.accept() else { continue };
                peer.set_nonblocking(false).unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                if over_mptcp(&peer) {
                    mptcp.fetch_add(1, Ordering::SeqCst);
                }
                let (bytes, reads, ended) = (bytes.clone(), reads.clone(), ended.clone());
                thread::spawn(move || {
                    while !reads.load(Ordering::SeqCst) && !ended.load(Ordering::SeqCst) {
                        thread::sleep(Duration::from_millis(5));
                    }
                    let mut buffer = vec![0; 1 << 16];
                    while let Ok(n @ 1..) = peer.read(&mut buffer) {
                        bytes.fetch_add(n as u64, Ordering::SeqCst);
                    }
                    let _ = peer.write_all(&vec![b'x'; answer]);
                });
            }
        });
        sink
    }

    pub fn counts(&self) -> (u64, u64, u64) {
        let of = |a: &AtomicU64| a.load(Ordering::SeqCst);
        (of(&self.connections), of(&self.mptcp), of(&self.bytes))
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}
