"""A disc that is really full: what is read is shown, what cannot be written is said, and leaves nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest
from conftest import COMMAND

pytestmark = pytest.mark.privileged

# in a mount namespace of its own
SCRIPT = """
mount -t tmpfs -o size=2m tmpfs "$PATHCAST_STATE_DIR" || exit 9
told() { "$@"; echo "status $?"; }
{
    $PY -c "$FILL"
    printf '[line.dsl]\\nfrom = "127.0.0.1"\\n' > "$PATHCAST_CONFIG"
    $PATHCAST job add kept --at 00:00 -- true
} >/dev/null 2>&1
dd if=/dev/zero of="$PATHCAST_STATE_DIR/fill" bs=1k 2>/dev/null
cd "$PATHCAST_STATE_DIR"
for words in "line set dsl --cap 1TB/month" "job add other --at 00:00 -- true" "job run kept" \\
    "history prune --older 1d"; do
    told $PATHCAST $words
done
for words in "history list" "history export $OUT/weeks" "job list" "job log kept" "line list"; do
    told $PATHCAST $words
done
told $PATHCAST watch report --html "$OUT/report.html"
find . -name ".job-*" -o -name "*.new" -o -name ".pathcast*"
rm fill
told $PATHCAST line set dsl --cap 1TB/month
told $PATHCAST job list
told $PATHCAST history list
"""
FILL = """
from pathcast.history import place
from pathcast.history.journal import Journal
from pathcast.history.testing import measure
journal = Journal(place.find())
measure(journal)
journal.close()
"""


def test_it_is_said_and_passes_by(tmp_path, monkeypatch):
    state = tmp_path / "state"
    state.mkdir(mode=0o700)
    values = {
        "STATE_DIR": state,
        "CONFIG": state / "pathcast.toml",
        "HISTORY": state / "history.db",
        "RUN_DIR": tmp_path,
    }
    for name, value in values.items():
        monkeypatch.setenv(f"PATHCAST_{name}", str(value))
    for name, value in {"PY": sys.executable, "PATHCAST": COMMAND, "FILL": FILL, "OUT": tmp_path}.items():
        monkeypatch.setenv(name, str(value))
    done = subprocess.run(["unshare", "--mount", "sh", "-c", SCRIPT], capture_output=True, text=True, timeout=600)
    assert "Traceback" not in done.stderr
    statuses = [line for line in done.stdout.splitlines() if line.startswith("status ")]
    assert statuses == [f"status {n}" for n in (1, 1, 1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0)], done.stdout + done.stderr
    assert done.stderr.count("No space left on device") + done.stderr.count("no space is left") == 3
    assert done.stderr.count("make room there") == 2
    assert "is its disc full, or broken?" in done.stderr
    assert "./" not in done.stdout  # a file of a writing that came to no end
    assert "kept" in done.stdout
    # who only reads can: it has looked, and these are another host's
    assert done.stderr.count("cannot be reached") == 1
    assert len(list((tmp_path / "weeks").glob("*.parquet"))) > 3
    assert "nothing was recorded in the last 28 days" in done.stderr
