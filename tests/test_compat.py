"""What was released is understood: a client and a far end of 0.1.0, written from its protocol alone, with today's.

These ends are that release's for ever. The bytes of its messages are recorded beside the code (golden-0.1.0.txt); here
whole sessions go over sockets.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import socket
import threading
import time

import pytest

SECRET = bytes.fromhex("5e" * 32)
HELLO, WELCOME, REFUSED, CONFIRM, READY, PING, PONG, BYE, ATTACH, RECEIPT, DENIED = (*range(1, 9), 16, 17, 18)


def derived(info, salt=b""):
    """HKDF-SHA256, of one block."""
    extracted = hmac.digest(salt or bytes(32), SECRET, "sha256")
    return hmac.digest(extracted, f"pathcast/1 {info}".encode() + b"\x01", "sha256")


def message(kind, body, key, before=b""):
    text = b"PCST\x01" + bytes([kind]) + len(body).to_bytes(2, "big") + body
    return text + hmac.digest(key, before + text, "sha256")


def number(value):
    return value.to_bytes(8, "big")


class End:
    """A socket that speaks messages; it hangs up on what is not of 0.1.0."""

    def __init__(self, sock):
        self.socket = sock
        sock.settimeout(30)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            assert piece, f"it hung up after {data!r}"
            data += piece
        return data

    def take(self, kind, key, before=b""):
        head = self.exactly(8)
        assert head[:5] == b"PCST\x01"
        assert head[5] == kind, head
        body = self.exactly(int.from_bytes(head[6:8], "big"))
        tag = self.exactly(32)
        assert hmac.compare_digest(tag, hmac.digest(key, before + head + body, "sha256"))
        return body

    def send(self, *words):
        self.socket.sendall(message(*words))


def keys(client_nonce, server_nonce):
    names = ("welcome", "control c2s", "control s2c", "data c2s", "data s2c")
    return {name: derived(name, client_nonce + server_nonce) for name in names}


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"site {SECRET.hex()}\n")
    path.chmod(0o600)
    return path


def opened(port):
    """A session that a client of 0.1.0 opens: its control connection, its number, its keys."""
    end, nonce = End(socket.create_connection(("127.0.0.1", port))), os.urandom(32)
    hello = message(HELLO, b"\x04site" + nonce, derived("hello"))
    end.socket.sendall(hello)
    head = end.exactly(8)
    assert head[:6] == b"PCST\x01\x02", head
    body, tag = end.exactly(int.from_bytes(head[6:8], "big")), end.exactly(32)
    found = keys(nonce, body[:32])
    assert tag == hmac.digest(found["welcome"], hello + head + body, "sha256")
    largest, at_once, _mptcp, count = (body[48:56], body[56:58], body[58], body[59])
    assert int.from_bytes(largest, "big") > 0 < int.from_bytes(at_once, "big")
    rest = body[60:]
    for _ in range(count):
        rest = rest[1 + {4: 4, 6: 16}[rest[0]] :]
    assert rest == b""
    end.send(CONFIRM, number(0), found["control c2s"])
    assert end.take(READY, found["control s2c"]) == number(0)
    return end, body[32:48], found


@pytest.mark.parametrize("program", ["serve", "far"])
def test_a_client_of_0_1_0_sends_to_todays_far_end(start, request, key_file, program):
    words = ("--key-file", key_file, "--port", "0", "--bind", "127.0.0.1", "--json")
    far = start("serve", *words) if program == "serve" else start(*words, command=(request.getfixturevalue("far"),))
    text = ""
    while not text.endswith("\n}\n"):
        text += far.stdout.readline()
    port = int(json.loads(text)["listening"][0].rpartition(":")[2])
    control, session, found = opened(port)
    control.send(PING, number(1), found["control c2s"])
    assert control.take(PONG, found["control s2c"]) == number(1)
    for transfer, size in ((1, 0), (2, 300_000), (4, 5)):
        data = End(socket.create_connection(("127.0.0.1", port)))
        attach = session + number(transfer) + number(size) + b"\x00\x05cubic"
        data.socket.sendall(message(ATTACH, attach, found["data c2s"]) + os.urandom(size))
        receipt = data.take(RECEIPT, found["data s2c"])
        assert (receipt[:8], receipt[8:16]) == (number(transfer), number(size))
        assert len(receipt) == 24
    again = End(socket.create_connection(("127.0.0.1", port)))
    again.send(ATTACH, session + number(2) + number(1) + b"\x00\x00", found["data c2s"])
    assert again.take(DENIED, found["data s2c"]) == number(2) + b"\x04"
    control.send(BYE, number(2), found["control c2s"])
    assert control.socket.recv(1) == b""
    stranger = End(socket.create_connection(("127.0.0.1", port)))
    stranger.socket.sendall(message(HELLO, b"\x04nope" + bytes(32), derived("hello")))
    assert stranger.take(REFUSED, b"pathcast open messages: checksum") == b"\x01\x01"


class OldFarEnd(threading.Thread):
    """A far end of 0.1.0, for one session: it knows no question that came later, and denies it."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got, self.questions, self.fault = {}, 0, None
        self.keys, self.session = {}, os.urandom(16)

    def run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(End(sock),), daemon=True).start()

    def serve(self, end):
        try:
            head = end.exactly(8)
            body = end.exactly(int.from_bytes(head[6:8], "big"))
            tag = end.exactly(32)
            (self.control if head[5] == HELLO else self.data)(end, head + body, body, tag)
        except OSError:
            pass
        except AssertionError as error:
            if "hung up" not in str(error):
                self.fault = error
        finally:
            end.socket.close()

    def control(self, end, text, body, tag):
        assert body[0] == 4
        assert body[1:5] == b"site"
        assert tag == hmac.digest(derived("hello"), text, "sha256")
        nonce = os.urandom(32)
        found = self.keys = keys(body[5:], nonce)
        welcome = nonce + self.session + number(10**12) + (16).to_bytes(2, "big") + b"\x01\x01\x04\x7f\x00\x00\x01"
        end.send(WELCOME, welcome, found["welcome"], text + tag)
        assert end.take(CONFIRM, found["control c2s"]) == number(0)
        end.send(READY, number(0), found["control s2c"])
        sequence = 0
        while True:
            head = end.exactly(8)
            body, tag = end.exactly(int.from_bytes(head[6:8], "big")), end.exactly(32)
            sequence += 1
            assert tag == hmac.digest(found["control c2s"], head + body, "sha256")
            assert body == number(sequence)
            if head[5] == BYE:
                return
            assert head[5] == PING
            end.send(PONG, body, found["control s2c"])

    def data(self, end, text, body, tag):
        assert text[5] == ATTACH
        assert body[:16] == self.session
        assert tag == hmac.digest(self.keys["data c2s"], text, "sha256")
        transfer, size = int.from_bytes(body[16:24], "big"), int.from_bytes(body[24:32], "big")
        if body[32]:  # LOOK came later
            self.questions += 1
            return end.send(DENIED, body[16:24] + b"\x05", self.keys["data s2c"])
        begun = time.monotonic_ns()
        digest = hashlib.sha256(end.exactly(size)).digest()
        self.got[transfer] = (size, digest)
        took = max(1, time.monotonic_ns() - begun)
        end.send(RECEIPT, body[16:24] + number(size) + number(took), self.keys["data s2c"])
        return None


def test_todays_client_sends_to_a_far_end_of_0_1_0(key_file):
    from pathcast.worlds.host import Host

    old = OldFarEnd()
    old.start()
    with Host(f"127.0.0.1:{old.port}", key_file) as world:
        assert [path.remote for path in world.paths] == ["127.0.0.1"]
        name = world.paths[0].name
        for size in (1000, 400_000):
            sent = world.tcp_probe(name, size)
            assert sent.bytes == size
        together = world.transfer([name], 200_000)
        assert together.bytes == 200_000
    old.listener.close()
    assert old.fault is None
    assert [size for size, _ in old.got.values()] == [1000, 400_000, 200_000]
