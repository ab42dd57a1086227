//! The TCP session: frames and bodies, a far end with several connections, and a client.

use std::net::{IpAddr, Ipv4Addr};

use pathcast_base::Nanos;
use pathcast_session::{Quota, 
    Announcement, ClientControl, ClientLook, ClientTransfer, Connection, Entropy, FrameReader, Key, KeyRing, Limits, Service,
    Seen, SessionKeys, forge,
};

use crate::script::Script;

pub fn run(data: &[u8]) {
    let mut script = Script(data);
    match script.byte() {
        Some(0) => frames(script),
        Some(1) => service(script),
        Some(_) => client(script),
        None => {}
    }
}

fn key() -> Key {
    Key::new("site", [7; 32]).expect("a good key")
}

fn frames(mut script: Script<'_>) {
    forge::read(script.0);
    let mut reader = FrameReader::default();
    let mut whole = FrameReader::default();
    whole.push(script.0);
    let (mut one, mut two) = (Vec::new(), Vec::new());
    while let Ok(Some(frame)) = whole.next_frame() {
        forge::read(frame.body());
        two.push(frame);
    }
    while let Some(byte) = script.byte() {
        reader.push(&[byte]);
        match reader.next_frame() {
            Ok(Some(frame)) => one.push(frame),
            Ok(None) => {}
            Err(_) => break,
        }
    }
    assert_eq!(one, two, "however the stream is cut");
}

/// What a connection's other end knows.
struct Peer {
    connection: Connection,
    nonce: [u8; 32],
    keys: SessionKeys,
    ended: bool,
}

fn service(mut script: Script<'_>) {
    let limits = Limits {
        sessions: Quota { in_all: 2, ..Quota::SESSIONS },
        max_expendable: 3,
        max_transfer_bytes: 1 << 40,
        max_transfers: 2,
        ..Limits::default()
    };
    let mut service = Service::new(KeyRing::new([key()]), limits, Announcement::default());
    let mut peers: Vec<Peer> = Vec::new();
    let mut now = Nanos::secs(5);
    while let Some(op) = script.byte() {
        let which = usize::from(op >> 4);
        let count = peers.len();
        let mut peer = (count > 0).then(|| &mut peers[which % count]);
        match (op % 9, &mut peer) {
            (0, _) if count < 12 => {
                let n = count as u8;
                let source = IpAddr::V4(Ipv4Addr::new(192, 0, 2, (op >> 4) % 3));
                let (connection, evicted) = service.accept(now, source, Entropy { nonce: [n; 32], session: [n; 16] });
                for old in peers.iter_mut().filter(|peer| evicted.contains(&peer.connection.id())) {
                    old.connection.end(&mut service);
                    old.ended = true;
                }
                let nonce = [100 + n; 32];
                peers.push(Peer { connection, nonce, keys: forge::keys(&key(), &nonce, &[n; 32]), ended: false });
            }
            (1, Some(peer)) => {
                let Some(bytes) = script.bytes() else { break };
                peer.connection.receive(now, bytes, &mut service);
            }
            (2, Some(peer)) => {
                let body = if op & 128 == 0 { None } else { script.bytes() };
                let said = forge::hello(&key(), peer.nonce, body);
                peer.connection.receive(now, &said, &mut service);
                let confirm = forge::say(&peer.keys, 1, 3, &0u64.to_be_bytes());
                peer.connection.receive(now, &confirm, &mut service);
            }
            (3, Some(peer)) => {
                let (Some(tag), Some(kind)) = (script.byte(), script.byte()) else { break };
                let Some(body) = script.bytes() else { break };
                let said = forge::say(&peer.keys, tag, kind, body);
                peer.connection.receive(now, &said, &mut service);
            }
            (4, Some(_)) => {
                // a transfer of the session that another connection has
                let (Some(owner), Some(number), Some(bytes), Some(flags)) =
                    (script.byte(), script.number(), script.number(), script.byte())
                else {
                    break;
                };
                let owner = usize::from(owner) % count;
                let mut body = vec![owner as u8; 16];
                body.extend(number.to_be_bytes());
                body.extend(bytes.to_be_bytes());
                body.extend([flags % 8 / 7, 1, b'x']);
                let said = forge::say(&peers[owner].keys, 3, 8, &body);
                peers[which % count].connection.receive(now, &said, &mut service);
            }
            (5, Some(peer)) => {
                let n = script.number().unwrap_or(1) % (1 << 41);
                if peer.connection.receiving() && peer.connection.absorb(now, n) {
                    peer.connection.settle(now, &mut service);
                }
            }
            (6, _) => {
                let Some(step) = script.time() else { break };
                now += step;
                for peer in peers.iter_mut().filter(|peer| !peer.ended) {
                    let deadline = peer.connection.deadline(&service);
                    if deadline <= now {
                        peer.connection.expire(now, &mut service);
                    }
                }
            }
            (7, Some(peer)) => {
                peer.connection.end(&mut service);
                peer.ended = true;
            }
            (8, Some(peer)) => {
                let next = script.number().unwrap_or(1);
                let said = forge::say(&peer.keys, 1, 5, &next.to_be_bytes());
                peer.connection.receive(now, &said, &mut service);
            }
            _ => {}
        }
        for peer in &mut peers {
            if peer.connection.is_asked() && op & 64 == 0 {
                peer.connection.show(&Seen { pmtu: u32::from(op), ..Seen::default() });
                assert!(!peer.connection.is_asked());
            }
            if peer.connection.take_told().is_some() {
                assert!(!peer.connection.receiving() && peer.connection.take_told().is_none());
            }
            assert!(peer.connection.output().len() <= 1 << 16);
        }
        assert!(service.sessions() <= 2);
        service.take_notes();
    }
    for peer in &mut peers {
        peer.connection.end(&mut service);
    }
    assert_eq!(service.sessions(), 0, "nothing is left when all connections are gone");
}

