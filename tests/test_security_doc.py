"""SECURITY.md names tests and files that are there."""

from __future__ import annotations

import re

from conftest import ROOT


def test_every_test_and_file_that_is_named_is_there():
    words = set(re.findall(r"`([^`\s]+)`", (ROOT / "SECURITY.md").read_text()))
    tests = {word for word in words if word.startswith("test_") and not word.endswith(".py")}
    files = {word for word in words if "/" in word and word.endswith((".py", ".rs"))}
    assert tests
    assert files
    for file in files:
        assert (ROOT / file).is_file(), file
    sources = [path for folder in ("tests", "python", "experiments") for path in (ROOT / folder).rglob("test_*.py")]
    defined = set(re.findall(r"^def (test_\w+)", "\n".join(path.read_text() for path in sources), re.MULTILINE))
    for test in tests:
        start = test.removesuffix("…")
        assert any(name == test or (test != start and name.startswith(start)) for name in defined), test


def test_every_rust_test_that_is_named_is_there():
    words = re.findall(r"`…?([a-z0-9]+(?:_[a-z0-9]*){2,})…?`", (ROOT / "SECURITY.md").read_text())
    tests = {word for word in words if not word.startswith("test_")}
    assert tests
    sources = "\n".join(path.read_text() for path in (ROOT / "crates").rglob("*.rs"))
    defined = re.findall(r"#\[test\]\s+fn (\w+)", sources)
    for test in tests:
        assert any(test.strip("_") in name for name in defined), test
