"""Rates from files through the command: measured ones of real networks, and bad ones of every sort."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import math
import os
from collections import defaultdict
from pathlib import Path

import pytest
from conftest import ROOT

from pathcast.worlds.topology import Topology

# measured traces are not shipped; they lie beside the repository or above it
FOLDERS = [folder / "shared" / "data" for folder in ROOT.parents]
MAHIMAHI = ("ATT-LTE-driving-2016.down", "ATT-LTE-driving-2016.up", "Verizon-LTE-short.down", "Verizon-LTE-short.up")
PACKET_BITS = 12000

LINK = """
[[link]]
name = "{name}"
a = "client"
b = "server"
rate = {{ ab = {{ trace = "{file}" }}, ba = "100Mbit" }}
delay = "{delay_ms}ms"
queue = "{queue} packets"
"""
PATH = '[[path]]\nname = "p1"\nlinks = ["{name}"]\n'


def measured(*parts: str) -> Path:
    """A file of measured traces; skips by its name where it is not."""
    for folder in FOLDERS:
        if (file := folder.joinpath(*parts)).exists():
            return file
    pytest.skip(f"missing: {'/'.join(('shared', 'data', *parts))}")


def unpacked(file: Path) -> str:
    return gzip.decompress(file.read_bytes()).decode()


class Rates:
    """A measured trace, as the tests reckon with it: its text for pathcast, and the bits that it lets pass."""

    def __init__(
        self, suffix: str, text: str, rows: list[tuple[float, float]], period_s: float, queue: int, delay: float
    ):
        self.suffix, self.text, self.rows, self.period_s = suffix, text, rows, period_s
        self.queue, self.delay_ms = queue, delay

    @classmethod
    def mahimahi(cls, text: str) -> Rates:
        """Rows are opportunities: their seconds and bits."""
        times = [int(line) / 1000 for line in text.split()]
        return cls("", text, [(time, PACKET_BITS) for time in times], times[-1], 300, 20.0)

    @classmethod
    def seconds(cls, mbps: list[float], queue: int = 300, delay_ms: float = 20.0) -> Rates:
        """Rows are seconds and the bits of each; the rates are those of one second after the other."""
        text = "s,mbps\n" + "".join(f"{s},{rate}\n" for s, rate in enumerate(mbps))
        return cls(".csv", text, [(s, rate * 1e6) for s, rate in enumerate(mbps)], len(mbps), queue, delay_ms)

    def mean_bps(self) -> float:
        return sum(bits for _, bits in self.rows) / self.period_s

    def bits_until(self, until_s: float) -> float:
        """What can have passed by then."""
        whole, rest = divmod(until_s, self.period_s)
        passed = whole * self.mean_bps() * self.period_s
        if self.suffix:
            return passed + sum(bits * min(max(rest - s, 0.0), 1.0) for s, bits in self.rows)
        return passed + sum(bits for s, bits in self.rows if s <= rest)


def mahimahi() -> dict[str, Rates]:
    texts = {name: unpacked(measured("access-networks", f"mahimahi-{name}.gz")) for name in MAHIMAHI}
    return {name.replace(".", "-"): Rates.mahimahi(text) for name, text in texts.items()}


def drives() -> dict[str, Rates]:
    """Every drive and network in which anything arrived."""
    columns = defaultdict(list)
    for row in csv.DictReader(io.StringIO(unpacked(measured("access-networks", "driving-four-networks.csv.gz")))):
        for key, value in row.items():
            if key.endswith("_mbps"):
                columns[f"{key.removesuffix('_mbps')}-{row['drive']}"].append(float(value))
    return {name: Rates.seconds(rates) for name, rates in columns.items() if any(rates)}


def satellite_and_cellular() -> dict[str, Rates]:
    series = defaultdict(list)
    for row in csv.DictReader(io.StringIO(unpacked(measured("access-networks", "starlink-cellular-mptcp.csv.gz")))):
        series[row["series"].replace("_", "-")].append(float(row["mbps"]))
    return {name: Rates.seconds(rates) for name, rates in series.items()}


def real_paths() -> dict[str, Rates]:
    """What the other traffic of each second leaves of the bottleneck, with its queue and delay."""
    found = {}
    for number, line in enumerate(unpacked(measured("real-paths", "ibox-profiles.jsonl.gz")).splitlines()):
        path = json.loads(line)
        free = [max(path["rate_kbps"] - cross, 0) / 1e3 for cross in path["cross_kbps"]]
        if any(free):
            found[f"path{number}"] = Rates.seconds(free, path["queue_packets"], path["one_way_ms"])
    return found


KINDS = {"mahimahi": mahimahi, "drives": drives, "satellite": satellite_and_cellular, "paths": real_paths}
LEAST = {"mahimahi": 4, "drives": 80, "satellite": 6, "paths": 200}


def written(folder: Path, name: str, rates: Rates) -> str:
    file = folder / f"{name}{rates.suffix}"
    file.write_text(rates.text)
    return LINK.format(name=name, file=file.name, delay_ms=rates.delay_ms, queue=rates.queue)


@pytest.mark.parametrize("kind", KINDS)
def test_every_measured_trace_is_read_and_has_its_mean(tmp_path, kind):
    traces = KINDS[kind]()
    assert len(traces) >= LEAST[kind]
    file = tmp_path / "net.toml"
    file.write_text(
        "".join(written(tmp_path, name, rates) for name, rates in traces.items()) + PATH.format(name=next(iter(traces)))
    )
    links = {link["name"]: link["ab"]["trace"] for link in Topology.load(file).scenario["links"]}
    assert set(links) == set(traces)
    for name, rates in traces.items():
        assert links[name]["mean_bps"] == pytest.approx(rates.mean_bps(), rel=1e-6)
        assert links[name]["sha256"] == hashlib.sha256(rates.text.encode()).hexdigest()
        assert links[name]["format"] == ("csv" if rates.suffix else "mahimahi")


@pytest.mark.parametrize(
    ("kind", "name", "size"),
    [
        ("mahimahi", "Verizon-LTE-short-down", "10MB"),
        ("drives", None, "50MB"),
        ("satellite", "mob-vz-sp-mob", "200MB"),
        ("paths", None, "3MB"),
    ],
)
def test_a_transfer_over_a_measured_trace_stays_below_it(pathcast, tmp_path, kind, name, size):
    traces = KINDS[kind]()
    name = name or next(iter(traces))
    rates = traces[name]
    flow = f'[[flow]]\nname = "bulk"\npaths = ["p1"]\nbytes = "{size}"\n'
    file = tmp_path / "net.toml"
    file.write_text('end = "1000s"\n' + written(tmp_path, name, rates) + PATH.format(name=name) + flow)
    done = pathcast("sim", file, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.json["links"][0]["trace"]["sha256"] == hashlib.sha256(rates.text.encode()).hexdigest()
    [bulk] = done.json["flows"]
    mean = rates.bits_until(bulk["completion_s"]) / bulk["completion_s"]
    assert math.isclose(bulk["goodput_bps"], 8 * bulk["bytes"] / bulk["completion_s"], rel_tol=1e-6)
    assert 0.2 * mean < bulk["goodput_bps"] < mean


NET = """end = "10s"
[[link]]
name = "wire"
a = "client"
b = "server"
rate = { trace = "%s" }
[[path]]
name = "p1"
links = ["wire"]
[[flow]]
name = "bulk"
paths = ["p1"]
bytes = "100KB"
"""
LARGEST = 32 << 20
# address space for the interpreter and a file of the largest size, but for none of those that are refused
MOST_MEMORY = 1 << 30


def sparse(file: Path, size: int) -> None:
    """As large as it says, but nothing of it is on the disk."""
    with file.open("wb") as out:
        out.truncate(size)


@pytest.mark.parametrize(
    ("name", "make", "words"),
    [
        ("none", lambda file: None, ["cannot read", "none", "No such file", "a file of rates"]),
        ("", lambda file: None, ["no regular file"]),
        ("folder", Path.mkdir, ["folder", "no regular file"]),
        ("fifo", os.mkfifo, ["fifo", "no regular file"]),
        ("loop", lambda file: file.symlink_to(file), ["loop", "symbolic link"]),
        ("/dev/zero", lambda file: None, ["/dev/zero", "no regular file"]),
        ("a\\u0000b", lambda file: None, ["NUL"]),
        ("empty", lambda file: file.write_text(""), ["empty, line 1", "whole number of milliseconds"]),
        ("blank.csv", lambda file: file.write_text("\n\n"), ["line 1", "no rates", "`0,5Mbit`"]),
        ("back", lambda file: file.write_text("1\n7\n3\n"), ["back, line 3: `3` comes after 7"]),
        ("back.csv", lambda file: file.write_text("0,1Mbit\n2,2Mbit\n1,3Mbit\n"), ["line 3: `1` is not after 2"]),
        ("still", lambda file: file.write_text("0\n0\n0\n"), ["still, line 3: `0`", "a last line above 0"]),
        ("zero.csv", lambda file: file.write_text("s,mbps\n0,0\n1,0\n"), ["line 3", "zero", "a rate above zero"]),
        ("nan.csv", lambda file: file.write_text("s,mbps\n0,5\n1,nan\n"), ["line 3: `nan`", "1000 Gbit/s"]),
        ("binary", lambda file: file.write_bytes(bytes(range(256))), ["binary, line 1", "is no time"]),
        ("binary.csv", lambda file: file.write_bytes(b"\xff\xfe,\x00\n"), ["line 1"]),
        ("line", lambda file: file.write_bytes(b"9" * LARGEST), ["line 1: `999", "is no time"]),
        ("large", lambda file: sparse(file, LARGEST + 1), [f"has {LARGEST + 1} bytes", "at most 32 MiB"]),
        ("huge", lambda file: sparse(file, 10**10), ["has 10000000000 bytes", "at most 32 MiB"]),
    ],
)
def test_a_bad_file_is_refused_in_bounded_memory(pathcast, tmp_path, name, make, words):
    make(tmp_path / name)
    (tmp_path / "net.toml").write_text(NET % name)
    refused = pathcast("sim", tmp_path / "net.toml", "--json", prefix=("prlimit", f"--as={MOST_MEMORY}"))
    assert refused.returncode == 2
    message = refused.error["message"]
    assert "line 6: link.wire.rate.trace" in message
    assert all(word in message for word in words), message
    assert len(message) < 1000


def test_the_largest_file_is_read_in_bounded_memory(pathcast, tmp_path):
    (tmp_path / "t").write_bytes(b"1\n" * (LARGEST // 2))
    (tmp_path / "net.toml").write_text(NET % "t")
    done = pathcast("sim", tmp_path / "net.toml", "--json", prefix=("prlimit", f"--as={MOST_MEMORY}"))
    assert done.returncode == 0, done.stderr
    # 16 million opportunities of 1500 B in a millisecond
    assert done.json["links"][0]["trace"]["mean_bps"] == pytest.approx(LARGEST / 2 * PACKET_BITS * 1000)


@pytest.mark.parametrize("arguments", [("sim",), ("net", "up"), ("measure", "--world", "sim", "--topology")])
def test_every_command_refuses_it_with_the_file_and_its_line(pathcast, tmp_path, arguments):
    (tmp_path / "t").write_text("1\n\n5\n3\n")
    (tmp_path / "net.toml").write_text(NET % "t")
    refused = pathcast(*arguments, tmp_path / "net.toml", "--json")
    assert refused.returncode == 2
    assert "t, line 4: `3` comes after 5" in refused.error["message"]
