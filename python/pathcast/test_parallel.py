"""Processes of this machine: they run our code and nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LANE = "import json, sys\nfor line in sys.stdin:\n    print(json.dumps(-json.loads(line)), flush=True)\n"
CALLS = {
    "unordered": "unordered(abs, [(-1,), (-2,), (-3,)], 2)",
    "lanes": "lanes('lane', [-1, -2, -3], 2)",
}


@pytest.mark.parametrize("how", CALLS)
def test_no_code_of_the_current_directory_runs(tmp_path, how):
    """Which may be anybody's, where root is who calls."""
    theirs, ours, mark = tmp_path / "theirs", tmp_path / "ours", tmp_path / "mark"
    for name in ("selectors.py", "json/__init__.py", "joblib/__init__.py", "encodings/__init__.py"):
        file = theirs / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"open({str(mark)!r}, 'a').write(__name__)\n")
    ours.mkdir()
    (ours / "lane.py").write_text(LANE)
    text = f"import os\nfrom pathcast.parallel import {how}\n"
    text += f"print(sorted({CALLS[how]}), os.environ.get('PYTHONSAFEPATH'))"
    path = os.pathsep.join([str(ours), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-P", "-c", text],
        cwd=theirs,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "[1, 2, 3] None\n", done.stderr
    assert not mark.exists(), mark.read_text()
