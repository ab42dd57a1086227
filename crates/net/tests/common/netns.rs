//! Two hosts and a router between them, in namespaces:
//!
//! ```text
//! client 10.7.1.1 --- 10.7.1.254 r 10.7.3.254 --- 10.7.3.1 server
//!        10.7.2.1 --- 10.7.2.254 r 10.7.4.254 --- 10.7.4.1
//! ```
//! and the same in fd07:<n>::/64. Every client and server address has a routing rule of its own.

use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use pathcast_net::{Family, Protocol, SocketMaker};
use socket2::Socket;

const PREFIX: &str = "pcn";

/// Makes sockets in a namespace.
pub struct Namespace(String);

impl SocketMaker for Namespace {
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> io::Result<()> {
        let namespace = File::open(format!("/run/netns/{}", self.0))?;
        thread::scope(|scope| {
            let entered = scope.spawn(move || {
                // SAFETY: a valid descriptor; only this thread changes its namespace
                if unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) } != 0 {
                    return Err(io::Error::last_os_error());
                }
                work();
                Ok(())
            });
            entered.join().unwrap()
        })
    }
}

pub struct Net {
    id: String,
}

fn ip(arguments: &str) -> bool {
    let output = Command::new("ip").args(arguments.split_whitespace()).output();
    match output {
        Ok(o) if o.status.success() => true,
        Ok(o) => {
            eprintln!("ip {arguments}: {}", String::from_utf8_lossy(&o.stderr).trim());
            false
        }
        Err(e) => {
            eprintln!("ip: {e}");
            false
        }
    }
}

