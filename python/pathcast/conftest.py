"""What all tests of the package share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_history(tmp_path_factory):
    """Nothing here is recorded in the history of this host's own pathcast."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATHCAST_HISTORY", "off")
        patch.setenv("PATHCAST_STATE_DIR", str(tmp_path_factory.mktemp("state")))
        yield
