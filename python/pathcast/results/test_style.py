"""Plots have our style, whatever lies in the current directory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DRAWN = """
import os
from pathcast.results.style import style
here = os.getcwd()
with style():
    import matplotlib
    import matplotlib.pyplot as plt
    plt.close(plt.figure())
    print(matplotlib.rcParams["text.usetex"], matplotlib.rcParams["lines.linewidth"], matplotlib.get_backend().lower())
assert os.getcwd() == here
print(os.environ.get("MATPLOTLIBRC"))
"""


@pytest.mark.parametrize("where", ["current", "file", "directory", "configuration"])
def test_settings_and_modules_that_somebody_has_put_there_are_not_taken(tmp_path, where):
    (tmp_path / "matplotlibrc").write_text("backend: module://planted\ntext.usetex: True\nlines.linewidth: 99\n")
    (tmp_path / "planted.py").write_text("print('planted')\n")
    named = {
        "current": {},
        "file": {"MATPLOTLIBRC": str(tmp_path / "matplotlibrc")},
        "directory": {"MATPLOTLIBRC": str(tmp_path)},
        "configuration": {"MPLCONFIGDIR": str(tmp_path)},
    }[where]
    environment = {**os.environ, **named}
    cwd = tmp_path if where == "current" else Path("/")
    command = (sys.executable, "-P", "-c", DRAWN)
    done = subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)
    assert done.stdout == f"False 1.5 agg\n{environment.get('MATPLOTLIBRC')}\n", done.stderr


def test_nothing_of_ours_imports_matplotlib_before_the_style_does():
    sources = Path(__file__).parents[1]
    for source in (*sources.rglob("*.py"), *sources.parents[1].glob("experiments/*/*.py")):
        at_once = re.search(r"^(import|from) matplotlib", source.read_text(), re.MULTILINE)
        assert at_once is None, source
