//! The test build of a controller's object (`bpf/record.h`), the calls that it makes or records, and their native replay.
#![allow(dead_code)] // every test binary uses its part

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};

use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, MapType, Object, ObjectBuilder, ProgramInput, RingBuffer};
use pathcast_congestion::{Ack, Event, Flow, Info, Instance, Params};

pub const INIT: u32 = 0;
pub const ACK: u32 = 1;
pub const GROW: u32 = 2;
pub const SSTHRESH: u32 = 3;
pub const UNDO: u32 = 4;
pub const EVENT: u32 = 5;
pub const SEND: u32 = 6;
pub const RELEASE: u32 = 7;
pub const EVENTS: [Event; 4] = [Event::TxStart, Event::Idle, Event::Recovered, Event::Timeout];

const FLOW: usize = size_of::<Flow>();
const ACK_BYTES: usize = size_of::<Ack>();
const PLACEHOLDER: &[u8] = b"pc_placeholder";

fn flow_bytes(flow: &Flow) -> [u8; FLOW] {
    // SAFETY: repr(C) of integers without padding, as many bytes as it has
    unsafe { std::mem::transmute::<Flow, [u8; FLOW]>(*flow) }
}
fn flow_of(bytes: &[u8]) -> Flow {
    let bytes: [u8; FLOW] = bytes.try_into().expect("a flow");
    // SAFETY: integers only, of which all bit patterns are values
    unsafe { std::mem::transmute::<[u8; FLOW], Flow>(bytes) }
}
fn ack_of(bytes: &[u8]) -> Ack {
    let bytes: [u8; ACK_BYTES] = bytes.try_into().expect("an ack");
    // SAFETY: integers only
    unsafe { std::mem::transmute::<[u8; ACK_BYTES], Ack>(bytes) }
}
fn ack_bytes(ack: &Ack) -> [u8; ACK_BYTES] {
    // SAFETY: repr(C) of four u32
    unsafe { std::mem::transmute::<Ack, [u8; ACK_BYTES]>(*ack) }
}
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// What a call gave: the fields that a controller may set, the return value, and its whole private state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub result: u32,
    /// cwnd, cwnd_cnt, ssthresh, post_to, post; of init and grow only, as drivers ignore them elsewhere.
    pub window: Option<[u32; 5]>,
    pub burst: u32,
    pub pace: u64,
    pub word: [u64; 2],
    /// The window in recovery.
    pub recovery: u32,
    pub state: Vec<u8>,
}

impl Outcome {
    fn of(hook: u32, result: u32, flow: &Flow, state: &[u8]) -> Outcome {
        let window = [flow.cwnd, flow.cwnd_cnt, flow.ssthresh, flow.post_to, flow.post];
        Outcome {
            result,
            window: matches!(hook, INIT | GROW).then_some(window),
            burst: flow.burst,
            pace: flow.pace_bytes_per_s,
            word: flow.word,
            recovery: flow.window,
            state: state.to_vec(),
        }
    }
}

/// Makes the call natively.
pub fn native(instance: &mut Instance, hook: u32, event: u32, flow: &mut Flow, ack: &Ack) -> Outcome {
    let mut result = 0;
    match hook {
        INIT => instance.init(flow),
        ACK => instance.ack(flow, ack),
        GROW => instance.grow(flow, ack),
        SSTHRESH => result = instance.ssthresh(flow),
        UNDO => result = instance.undo(flow),
        EVENT => instance.event(flow, EVENTS[event as usize]),
        SEND => instance.send(flow),
        _ => instance.release(flow),
    }
    Outcome::of(hook, result, flow, &instance.state())
}

/// One call of a live flow's controller in the kernel.
#[derive(Clone, Debug)]
pub struct Call {
    pub socket: u64,
    pub hook: u32,
    pub event: u32,
    pub before: Flow,
    pub ack: Ack,
    /// Whether the ACK told the one-way delay.
    pub delay: bool,
    pub after: Outcome,
}

impl Call {
    /// The hook of a call that lies in a ring.
    pub fn hook(bytes: &[u8]) -> u32 {
        u32_at(bytes, 8)
    }

    fn read(bytes: &[u8], state_bytes: usize) -> Call {
        let hook = Call::hook(bytes);
        let (before, rest) = bytes[24..].split_at(FLOW);
        let (ack, rest) = rest.split_at(ACK_BYTES);
        let field = |n: usize| u32_at(rest, 4 * n);
        let window = [field(0), field(1), field(2), field(10), field(11)];
        Call {
            socket: u64_at(bytes, 0),
            hook,
            event: u32_at(bytes, 12),
            before: flow_of(before),
            ack: ack_of(ack),
            delay: u32_at(ack, 12) == 1,
            after: Outcome {
                result: u32_at(bytes, 16),
                window: matches!(hook, INIT | GROW).then_some(window),
                burst: field(3),
                pace: u64_at(rest, 16),
                word: [u64_at(rest, 24), u64_at(rest, 32)],
                recovery: field(12),
                state: rest[56..56 + state_bytes].to_vec(),
            },
        }
    }
}

/// The object of a controller's test build, which each process makes once.
fn compiled(controller: &'static str) -> Arc<Vec<u8>> {
    type Once = Arc<OnceLock<Arc<Vec<u8>>>>;
    static OBJECTS: Mutex<BTreeMap<&str, Once>> = Mutex::new(BTreeMap::new());
    let object = OBJECTS.lock().unwrap().entry(controller).or_default().clone();
    object.get_or_init(|| Arc::new(compile(controller))).clone()
}

