//! Every message of version 1 of the protocol as 0.1.0 says it, byte for byte: a far end or client of that release hears it.

use super::frame::{Frame, FrameReader, Kind};
use super::keys::{Key, OPEN_KEY, SessionKeys, sign, signed};
use super::message::{Attach, Denial, Hello, Receipt, Refusal, Welcome};

const RECORDED: &str = include_str!("golden-0.1.0.txt");

fn said() -> Vec<Frame> {
    let key = Key::new("site", [7; 32]).unwrap();
    let keys = SessionKeys::new(&key, &[1; 32], &[2; 32]);
    let hello = signed(&key.greeting(), Kind::Hello, &Hello { key_id: "site".into(), nonce: [1; 32] }.encode());
    let welcome = Welcome {
        nonce: [2; 32],
        session: [3; 16],
        max_transfer_bytes: 1_000_000_000_000,
        max_transfers: 16,
        mptcp: true,
        addresses: vec!["192.0.2.1".parse().unwrap(), "2001:db8::1".parse().unwrap()],
    };
    let welcome = Frame::new(Kind::Welcome, &welcome.encode(), |bytes| sign(&keys.welcome, &[hello.bytes(), bytes]));
    let attach = Attach { session: [3; 16], transfer: 5, bytes: 1_000_000, flags: 0, control: "cubic".into() };
    let receipt = Receipt { transfer: 5, bytes: 1_000_000, duration_ns: 123_456_789 };
    let number = |n: u64| n.to_be_bytes();
    let mut all = vec![
        hello,
        welcome,
        signed(&keys.client_control, Kind::Confirm, &number(0)),
        signed(&keys.server_control, Kind::Ready, &number(0)),
        signed(&keys.client_control, Kind::Ping, &number(1)),
        signed(&keys.server_control, Kind::Pong, &number(1)),
        signed(&keys.client_control, Kind::Bye, &number(2)),
        signed(&keys.attach, Kind::Attach, &attach.encode()),
        signed(&keys.answer, Kind::Receipt, &receipt.encode()),
    ];
    all.extend([Refusal::Refused, Refusal::Version].map(|r| signed(OPEN_KEY, Kind::Refused, &r.encode())));
    let denials = [Denial::Sessions, Denial::Transfers, Denial::Size, Denial::Replay, Denial::Unsupported];
    all.extend(denials.map(|d| signed(&keys.answer, Kind::Denied, &d.encode(5))));
    all
}

#[test]
fn what_0_1_0_says_is_said_and_read_byte_for_byte() {
    let hex = |frame: &Frame| frame.bytes().iter().map(|b| format!("{b:02x}")).collect::<String>();
    let now: Vec<_> = said().iter().map(|f| format!("{:?} {}", f.kind, hex(f))).collect();
    let recorded: Vec<_> = RECORDED.lines().collect();
    assert_eq!(now, recorded, "a release that is out does not understand this:\n{}", now.join("\n"));
    for (line, frame) in recorded.iter().zip(said()) {
        let text = line.split_once(' ').unwrap().1;
        let bytes: Vec<_> =
            (0..text.len()).step_by(2).map(|i| u8::from_str_radix(&text[i..i + 2], 16).unwrap()).collect();
        let mut reader = FrameReader::default();
        reader.push(&bytes);
        assert_eq!(reader.next_frame(), Ok(Some(frame)));
    }
}
