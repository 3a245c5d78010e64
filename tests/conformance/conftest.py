"""Where the processes of a session leave for each other what need be computed only once."""

from __future__ import annotations

import pytest

from conformance import digests


@pytest.fixture(scope="session", autouse=True)
def _shared_folder(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> None:
    own = tmp_path_factory.getbasetemp()
    is_worker = hasattr(request.config, "workerinput")  # of xdist: its folder lies in that of the session
    digests.shared = own.parent if is_worker else own
