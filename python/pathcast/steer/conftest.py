"""Switches of the kernel tests, which share them: making them takes longer than using them."""

from __future__ import annotations

import pytest

from pathcast.service import doctor
from pathcast.steer.testing import Bed


@pytest.fixture(scope="session")
def bed(tmp_path_factory):
    """Three switches and two hosts."""
    if lacking := doctor.missing("privilege", "iproute2", "namespaces", "openvswitch"):
        pytest.skip(", ".join(f"{c.name}: {c.detail}" for c in lacking))
    with Bed(tmp_path_factory.mktemp("b") / "b") as bed:
        yield bed
