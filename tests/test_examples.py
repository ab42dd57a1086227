"""The examples run, and say what they promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"


def run(name: str) -> str:
    done = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_measure():
    lines = run("measure.py").splitlines()
    found = {tuple(line.split(":")[0].split()): float(line.split()[2]) for line in lines}
    # 20 Mbit/s with 6 of cross traffic; the rest is idle
    assert found == {
        ("dsl", "out"): pytest.approx(10, rel=0.05),
        ("dsl", "in"): pytest.approx(50, rel=0.05),
        ("cable", "out"): pytest.approx(14, rel=0.05),
        ("cable", "in"): pytest.approx(200, rel=0.05),
    }


def test_forecast():
    lines = run("forecast.py").splitlines()
    found = {line.split(":")[0]: [float(number) for number in re.findall(r"\d+\.\d", line)] for line in lines}
    assert set(found) == {"cable+dsl", "cable", "dsl"}
    assert all(abs(predicted / sent - 1) < 0.1 for predicted, sent in found.values())
    # the best first, and it is the best
    assert max(found, key=lambda paths: found[paths][1]) == lines[0].split(":")[0]


def test_futures():
    *drawn, here, first = run("futures.py").splitlines()
    medians = [float(re.search(r": (\d+\.\d)", line).group(1)) for line in drawn]
    # 30 of 40 Mbit/s are left on the one, all of 20 on the other
    assert medians == [pytest.approx(44, abs=6), pytest.approx(28, abs=3), pytest.approx(18, abs=2)]
    assert re.search(r": 2\d\.\d \(", here)
    assert re.fullmatch(r"the first: \d+ recoveries, 0 timeouts, \d+ bytes after 1 s", first)


def test_simulate_controller():
    rates = [
        [float(number) for number in re.findall(r"\d+\.\d", line)]
        for line in run("simulate_controller.py").splitlines()
    ]
    equals, *backgrounds = rates
    assert max(equals) < 2 * min(equals)  # cubic beside cubic
    assert len(backgrounds) == 3
    assert all(background < 0.1 * foreground for foreground, background in backgrounds)


def test_own_estimator():
    rows = [[float(cell) for cell in line.split()] for line in run("own_estimator.py").splitlines()[1:]]
    assert [truth for truth, *_ in rows] == [18, 12, 6]
    assert all(abs(ours / truth - 1) < 0.05 for truth, _, ours in rows)


MAIN = """
#include <stdio.h>
struct row { const char *name, *kernel, *paper, *basis; unsigned hooks, state_size, n_params; };
extern const struct row *const flow_register[];
extern const unsigned flow_register_len;
int main(void)
{
	const struct row *last = flow_register[flow_register_len - 1];
	printf("%s %s %u\\n", last->name, last->kernel, last->n_params);
	return 0;
}
"""


def test_own_controller_enters_the_register_and_compiles_for_the_kernel(tmp_path):
    header, headers = EXAMPLES / "own_controller" / "aimd.h", ROOT / "crates/congestion/src/c"
    # as crates/congestion/build.rs writes it
    own = f'#include "{header}"\n#define CC aimd\n#include "flow_export.h"\n#define FLOW_OWN_ROWS &flow_export_aimd,\n'
    (tmp_path / "flow_own.h").write_text(own)
    (tmp_path / "main.c").write_text(MAIN)
    strict = ["-std=c11", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-DFLOW_OWN", f"-I{headers}", f"-I{tmp_path}"]
    subprocess.run(["cc", *strict, "-o", tmp_path / "it", tmp_path / "main.c", headers / "register.c"], check=True)
    assert subprocess.run([tmp_path / "it"], capture_output=True, text=True, check=True).stdout == "aimd pc_aimd 2\n"
    alone = '#include "aimd.h"\nunsigned aimd(struct flow *f, struct flow_ack *a) { struct aimd_params p = { 1, 50 }; '
    alone += "struct aimd_state s = { 0 }; aimd_grow(f, a, &s, &p); return aimd_ssthresh(f, &s, &p); }\n"
    bpf = [
        "clang",
        "-target",
        "bpf",
        "-O2",
        "-c",
        "-x",
        "c",
        "-",
        "-o",
        os.devnull,
        f"-I{headers}",
        f"-I{header.parent}",
    ]
    subprocess.run(bpf, input=alone, text=True, check=True)
