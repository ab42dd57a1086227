//! The program of a header of one's own: what a file in `bpf` would be. Privileged: it serves a flow.

mod live;
#[path = "../own.rs"]
mod own;

use std::fs;
use std::io::Write;
use std::mem::zeroed;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Command;

use libbpf_rs::{Link, MapCore, MapType, Object, ObjectBuilder};
use live::{Bulk, NEW, TWO, able, name, network, protocols, scenario, socket, until};
use pathcast_emu::inside;
use pathcast_kernel::registered;
use socket2::{Protocol, SockRef};

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");
/// A window that stays, of which every opportunity sends one packet.
const STILL: &str = r#"
#include "flow.h"
#define still_hooks (FLOW_INIT | FLOW_GROW | FLOW_SEND)
#define still_PARAMS(P) P(window, 100, 1, 1000, "packets", "of the test's")
struct still_params { still_PARAMS(FLOW_PARAM_FIELD) };
struct still_state { u32 unused; };
FLOW_FN void still_init(struct flow *f, struct still_state *s, const struct still_params *p)
{
	(void)s;
	f->cwnd = p->window;
}
FLOW_FN void still_grow(struct flow *f, const struct flow_ack *a, struct still_state *s, const struct still_params *p)
{
	(void)a, (void)s;
	f->cwnd = p->window;
}
FLOW_FN void still_send(struct flow *f, struct still_state *s, const struct still_params *p)
{
	(void)s, (void)p;
	f->burst = 1;
}
"#;

fn clang(arguments: &[&str]) -> Vec<u8> {
    let flags = env!("PATHCAST_CLANG_FLAGS").split('\t');
    let output = Command::new(env!("PATHCAST_CLANG")).args(flags).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn file(name: &str, text: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::write(&path, text).unwrap();
    path
}

#[test]
fn it_is_what_the_file_of_each_controller_is() {
    if Command::new(env!("PATHCAST_CLANG")).arg("--version").output().is_err() {
        println!("SKIPPED: clang is not installed; mend: apt-get install clang");
        return;
    }
    let mut compared = 0;
    for path in fs::read_dir(format!("{PACKAGE}/bpf")).unwrap().map(|entry| entry.unwrap().path()) {
        let Some(name) = path.to_str().unwrap().strip_suffix(".bpf.c").map(|path| path.rsplit('/').next().unwrap())
        else {
            continue;
        };
        let text = fs::read_to_string(&path).unwrap();
        let header = PathBuf::from(format!("{PACKAGE}/../congestion/src/c/{name}.h"));
        if !text.contains("shim.bpf.h") {
            continue; // the log of hooks
        }
        // a header says by NAME_X what the file says by CC_X
        let told = text.lines().filter_map(|line| line.strip_prefix("#define CC_"));
        let told: Vec<String> = told.map(|line| format!("-D{name}_{}", line.replace(' ', "="))).collect();
        let generic = file(&format!("{name}.bpf.c"), &own::program(name, &header));
        let mut arguments = vec!["-E", "-P", generic.to_str().unwrap()];
        arguments.extend(told.iter().map(String::as_str));
        let words = |arguments: &[&str]| -> Vec<String> {
            String::from_utf8(clang(arguments)).unwrap().split_whitespace().map(str::to_owned).collect()
        };
        assert!(words(&arguments) == words(&["-E", "-P", path.to_str().unwrap()]), "{name}");
        compared += 1;
    }
    assert!(compared > 10, "{compared}");
}

/// The controller of a header, under a name.
fn load(controller: &str, header: &Path, kernel: &str) -> (Object, Link) {
    let program = file(&format!("{controller}.bpf.c"), &own::program(controller, header));
    let built = program.with_extension("o");
    clang(&["-c", program.to_str().unwrap(), "-o", built.to_str().unwrap()]);
    let mut open = ObjectBuilder::default().open_file(&built).unwrap();
    for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
        let ops = map.initial_value_mut().unwrap();
        let at = ops.windows(14).position(|bytes| bytes == b"pc_placeholder").unwrap();
        ops[at..at + 16].fill(0);
        ops[at..at + kernel.len()].copy_from_slice(kernel.as_bytes());
    }
    let mut object = open.load().unwrap();
    let link = object.maps_mut().find(|map| map.map_type() == MapType::StructOps).unwrap().attach_struct_ops().unwrap();
    (object, link)
}

#[test]
fn a_controller_that_is_replaced_gives_the_window_back_that_it_lowered_for_a_burst() {
    let what = "another controller in the middle of a window";
    if !able(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&[("100Mbit", "300ms")], "200 packets")) else { return };
    let kernel = name();
    let (_object, _link) = load("still", &file("still.h", STILL), &kernel);
    let d = network.describe();
    let listener = inside(&d.server, || TcpListener::bind(SocketAddr::new(d.paths[0].remote, 0)).unwrap()).unwrap();
    let near = inside(&d.client, || socket(Protocol::TCP, Some(&kernel))).unwrap();
    near.connect(&listener.local_addr().unwrap().into()).unwrap();
    let mut near = TcpStream::from(near);
    near.write_all(&[7; 8 * 1448]).unwrap();
    SockRef::from(&near).set_tcp_congestion(b"reno").unwrap();
    // SAFETY: zeros are valid, and a place of that size
    let window = unsafe {
        let mut info: libc::tcp_info = zeroed();
        let mut size = size_of_val(&info) as libc::socklen_t;
        let place = (&raw mut info).cast();
        assert_eq!(libc::getsockopt(near.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, place, &mut size), 0);
        info.tcpi_snd_cwnd
    };
    assert!(window >= 100, "{window}");
}

#[test]
fn it_serves_flows_and_goes() {
    let what = "a controller of one's own in the kernel";
    if !able(what) {
        return;
    }
    let Some(network) = network(what, &name(), &scenario(&TWO, "50 packets")) else { return };
    let header = fs::canonicalize(format!("{PACKAGE}/../../examples/own_controller/aimd.h")).unwrap();
    let kernel = name();
    let (object, link) = load("aimd", &header, &kernel);
    assert!(registered().contains(&kernel));
    for &protocol in protocols() {
        let bulk = Bulk::start(&network, protocol, &kernel);
        let flows = || object.maps().find(|map| map.name() == "flows").unwrap().keys().count();
        until("a flow under it", || flows() >= 1);
        bulk.goes_on(NEW);
        bulk.stop();
        until("the end of its flows", || flows() == 0); // or one would be taken for the next
    }
    drop(link);
    until("the end of the registration", || !registered().contains(&kernel));
}