fn client(mut script: Script<'_>) {
    let nonce = [3; 32];
    let mut control = ClientControl::new(&key(), nonce);
    let hello = control.output();
    let keys = forge::keys(&key(), &nonce, &[9; 32]);
    let mut welcome = vec![9; 48];
    welcome.extend(1_000_000u64.to_be_bytes());
    welcome.extend([0, 4, 1, 1, 4, 127, 0, 0, 1]);
    let mut transfer: Option<ClientTransfer> = None;
    let mut look: Option<ClientLook> = None;
    while let Some(op) = script.byte() {
        let answer = match op % 6 {
            0 => script.bytes().unwrap_or_default().to_vec(),
            1 => {
                let mut body = welcome.clone();
                for _ in 0..op >> 5 {
                    let (Some(at), Some(value)) = (script.byte(), script.byte()) else { break };
                    let place = usize::from(at) % body.len();
                    body[place] = value;
                }
                forge::welcome(&keys, &hello, &body)
            }
            2 => forge::say(&keys, 2, 4, &0u64.to_be_bytes()),
            3 => {
                let (Some(tag), Some(kind)) = (script.byte(), script.byte()) else { break };
                forge::say(&keys, tag, kind, script.bytes().unwrap_or_default())
            }
            4 => {
                control.ping();
                forge::say(&keys, 2, 6, &script.number().unwrap_or(1).to_be_bytes())
            }
            _ => {
                if let Some((welcome, keys)) = control.session().filter(|_| op & 64 == 64) {
                    let asker = look.get_or_insert_with(|| ClientLook::new(welcome, keys));
                    asker.ask(1);
                } else if let Some((welcome, keys)) = control.session() {
                    transfer = Some(ClientTransfer::new(welcome, keys, 1, 10, "cubic"));
                }
                forge::say(&keys, 4, 9, script.bytes().unwrap_or_default())
            }
        };
        let ended = match (&mut transfer, &mut look) {
            (_, Some(look)) => look.receive(&answer).is_err(),
            (Some(transfer), None) => transfer.receive(&answer).is_err(),
            (None, None) => control.receive(&answer).is_err(),
        };
        control.output();
        if ended {
            break;
        }
    }
    control.bye();
}
