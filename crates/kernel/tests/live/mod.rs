//! For tests: names and defaults of controllers, and flows under them between the two hosts of an emulated network.
#![allow(dead_code)] // every test binary uses its part

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::{Duration, Instant};

use pathcast_base::{Exit, Fault};
use pathcast_congestion::{Params, controller};
use pathcast_emu::{Network, inside};
use pathcast_kernel::{Loaded, ready};
use pathcast_scenario::Direction;
use socket2::{Domain, Protocol, Socket, Type};

/// Unless `error` says that this machine lacks something, it is a failure.
pub fn skip(what: &str, error: &(dyn Fault + 'static)) {
    assert!(error.exit() == Exit::Missing, "{error}");
    println!("SKIPPED: {what}: {error}");
}

/// Whether controllers can be loaded here; says what is missing.
pub fn able(what: &str) -> bool {
    ready().map_err(|error| skip(what, &error)).is_ok()
}

pub fn multipath() -> bool {
    std::fs::exists("/proc/sys/net/mptcp").unwrap_or(false)
}

/// Whether this kernel has MPTCP; says that it is missing.
pub fn able_multipath(what: &str) -> bool {
    let able = multipath();
    if !able {
        println!("SKIPPED: {what}: this kernel has no MPTCP; mend: a kernel with CONFIG_MPTCP");
    }
    able
}

/// TCP, and MPTCP where this kernel has it.
pub fn protocols() -> &'static [Protocol] {
    if multipath() { &[Protocol::TCP, Protocol::MPTCP] } else { &[Protocol::TCP] }
}

/// A name that nobody else in this kernel has, for a controller or a network.
pub fn name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("pck{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}

pub fn defaults(control: &str) -> Params {
    Params::new(controller(control).unwrap())
}

/// Waits for what comes late: sockets are released some time after they were closed, and the kernel frees later.
/// An orphan gives its FIN up after eight timeouts that double: 0.2 (2^9 - 1) = 102 s where none was counted before.
pub fn until(what: &str, done: impl Fn() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(130), "never: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Waits for the release of all flows; nothing of them may be left.
pub fn until_released(loaded: &Loaded) {
    until("the release of all flows", || {
        let counts = loaded.counts().unwrap();
        counts.closed == counts.opened
    });
    assert_eq!((loaded.connections(), loaded.flows().unwrap().len()), (0, 0), "the maps are empty");
}

/// Two paths of unequal rates and delays, for [`scenario`].
pub const TWO: [(&str, &str); 2] = [("20Mbit", "10ms"), ("10Mbit", "20ms")];

/// Disjoint paths: rate and one-way delay of each.
pub fn scenario(paths: &[(&str, &str)], queue: &str) -> String {
    let mut text = String::from("name = \"live\"\n");
    for (n, (rate, delay)) in paths.iter().enumerate() {
        text += &format!(
            "[[link]]\nname = \"l{n}\"\na = \"client\"\nb = \"server\"\nrate = \"{rate}\"\ndelay = \"{delay}\"\n\
             queue = \"{queue}\"\n"
        );
    }
    for n in 0..paths.len() {
        text += &format!("[[path]]\nname = \"path{n}\"\nlinks = [\"l{n}\"]\n");
    }
    text
}

/// A network, or the reason why this machine cannot have one, printed.
pub fn network(what: &str, id: &str, text: &str) -> Option<Network> {
    match Network::up(text, &[], id) {
        Ok(network) => Some(network),
        Err(error) => {
            skip(what, &*error);
            None
        }
    }
}

/// Sets a key of all links.
pub fn set(network: &mut Network, links: usize, key: &str, value: &str) {
    for n in 0..links {
        network.set(&format!("l{n}"), None, &[(key.into(), value.into())]).unwrap();
    }
}

/// A socket of the calling thread's namespace, under `control` if that is given.
pub fn socket(protocol: Protocol, control: Option<&str>) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)).unwrap();
    if let Some(name) = control {
        socket.set_tcp_congestion(name.as_bytes()).unwrap();
    }
    socket
}

