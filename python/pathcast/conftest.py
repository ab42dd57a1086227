"""What all tests of the package share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_history(tmp_path_factory):
    """Nothing here is recorded in the history of this host's own pathcast, or hangs on its lines."""
    own = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATHCAST_HISTORY", "off")
        patch.setenv("PATHCAST_STATE_DIR", str(own))
        patch.setenv("PATHCAST_CONFIG", str(own / "pathcast.toml"))
        yield
