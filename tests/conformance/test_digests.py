"""What other processes compute is computed once in a session of tests, whichever of its processes asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance import digests


@pytest.fixture
def forgetful() -> Iterator[None]:
    digests.in_other_processes.cache_clear()
    yield
    digests.in_other_processes.cache_clear()


@pytest.mark.usefixtures("forgetful")
def test_the_second_process_finds_what_the_first_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def computed() -> list[digests.Digests]:
        asked.append(1)
        return [{"file": "one"}, {"file": "other"}]

    monkeypatch.setattr(digests, "computed", computed)
    monkeypatch.setattr(digests, "shared", tmp_path)
    for _ in range(2):
        digests.in_other_processes.cache_clear()  # as in a process of its own
        assert digests.in_other_processes() == [{"file": "one"}, {"file": "other"}]
    assert asked == [1]