fn compile(controller: &str) -> Vec<u8> {
    let of = |folder: &str| format!("{folder}/{controller}.bpf.c");
    let source = Some(of(concat!(env!("CARGO_MANIFEST_DIR"), "/bpf"))).filter(|source| Path::new(source).exists());
    let source = source.unwrap_or_else(|| of(env!("OUT_DIR"))); // of PATHCAST_CONTROLLERS
    // what the compiler reads, and which it is; a second or two for each, if no test has made the same before
    let mut made_of = DefaultHasher::new();
    (clang(&["-DSHIM_TEST", "-E", &source]), clang(&["--version"]), env!("PATHCAST_CLANG_FLAGS")).hash(&mut made_of);
    let object = format!("{}/{controller}-{:016x}.bpf.o", env!("CARGO_TARGET_TMPDIR"), made_of.finish());
    if let Ok(bytes) = fs::read(&object) {
        return bytes;
    }
    let own = format!("{object}.{}", std::process::id());
    clang(&["-DSHIM_TEST", "-c", &source, "-o", &own]);
    fs::rename(&own, &object).unwrap();
    fs::read(&object).unwrap()
}

fn clang(arguments: &[&str]) -> Vec<u8> {
    let flags = env!("PATHCAST_CLANG_FLAGS").split('\t');
    let output = Command::new(env!("PATHCAST_CLANG")).args(flags).args(arguments).output();
    let output = output.expect("it has built this crate");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// The test build of a controller, loaded.
pub struct TestBuild {
    pub object: Object,
    trials: MapHandle,
    params: MapHandle,
    info: &'static Info,
}

impl TestBuild {
    /// Compiles it if that is not yet done, and loads it, to be registered as `name`.
    pub fn load(params: &Params, name: &str) -> TestBuild {
        let info = params.info();
        let mut open = ObjectBuilder::default().open_memory(&compiled(info.name)).unwrap();
        for mut map in open.maps_mut().filter(|map| map.map_type() == MapType::StructOps) {
            let ops = map.initial_value_mut().expect("the object has it");
            if let Some(at) = ops.windows(PLACEHOLDER.len()).position(|bytes| bytes == PLACEHOLDER) {
                ops[at..at + 16].fill(0);
                ops[at..at + name.len()].copy_from_slice(name.as_bytes());
            }
        }
        let object = open.load().unwrap();
        let map = |end: &str| {
            let mut maps = object.maps();
            let map = maps.find(|map| map.name().to_string_lossy().ends_with(end)).expect("the object has it");
            MapHandle::try_from(&map).unwrap()
        };
        let (trials, data) = (map("trials"), map(".data"));
        let build = TestBuild { trials, params: data, object, info };
        build.set(params);
        build
    }

    pub fn set(&self, params: &Params) {
        let bytes: Vec<u8> = params.values().iter().flat_map(|value| value.to_ne_bytes()).collect();
        self.params.update(&[0; 4], &bytes, MapFlags::ANY).unwrap();
    }

    pub fn attach(&mut self) -> Link {
        let mut maps = self.object.maps_mut();
        maps.find(|map| map.map_type() == MapType::StructOps).expect("a controller").attach_struct_ops().unwrap()
    }

    /// A ring of the calls of live flows; `sink` is given the bytes of each when the ring is consumed.
    pub fn ring(&self, mut sink: impl FnMut(&[u8]) + 'static) -> RingBuffer<'static> {
        let map = self.object.maps().find(|map| map.name() == "calls").expect("the test build has it");
        let mut builder = libbpf_rs::RingBufferBuilder::new();
        builder
            .add(&map, move |bytes| {
                sink(bytes);
                0
            })
            .unwrap();
        builder.build().unwrap()
    }

    /// The call of which a ring gave the bytes.
    pub fn call(&self, bytes: &[u8]) -> Call {
        Call::read(bytes, self.info.state_bytes)
    }

    /// The number that `counts` has at a place, counted in numbers.
    pub fn count(&self, at: usize) -> u64 {
        let map = self.object.maps().find(|map| map.name().to_string_lossy().ends_with(".bss")).expect("a section");
        u64_at(&map.lookup(&[0; 4], MapFlags::ANY).unwrap().expect("its element"), 8 * at)
    }

    /// Makes one call in the kernel; `flow` and `state` become what it leaves.
    pub fn run(&self, hook: u32, event: u32, flow: &mut Flow, ack: &Ack, state: &mut [u8]) -> Outcome {
        let mut bytes = Vec::with_capacity(2048);
        bytes.extend([hook, event, 0, 0].iter().flat_map(|word| word.to_ne_bytes()));
        bytes.extend(flow_bytes(flow));
        bytes.extend(ack_bytes(ack));
        bytes.extend(state.iter());
        bytes.resize(self.trials.value_size() as usize, 0);
        self.trials.update(&[0; 4], &bytes, MapFlags::ANY).unwrap();
        let program = self.object.progs_mut().find(|program| program.name() == "trial").expect("the test build has it");
        let output = program.test_run(ProgramInput::default()).unwrap();
        assert_eq!(output.return_value, 0);
        let bytes = self.trials.lookup(&[0; 4], MapFlags::ANY).unwrap().expect("an array's element");
        *flow = flow_of(&bytes[16..16 + FLOW]);
        let at = 16 + FLOW + ACK_BYTES;
        state.copy_from_slice(&bytes[at..at + self.info.state_bytes]);
        Outcome::of(hook, u32_at(&bytes, 8), flow, state)
    }
}
