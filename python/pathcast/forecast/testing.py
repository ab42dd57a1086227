"""A made-up world for the tests of learning and predicting, and what they do in it."""

from __future__ import annotations

import random
from contextlib import contextmanager, nullcontext

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.forecast.learn import LearnOptions, learn
from pathcast.forecast.predict import predict
from pathcast.worlds.late import again
from pathcast.worlds.results import Path, Transfer, Verdict
from pathcast.worlds.test_results import report, subflow
from pathcast.worlds.verbs import Verbs

PATHS = (Path("path1", ("10.0.1.2",), "10.0.1.1"), Path("path2", ("10.0.2.2",), "10.0.2.1"))
SIZE = 16_000_000


class World(Verbs):
    """Disjoint 100 Mbit/s paths; a transfer takes its bytes over the rates and ten round trips.

    The round trip times are drawn anew whenever a session is opened. `fail` holds what the next transfers raise.
    """

    def __init__(self, world="host", paths=PATHS, seed=1, rtts=(0.02, 0.18)):
        self.world, self.paths, self.rtts, self.cancelled = world, paths, rtts, False
        self.random, self.sent, self.fail = random.Random(seed), [], {}
        self.fallback, self.uneven, self.sessions = 0, False, 0

    def __call__(self):
        self.sessions += 1
        self.rtt = {p.name: self.random.uniform(*self.rtts) for p in self.paths}
        return nullcontext(self)

    def _send(self, paths, bytes, control, progress, protocol):
        for name in paths:
            self.path(name)
        self.sent.append((tuple(paths), bytes))
        error = self.fail.pop(len(self.sent), None)
        if error is not None:
            raise error
        elapsed = bytes * 8 / (100e6 * len(paths)) + 10 * max(self.rtt[p] for p in paths)
        if progress is not None:
            progress(bytes // 2)
        fallback = protocol == "mptcp" and self.fallback > 0
        self.fallback -= fallback
        shares = [
            bytes if self.uneven and not i else 0 if self.uneven else bytes // len(paths) for i in range(len(paths))
        ]
        return Transfer.read(
            list(paths),
            report(
                *(subflow(p, n) for p, n in zip(paths, shares, strict=True)),
                bytes=bytes,
                elapsed_s=elapsed,
                throughput_bps=bytes * 8 / elapsed,
                control=control or "cubic",
                protocol=protocol,
                fallback=fallback,
                notes=[],
            ),
        )

    def tcp_probe(self, path, bytes, control=None, progress=None):
        return self._send([path], bytes, control, progress, "tcp")

    def transfer(self, paths, bytes, control=None, progress=None, plain=False):
        return self._send(paths, bytes, control, progress, "mptcp")


class Emulated(World):
    """One that judges its time keeping; `late` holds the verdicts to come."""

    def __init__(self, **more):
        super().__init__("emu", **more)
        self.late = []

    def again(self, work, good=lambda _: True):
        return again(work, good)

    @contextmanager
    def judged(self):
        verdict = Verdict()
        yield verdict
        verdict.release_error = {"p50_s": 1e-5, "p99_s": self.late.pop(0) if self.late else 1e-4, "max_s": 1e-3}


class Quiet:
    def __init__(self):
        self.heard_bytes, self.rounds = [], []

    def begin(self, task, rounds):
        self.task = task

    def progress(self, bytes):
        self.heard_bytes.append(bytes)

    def round(self, number, round):
        self.rounds.append((number, round.left_out))


def go(file, world, target="far", listener=None, **options):
    options = LearnOptions(**{"bytes": SIZE, "rounds": 8, **options})
    return learn(file, world.world, target, world, options, listener or Quiet())


def foretell(file, world, bytes=SIZE, target="far", **more):
    return predict(file, world.world, target, lambda: nullcontext(world), bytes, **more)


def refused(call, words, exit=Exit.USAGE):
    with pytest.raises(PathcastError, match=words) as caught:
        call()
    assert caught.value.exit == exit
    return caught.value
