"""Whether `pathcast doctor --host` raises false alarms: doctor_clean.py [NETWORKS [SEED]] draws clean lines (rate,
delay, loss, queue, overhead; some busy) in emulated networks, and prints each finding that is not in order. Needs root;
fails on a fault."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("pathcast"))
TIME_S = 300


def network(draw: random.Random) -> str:
    """One line as TOML; its own name is drawn, too, so that several of these can run at once."""
    rate = round(10 ** draw.uniform(5.7, 8.3))
    delay_ms = round(10 ** draw.uniform(0, 2.48), 1)
    queue = max(10, round(rate * delay_ms * 2e-3 / 12_000 * draw.choice([0.5, 1, 3])))
    loss = draw.choice([0, 0, 0.001, 0.01, 0.03])
    overhead = draw.choice([0, 0, 8, 40])
    line = f'a = "client"\nb = "server"\nrate = "{rate}bit"\ndelay = "{delay_ms}ms"\nqueue = "{queue} packets"\n'
    text = f'name = "clean"\n[[link]]\nname = "wan"\n{line}loss = {loss}\noverhead = "{overhead}B"\n'
    text += '[[path]]\nname = "path1"\nlinks = ["wan"]\n'
    load = draw.choice([0, 0, 0.5, 0.9])
    if load:
        for way in ("ab", "ba"):
            text += f'[[traffic]]\nkind = "poisson"\nlink = "wan"\ndirection = "{way}"\n'
            text += f'rate = "{round(rate * load)}bit"\npacket = "1500B"\n'
    return text


def look(text: str, name: str) -> list[dict[str, str]]:
    """What is not in order in one network."""
    inside = [COMMAND, "net", "exec", name]
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "clean.toml")
        file.write_text(text)
        up = subprocess.run(
            [COMMAND, "net", "up", str(file), "--name", name, "--json"], capture_output=True, check=True
        )
        try:
            words = [*inside, "server", "--", COMMAND, "serve", "--open"]
            far = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            assert far.stdout is not None
            far.stdout.readline()
            remote = json.loads(up.stdout)["paths"][0]["remote"]
            words = [*inside, "client", "--", COMMAND, "doctor", "--host", remote, "--json"]
            done = subprocess.run(words, capture_output=True, text=True, timeout=TIME_S)
            far.terminate()
            far.wait()
            document = json.loads(done.stdout)
        finally:
            subprocess.run([COMMAND, "net", "down", name], capture_output=True)
    if "error" in document:
        return [{"status": "fault", "name": "error", "detail": document["error"]["message"]}]
    return [one for one in document["findings"] if one["status"] != "ok"]


def main(networks: int, seed: int) -> int:
    """The exit status."""
    faults = 0
    for number in range(networks):
        text = network(random.Random(f"{seed}/{number}"))
        found = look(text, f"clean-{os.getpid()}-{number}")
        faults += sum(one["status"] == "fault" for one in found)
        print(f"{number}: {' '.join(text.split())}")
        for one in found:
            print(f"   {one['status']} {one['name']}: {one['detail']}", flush=True)
    print(f"{faults} faults in {networks} networks without one")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(*(int(word) for word in [*sys.argv[1:], *("12", "1")[len(sys.argv) - 1 :]])))
