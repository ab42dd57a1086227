//! Runs a scenario file and prints its report: `cargo run --release -p pathcast-sim --example run FILE [KEY=VALUE…]`.

use pathcast_scenario::Scenario;
use pathcast_sim::{Options, simulate};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let file = args.next().ok_or("usage: run FILE [KEY=VALUE…]")?;
    let sets: Vec<(String, String)> =
        args.filter_map(|arg| arg.split_once('=').map(|(key, value)| (key.into(), value.into()))).collect();
    let outcome = simulate(Scenario::load(file, &sets)?, &Options::default())?;
    println!("{}", serde_json::to_string_pretty(&outcome.report)?);
    Ok(())
}
