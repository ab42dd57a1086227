//! Emulated networks for the tests of this directory.
#![allow(dead_code)] // every test uses a part of it

use std::sync::atomic::{AtomicU32, Ordering};

use pathcast_emu::{Ledger, Network};

/// A network, or the reason why this machine cannot have one, printed.
pub fn network(text: &str) -> Option<Network> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let id = format!("t{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    match Network::up(text, &[], &id) {
        Ok(network) => Some(network),
        Err(error) if error.exit() == pathcast_base::Exit::Missing => {
            println!("SKIPPED: emulated network: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

pub fn one_link(rest: &str) -> String {
    format!(
        "name = \"one\"\n[[link]]\nname = \"wan\"\na = \"client\"\nb = \"server\"\n{rest}\n\
         [[path]]\nname = \"path1\"\nlinks = [\"wan\"]\n"
    )
}

/// The ledger's sums hold, and nothing was lost outside of the model.
pub fn conserved(ledger: &Ledger) {
    for link in ledger.groups.iter().flat_map(|g| &g.links) {
        let c = &link.counters;
        let dropped = c.dropped.all().packets;
        assert!(c.offered.packets >= c.carried.packets + dropped, "{link:?}");
    }
    assert!(ledger.groups.iter().all(|g| g.write_failures == 0), "{ledger:?}");
    assert!(ledger.devices.iter().all(|d| d.dropped == 0), "{ledger:?}");
}
