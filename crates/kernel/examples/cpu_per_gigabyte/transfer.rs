//! One transfer between two namespaces, and the processor's time that it took.
//!
//! Sender and receiver are pinned to one processor with real-time priority, so that no other work comes between; the
//! kernel charges softirqs to whom they interrupt, which is nearly always one of the two. What hits the processor while both
//! sleep (timers that pace, say) is found by a third thread that spins there: the time in which its own clock went on and
//! its loop did not.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use pathcast_emu::inside;
use socket2::{Domain, Protocol, Socket, Type};

/// Longer gaps between two looks at the clock are not the loop's own.
const GAP_NS: u64 = 500;
/// A send buffer and a receive buffer of fixed size, so that the window of no controller is what bounds the flow.
const BUFFER: usize = 1 << 20;

/// What is sent, how, and from where.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub near: &'a str,
    pub far: &'a str,
    pub to: [u8; 4],
    pub protocol: Protocol,
    pub control: &'a str,
    pub bytes: u64,
    /// It ends then, whatever was sent.
    pub most: Duration,
    pub cpu: usize,
}

/// What it took.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    pub bytes: u64,
    pub busy_ns: u64,
    pub elapsed_ns: u64,
}

impl Cost {
    /// Seconds of processor time per 10^9 bytes.
    pub fn per_gigabyte(&self) -> f64 {
        self.busy_ns as f64 / self.bytes as f64
    }
    pub fn gigabits_per_s(&self) -> f64 {
        self.bytes as f64 * 8.0 / self.elapsed_ns as f64
    }
}

fn pin(cpu: usize) {
    // SAFETY: a bit set for which all zero is valid, changed by the functions for it, and the calling thread
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        assert_eq!(libc::sched_setaffinity(0, size_of_val(&set), &raw const set), 0, "pinning to processor {cpu}");
    }
}

fn real_time(priority: i32) {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: a valid struct, and the calling thread
    let failed = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const param) };
    if failed != 0 {
        // without it the numbers are noisier, and as true
        static SAID: std::sync::Once = std::sync::Once::new();
        SAID.call_once(|| eprintln!("note: no real-time priority here, so other work disturbs more"));
    }
}

fn thread_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a clock that every thread has, and a struct to write to
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time of the kernel's thread for softirqs of that processor (ns).
fn ksoftirqd_ns(cpu: usize) -> u64 {
    let name = format!("ksoftirqd/{cpu}\n");
    let found = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path()).find(|path| {
        path.file_name().is_some_and(|n| n.as_encoded_bytes()[0].is_ascii_digit())
            && fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm == name)
    });
    let text = found.and_then(|path| fs::read_to_string(path.join("schedstat")).ok()).unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0)
}

/// Spins until `stop`; the time (ns) that its clock counted and its loop did not have.
fn soak(cpu: usize, stop: &AtomicBool) -> u64 {
    pin(cpu);
    // SAFETY: the calling thread; it need not succeed
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
    let (begun, mut own, mut last) = (thread_ns(), 0, Instant::now());
    while !stop.load(Ordering::Relaxed) {
        let now = Instant::now();
        let gap = (now - last).as_nanos() as u64;
        own += if gap < GAP_NS { gap } else { 0 };
        last = now;
    }
    (thread_ns() - begun).saturating_sub(own)
}

fn socket(job: &Job<'_>) -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(job.protocol)).unwrap();
    socket.set_tcp_congestion(job.control.as_bytes()).unwrap();
    socket.set_send_buffer_size(BUFFER).unwrap();
    socket.set_recv_buffer_size(BUFFER).unwrap();
    socket
}

/// Makes the transfer.
pub fn run(job: Job<'_>) -> Cost {
    let over = AtomicBool::new(false);
    let listener = inside(job.far, || {
        let socket = socket(&job);
        socket.bind(&SocketAddr::from(([0; 4], 0)).into()).unwrap();
        socket.listen(1).unwrap();
        TcpListener::from(socket)
    })
    .unwrap();
    let to = SocketAddr::from((job.to, listener.local_addr().unwrap().port()));
    let near = inside(job.near, || {
        let socket = socket(&job);
        socket.connect(&to.into()).unwrap();
        TcpStream::from(socket)
    })
    .unwrap();
    let far = listener.accept().unwrap().0;
    thread::sleep(Duration::from_millis(50)); // further subflows are joined
    thread::scope(|scope| {
        let soaked = scope.spawn(|| soak(job.cpu, &over));
        let softirqs = ksoftirqd_ns(job.cpu);
        let start = Instant::now();
        let reader = scope.spawn(move || {
            let mut buffer = vec![0; 1 << 17];
            let mut far = far;
            pin(job.cpu);
            real_time(3); // before the sender, or it would read, and so acknowledge, once per buffer
            let begun = thread_ns();
            while far.read(&mut buffer).unwrap() > 0 {}
            thread_ns() - begun
        });
        let writer = scope.spawn(move || {
            let data = vec![7; 1 << 17];
            let (mut near, mut sent) = (near, 0);
            pin(job.cpu);
            real_time(2);
            let begun = thread_ns();
            while sent < job.bytes && start.elapsed() < job.most {
                near.write_all(&data).unwrap();
                sent += data.len() as u64;
            }
            drop(near);
            (sent, thread_ns() - begun)
        });
        let (bytes, writing) = writer.join().unwrap();
        let reading = reader.join().unwrap();
        let elapsed_ns = start.elapsed().as_nanos() as u64;
        over.store(true, Ordering::Relaxed);
        let busy_ns = writing + reading + soaked.join().unwrap() + (ksoftirqd_ns(job.cpu) - softirqs);
        Cost { bytes, busy_ns, elapsed_ns }
    })
}
