//! One flow's controller: the hooks, with what each may not touch put back.

use std::ffi::c_void;
use std::sync::Arc;

use crate::flow::{Ack, Event, Flow, NOBODY};
use crate::register::{Info, Params};

const STATE_WORDS: usize = 64;

/// A controller with the private state of one flow. The caller owns the [`Flow`], keeps it up to date before each hook and
/// follows the order of calls of `c/flow.h`; cwnd, cwnd_cnt and ssthresh change in `init` and `grow` only.
#[derive(Clone, Debug)]
pub struct Instance {
    info: &'static Info,
    params: Arc<[u32]>,
    state: [u64; STATE_WORDS],
}

impl Instance {
    /// A controller that has not seen its flow yet.
    pub fn new(params: &Params) -> Self {
        Instance { info: params.info, params: params.values.as_slice().into(), state: [0; STATE_WORDS] }
    }
    /// Other parameters while the flow lives, from the next hook on, as a loaded controller's in the kernel.
    ///
    /// # Panics
    /// If they are another controller's.
    pub fn set_params(&mut self, params: &Params) {
        assert_eq!(params.info.name, self.info.name, "another controller's parameters");
        self.params = params.values.as_slice().into();
    }
    /// Which controller this is.
    pub fn info(&self) -> &'static Info {
        self.info
    }
    /// The private state, byte for byte as in the kernel, in the machine's byte order.
    pub fn state(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.state.iter().flat_map(|word| word.to_ne_bytes()).collect();
        bytes.truncate(self.info.state_bytes);
        bytes
    }
    fn state_ptr(&mut self) -> *mut c_void {
        self.state.as_mut_ptr().cast()
    }
    fn params_ptr(&self) -> *const c_void {
        self.params.as_ptr().cast()
    }

    /// The flow is established and has its first window and group.
    pub fn init(&mut self, flow: &mut Flow) {
        self.state = [0; STATE_WORDS];
        clear_post(flow);
        // SAFETY: `flow` is valid and ours alone; `state` is zeroed, aligned to 8 and of 512 bytes, the limit that
        // `flow_export.h` asserts; `params` are this controller's, as many as its struct has fields
        unsafe { (self.info.raw.init)(flow, self.state_ptr(), self.params_ptr()) };
        bound(flow);
    }
    /// An ACK has come while data is outstanding: measures only.
    pub fn ack(&mut self, flow: &mut Flow, ack: &Ack) {
        let kept = Kept::of(flow);
        // SAFETY: as in `init`; `ack` is valid
        unsafe { (self.info.raw.ack)(flow, ack, self.state_ptr(), self.params_ptr()) };
        kept.restore(flow);
    }
    /// The ACK delivered data and no reduction is in progress: the window may change.
    pub fn grow(&mut self, flow: &mut Flow, ack: &Ack) {
        clear_post(flow);
        // SAFETY: as in `ack`
        unsafe { (self.info.raw.grow)(flow, ack, self.state_ptr(), self.params_ptr()) };
        bound(flow);
    }
    /// A reduction begins: the new ssthresh (packet).
    pub fn ssthresh(&mut self, flow: &mut Flow) -> u32 {
        let kept = Kept::of(flow);
        // SAFETY: as in `init`
        let ssthresh = unsafe { (self.info.raw.ssthresh)(flow, self.state_ptr(), self.params_ptr()) };
        kept.restore(flow);
        ssthresh
    }
    /// The reduction was spurious: the new window (packet).
    pub fn undo(&mut self, flow: &mut Flow) -> u32 {
        let kept = Kept::of(flow);
        // SAFETY: as in `init`
        let cwnd = unsafe { (self.info.raw.undo)(flow, self.state_ptr(), self.params_ptr()) };
        kept.restore(flow);
        cwnd
    }
    /// Something has happened to the flow.
    pub fn event(&mut self, flow: &mut Flow, event: Event) {
        let kept = Kept::of(flow);
        // SAFETY: as in `init`
        unsafe { (self.info.raw.event)(flow, event as u32, self.state_ptr(), self.params_ptr()) };
        kept.restore(flow);
    }
    /// Before a transmit opportunity: `burst` and the pace may change.
    pub fn send(&mut self, flow: &mut Flow) {
        let kept = Kept::of(flow);
        // SAFETY: as in `init`
        unsafe { (self.info.raw.send)(flow, self.state_ptr(), self.params_ptr()) };
        kept.restore(flow);
    }
    /// The flow has ended.
    pub fn release(&mut self, flow: &mut Flow) {
        let kept = Kept::of(flow);
        // SAFETY: as in `init`
        unsafe { (self.info.raw.release)(flow, self.state_ptr(), self.params_ptr()) };
        kept.restore(flow);
    }
}

fn clear_post(flow: &mut Flow) {
    flow.post_to = NOBODY;
    flow.post = 0;
}

/// A window of 0 would stop the flow for ever.
fn bound(flow: &mut Flow) {
    flow.cwnd = flow.cwnd.max(1);
}

/// The fields that most hooks may not change; mail too is posted by `init` and `grow` only.
struct Kept {
    cwnd: u32,
    cwnd_cnt: u32,
    ssthresh: u32,
}

impl Kept {
    fn of(flow: &Flow) -> Self {
        Kept { cwnd: flow.cwnd, cwnd_cnt: flow.cwnd_cnt, ssthresh: flow.ssthresh }
    }
    fn restore(self, flow: &mut Flow) {
        clear_post(flow);
        flow.cwnd = self.cwnd;
        flow.cwnd_cnt = self.cwnd_cnt;
        flow.ssthresh = self.ssthresh;
    }
}
