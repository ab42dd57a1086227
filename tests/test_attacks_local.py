"""What another user of this host may try against commands that run as root. SECURITY.md has the table of it."""

from __future__ import annotations

import os

import pytest
from conftest import NOBODY

pytestmark = pytest.mark.privileged

PLANTED = "import os\nopen({mark!r}, 'a').write(f'{{os.geteuid()}}\\n')\n"


@pytest.fixture
def planted(tmp_path):
    """A directory of another user's with modules in it that say who has run them; and what they said."""
    place, mark = tmp_path / "theirs", tmp_path / "mark"
    for name in ("selectors.py", "pathcast/__init__.py", "json/__init__.py", "encodings/__init__.py"):
        file = place / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(PLANTED.format(mark=str(mark)))
    for path in (place, *place.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    return place, lambda: mark.read_text() if mark.exists() else ""


@pytest.mark.parametrize("what", ["net up", "control load --pin", "run --background", "doctor"])
def test_no_code_of_the_current_directory_runs(pathcast, site, small, name, planted, what):
    place, said = planted
    arguments = {
        "net up": ["net", "up", small, "--name", name],
        "control load --pin": ["control", "load", "reno", "--pin"],
        "run --background": ["run", "--background", "--", "true"],
        "doctor": ["doctor"],
    }[what]
    done = pathcast(*arguments, cwd=place)
    pathcast("undo", "--all")
    assert said() == ""
    assert done.returncode == 0, done.stderr


def test_nor_under_a_controller_that_is_held(start, site, planted, wait_for, monkeypatch):
    place, said = planted
    monkeypatch.chdir(place)
    process = start("control", "load", "reno")
    assert "until this command ends" in process.stdout.readline(), process.stderr.read()
    process.terminate()
    process.wait(20)
    assert said() == ""
    assert wait_for(site.empty)
