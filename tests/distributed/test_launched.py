"""What a launcher says is read from the environment, and nothing else is."""

from __future__ import annotations

import pytest

from partly.distributed.launched import REQUIRED_VARIABLES, RankInfo, current_rank

SAID = {"RANK": "3", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2"}
SAID |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29500"}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name, value in SAID.items():
        monkeypatch.setenv(name, value)
    return monkeypatch


def test_several(said: pytest.MonkeyPatch) -> None:
    assert current_rank() == RankInfo(3, 4, 1, 2)
    assert not current_rank().first


@pytest.mark.parametrize("name", REQUIRED_VARIABLES)
def test_alone_where_something_is_not_said(said: pytest.MonkeyPatch, name: str) -> None:
    said.delenv(name)
    assert current_rank() == RankInfo()
    assert current_rank().first


def test_one_process_is_alone(said: pytest.MonkeyPatch) -> None:
    said.setenv("WORLD_SIZE", "1")
    assert current_rank() == RankInfo()
