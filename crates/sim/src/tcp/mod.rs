//! One TCP flow, or one subflow of Multipath TCP: a sending half that asks its congestion controller as Linux does, and a
//! receiving half. Positions are counted in segments; time is an argument.

mod ack;
mod board;
mod buffers;
mod config;
mod frto;
mod loss;
mod mark;
mod ns3;
mod offload;
mod pace;
mod receiver;
mod recovery;
mod resend;
mod rtt;
mod sender;
mod timer;
mod validate;

pub(crate) use buffers::ReceiveBuffer;
pub(crate) use config::{Config, MAX_RETRIES, SYN_RETRIES};
pub(crate) use offload::BUFFER;
pub(crate) use receiver::{Answer, Receiver};
pub(crate) use sender::Sender;
pub(crate) use timer::Expired;
