"""What stands for the code in a sample's key: the sources, not where they stand. Digest: crates/native/digest.rs."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from pathcast import _native
from pathcast.lab import version


def test_the_extension_is_known_by_its_sources_not_by_the_bytes_that_carry_paths_of_the_build():
    assert re.fullmatch("[0-9a-f]{64}", version.code())
    assert version.code() != hashlib.sha256(Path(_native.__file__).read_bytes()).hexdigest()


def test_files_are_known_by_names_and_bytes_wherever_they_are(tmp_path):
    here, elsewhere = tmp_path / "here", tmp_path / "else" / "where"
    for folder in (here, elsewhere):
        folder.mkdir(parents=True)
        for name in ("a.py", "b.py"):
            (folder / name).write_text(name)
    known = version.files([here / "a.py", here / "b.py"])
    assert known == version.files([elsewhere / "b.py", elsewhere / "a.py"])
    (elsewhere / "b.py").write_text("b.Py")
    assert known != version.files(elsewhere.iterdir())


def test_a_package_is_all_of_its_files_and_a_module_its_own():
    assert {path.name for path in version.packages(["pathcast.plan.terms"])} == {"terms.py"}
    assert {"terms.py", "hours.py", "__init__.py"} <= {path.name for path in version.packages(["pathcast.plan"])}