impl Net {
    /// The network, or `None` with a line that says what is missing.
    pub fn new(test: &str) -> Option<Net> {
        // SAFETY: no arguments
        if unsafe { libc::geteuid() } != 0 {
            println!("SKIPPED: {test}: needs root for network namespaces");
            return None;
        }
        if !std::path::Path::new("/proc/sys/net/mptcp").exists() {
            println!("SKIPPED: {test}: this kernel has no MPTCP");
            return None;
        }
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let id = format!("{PREFIX}{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let net = Net { id };
        net.remove(); // what another process of this number has left
        if !ip(&format!("netns add {}c", net.id)) {
            println!("SKIPPED: {test}: network namespaces cannot be made here");
            return None;
        }
        assert!(net.build(), "what has namespaces has the rest");
        Some(net)
    }

    pub fn client(&self) -> Arc<dyn SocketMaker> {
        Arc::new(Namespace(format!("{}c", self.id)))
    }
    pub fn server(&self) -> Arc<dyn SocketMaker> {
        Arc::new(Namespace(format!("{}s", self.id)))
    }

    fn remove(&self) {
        for host in ["c", "r", "s"].map(|host| format!("{}{host}", self.id)) {
            if std::path::Path::new("/run/netns").join(&host).exists() {
                ip(&format!("netns del {host}"));
            }
        }
    }

    /// `ip` in the namespace of `c`, `r` or `s`.
    pub fn ip(&self, host: &str, arguments: &str) -> bool {
        ip(&format!("-n {}{host} {arguments}", self.id))
    }

    pub fn tc(&self, host: &str, arguments: &str) {
        let mut command = Command::new("tc");
        command.arg("-n").arg(format!("{}{host}", self.id)).args(arguments.split_whitespace());
        let done = command.output().expect("tc");
        assert!(done.status.success(), "tc {arguments}: {}", String::from_utf8_lossy(&done.stderr));
    }

    /// Loads packet filter rules in the namespace of `c`, `r` or `s`; false where they cannot be had.
    pub fn nft(&self, host: &str, rules: &str) -> bool {
        let namespace = format!("{}{host}", self.id);
        let output = Command::new("ip").args(["netns", "exec", &namespace, "nft", rules]).output();
        output.is_ok_and(|o| o.status.success())
    }

    /// What a device of `c`, `r` or `s` has sent [byte].
    pub fn sent(&self, host: &str, device: &str) -> u64 {
        let mut text = String::new();
        Namespace(format!("{}{host}", self.id))
            .run(&mut || text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap())
            .unwrap();
        let row = text.lines().find_map(|line| line.trim_start().strip_prefix(&format!("{device}:"))).unwrap();
        row.split_whitespace().nth(8).unwrap().parse().unwrap()
    }

    fn build(&self) -> bool {
        let r = &self.id;
        let hosts = ["r", "s"].iter().all(|h| ip(&format!("netns add {r}{h}")))
            && ["c", "r", "s"].iter().all(|h| self.ip(h, "link set lo up"));
        let no_waiting = |h: &&str| {
            // or IPv6 would be silent for its first second
            let namespace = Namespace(format!("{r}{h}"));
            ["all", "default"].iter().all(|d| namespace.set_sysctl(&format!("ipv6/conf/{d}/accept_dad"), "0").is_ok())
        };
        let mut good = hosts && ["c", "r", "s"].iter().all(no_waiting);
        for (n, host, end) in [(1, "c", "c1"), (2, "c", "c2"), (3, "s", "s1"), (4, "s", "s2")] {
            good = good
                && self.ip(host, &format!("link add {end} type veth peer name r{n} netns {r}r"))
                && self.ip(host, &format!("addr add 10.7.{n}.1/24 dev {end}"))
                && self.ip(host, &format!("addr add fd07:{n}::1/64 dev {end} nodad"))
                && self.ip("r", &format!("addr add 10.7.{n}.254/24 dev r{n}"))
                && self.ip("r", &format!("addr add fd07:{n}::fe/64 dev r{n} nodad"))
                && self.ip(host, &format!("link set {end} up"))
                && self.ip("r", &format!("link set r{n} up"));
            for (v, gateway, from) in [
                ("-4", format!("10.7.{n}.254"), format!("10.7.{n}.1")),
                ("-6", format!("fd07:{n}::fe"), format!("fd07:{n}::1")),
            ] {
                good = good
                    && self.ip(host, &format!("{v} route add default via {gateway} dev {end} metric {n}"))
                    && self.ip(host, &format!("{v} route add default via {gateway} dev {end} table {n}"))
                    && self.ip(host, &format!("{v} rule add from {from} table {n}"));
            }
        }
        let router = Namespace(format!("{r}r"));
        good && router.set_sysctl("ipv4/ip_forward", "1").is_ok()
            && router.set_sysctl("ipv6/conf/all/forwarding", "1").is_ok()
            && self.ip("s", "mptcp limits set subflows 8")
    }

    /// Shapes path 1 and path 2 towards the server.
    pub fn shape(&self, first: &str, second: &str) {
        for (device, rate) in [("r3", first), ("r4", second)] {
            self.tc("r", &format!("qdisc replace dev {device} root tbf rate {rate} burst 20kb limit 200kb"));
        }
    }

    /// Shapes path 1 towards the server so that no two packets pass together.
    pub fn narrow(&self, rate: &str) {
        self.tc("r", &format!("qdisc replace dev r3 root tbf rate {rate} burst 1540 limit 200kb"));
    }

    /// Shapes what the client sends over path 1, in a queue of its own host.
    pub fn shape_client(&self, rate: &str) {
        self.tc("c", &format!("qdisc replace dev c1 root tbf rate {rate} burst 1540 limit 200kb"));
    }

    /// Lets the router swallow everything of path `n` (1 or 2), without a word.
    pub fn kill(&self, n: u32) {
        self.blackhole("add", n);
    }
    /// Undoes [`Net::kill`].
    pub fn heal(&self, n: u32) {
        self.blackhole("del", n);
    }
    /// Lets the router swallow what goes to the client's address of line `n`: that line is dead, the server's are not.
    pub fn cut(&self, n: u32) {
        self.blackhole_of("add", &[n]);
    }
    /// Undoes [`Net::cut`].
    pub fn mend(&self, n: u32) {
        self.blackhole_of("del", &[n]);
    }
    fn blackhole(&self, verb: &str, n: u32) {
        self.blackhole_of(verb, &[n, n + 2]);
    }
    fn blackhole_of(&self, verb: &str, ends: &[u32]) {
        for end in ends {
            assert!(self.ip("r", &format!("route {verb} blackhole 10.7.{end}.1/32")));
        }
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Removes what earlier runs left when they were killed.
pub fn sweep() {
    let Ok(names) = std::fs::read_dir("/run/netns") else { return };
    for name in names.flatten().filter_map(|e| e.file_name().into_string().ok()) {
        let Some(pid) = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()) else { continue };
        if pid.parse::<u32>().is_ok() && !std::path::Path::new("/proc").join(pid).exists() {
            ip(&format!("netns del {name}"));
        }
    }
}

/// MPTCP connections of another program at the client, on its loopback: each is several events.
pub fn noise(net: &Net, count: usize) {
    let maker = net.client();
    let make = || maker.tcp(Family::V4, Protocol::Mptcp).unwrap();
    let listener = make();
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    listener.listen(16).unwrap();
    for _ in 0..count {
        let socket = make();
        socket.connect(&listener.local_addr().unwrap()).unwrap();
        drop((listener.accept().unwrap(), socket));
    }
}

/// A client whose netlink sockets have hardly any room, and miss each event that says that a connection is established.
pub struct Deaf(pub Arc<dyn SocketMaker>);

impl SocketMaker for Deaf {
    fn run(&self, work: &mut (dyn FnMut() + Send)) -> io::Result<()> {
        self.0.run(work)
    }
    fn netlink_generic(&self) -> io::Result<OwnedFd> {
        let socket = Socket::from(self.0.netlink_generic()?);
        socket.set_recv_buffer_size(1)?;
        let step = |code: u32, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
        let mut steps = [
            step(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, 0, 0, 16), // the command, after the netlink header
            step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, 2), // MPTCP_EVENT_ESTABLISHED
            step(libc::BPF_RET | libc::BPF_K, 0, 0, 0),
            step(libc::BPF_RET | libc::BPF_K, 0, 0, u32::MAX),
        ];
        let filter = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
        let (name, size) = (libc::SO_ATTACH_FILTER, size_of_val(&filter) as libc::socklen_t);
        // SAFETY: a filter that lives through the call, and its size
        let done =
            unsafe { libc::setsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, name, (&raw const filter).cast(), size) };
        assert_eq!(done, 0, "{}", io::Error::last_os_error());
        Ok(socket.into())
    }
}