/// A connection from the client to the server: the end that sends (the client for `Ab`), the one that reads, and the listener,
/// which further subflows need. `control` is the sender's.
pub fn connect(network: &Network, protocol: Protocol, up: Direction, control: &str) -> (Socket, Socket, Socket) {
    let active = up == Direction::Ab;
    let d = network.describe();
    let listener = inside(&d.server, || {
        let socket = socket(protocol, (!active).then_some(control));
        // of any address: further subflows go to other ones
        socket.bind(&SocketAddr::from(([0; 4], 0)).into()).unwrap();
        socket.listen(1).unwrap();
        socket
    })
    .unwrap();
    let near = inside(&d.client, || {
        let socket = socket(protocol, active.then_some(control));
        let port = listener.local_addr().unwrap().as_socket().unwrap().port();
        socket.connect(&SocketAddr::new(d.paths[0].remote, port).into()).unwrap();
        socket
    })
    .unwrap();
    let far = listener.accept().unwrap().0;
    let (sends, reads) = if active { (near, far) } else { (far, near) };
    sends.set_send_buffer_size(256 << 10).unwrap(); // of which the kernel makes twice as much
    // room for all that the sender may have out: Linux 6.18 takes nothing more into a buffer that is full of what came early
    // over one subflow, not even the missing piece of the other, and such a connection stands still
    reads.set_recv_buffer_size(4 << 20).unwrap();
    sends.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    (sends, reads, listener)
}

/// What both hosts have counted of Multipath TCP, for a failure.
pub fn counted(network: &Network) -> String {
    let d = network.describe();
    let read = |host: &str| {
        inside(host, || std::fs::read_to_string("/proc/thread-self/net/netstat")).unwrap().unwrap_or_default()
    };
    let told = |host: &str| {
        let text = read(host);
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("MPTcpExt: "));
        let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
        let both = names.split(' ').zip(values.split(' ')).filter(|(_, value)| *value != "0");
        both.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    };
    format!("client: {}; server: {}", told(&d.client), told(&d.server))
}

/// Reads to the end; the bytes that came.
pub fn swallow(stream: TcpStream) -> u64 {
    count(stream, &AtomicU64::new(0))
}

/// The same; `read` is what has come so far.
fn count(mut stream: TcpStream, read: &AtomicU64) -> u64 {
    let mut buffer = vec![0; 1 << 18];
    loop {
        match stream.read(&mut buffer).unwrap() {
            0 => return read.load(Ordering::SeqCst),
            n => read.fetch_add(n as u64, Ordering::SeqCst),
        };
    }
}

/// More bytes than a [`Bulk`] can have written and not yet brought to the other end's reader.
pub const NEW: u64 = 700_000;

/// A host that sends without pause until it is stopped, to one that reads all.
pub struct Bulk {
    running: Arc<AtomicBool>,
    read: Arc<AtomicU64>,
    writer: JoinHandle<u64>,
    reader: JoinHandle<u64>,
    _listener: Socket,
}

impl Bulk {
    /// From the client.
    pub fn start(network: &Network, protocol: Protocol, control: &str) -> Bulk {
        Bulk::of(network, protocol, Direction::Ab, control)
    }
    /// From the client (`Ab`) or the server.
    pub fn of(network: &Network, protocol: Protocol, up: Direction, control: &str) -> Bulk {
        let (sends, reads, listener) = connect(network, protocol, up, control);
        let running = Arc::new(AtomicBool::new(true));
        let going = running.clone();
        let writer = thread::spawn(move || {
            let (data, mut sent) = ([7u8; 16 << 10], 0);
            let mut stream = TcpStream::from(sends);
            while going.load(Ordering::SeqCst) {
                stream.write_all(&data).expect("the peer reads until the end");
                sent += data.len() as u64;
            }
            sent
        });
        let read = Arc::new(AtomicU64::new(0));
        let so_far = read.clone();
        let reader = thread::spawn(move || count(reads.into(), &so_far));
        Bulk { running, read, writer, reader, _listener: listener }
    }
    /// Waits until so many more bytes were read; from [`NEW`] on, the last of them were written since.
    pub fn goes_on(&self, bytes: u64) {
        let before = self.read.load(Ordering::SeqCst);
        until("further bytes at the other end", || self.read.load(Ordering::SeqCst) >= before + bytes);
    }
    /// Stops it; the bytes that were written, which are those that arrived.
    pub fn stop(self) -> u64 {
        self.running.store(false, Ordering::SeqCst);
        let sent = self.writer.join().unwrap();
        assert_eq!(self.reader.join().unwrap(), sent, "all that is written arrives");
        sent
    }
}
