//! A controller loaded into this kernel, used by a transfer over an emulated network, and unloaded. Needs root:
//! `cargo run --release -p pathcast-kernel --example transfer -- FILE BYTES CONTROL [PARAMETER=VALUE…]`.

#[path = "../tests/live/mod.rs"]
mod live;

use std::error::Error;
use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::Instant;

use pathcast_congestion::{Params, controller};
use pathcast_emu::Network;
use pathcast_kernel::{Loaded, free_name, registered};
use pathcast_scenario::Direction;
use socket2::Protocol;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, bytes, control, sets @ ..] = &args[..] else {
        return Err("usage: transfer FILE BYTES CONTROL [PARAMETER=VALUE…]".into());
    };
    let bytes: usize = bytes.parse()?;
    let mut params = Params::new(controller(control)?);
    for set in sets {
        let (name, value) = set.split_once('=').ok_or("PARAMETER=VALUE")?;
        params.set(name, value.parse()?)?;
    }
    let network = Network::up(&std::fs::read_to_string(file)?, &[], &live::name()).map_err(|e| e.to_string())?;
    let loaded = Loaded::load(&free_name(params.info())?, &params, None)?;
    let kernel = loaded.name().to_owned();

    let (sends, reads, _listener) = live::connect(&network, Protocol::TCP, Direction::Ab, &kernel);
    let (start, reader) = (Instant::now(), thread::spawn(|| live::swallow(reads.into())));
    let mut sends = TcpStream::from(sends);
    sends.write_all(&vec![7; bytes])?;
    let window = loaded.flows()?[0].cwnd;
    sends.shutdown(Shutdown::Write)?;
    let arrived = reader.join().expect("a reader");
    let rate = arrived as f64 * 8e-6 / start.elapsed().as_secs_f64();
    drop(sends);
    live::until_released(&loaded);
    let flows = loaded.counts()?.closed;
    loaded.unload()?;
    live::until("the end of the registration", || !registered().contains(&kernel));
    println!(
        "{rate:.2} Mbit/s; `{kernel}` was loaded, had {flows} flow, the last window {window} packets, and is unloaded"
    );
    Ok(())
}
