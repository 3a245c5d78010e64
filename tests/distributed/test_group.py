"""How rows are dealt out, and that a process alone has nothing to do."""

from __future__ import annotations

import pytest
import torch

from partly.distributed import group
from partly.distributed.group import SINGLE_PROCESS, Group
from partly.errors import SettingError


@pytest.mark.parametrize("count", [1, 2, 3, 5])
@pytest.mark.parametrize("rows", [0, 1, 2, 7, 64])
def test_every_row_is_somebodys_and_shares_are_equal(rows: int, count: int) -> None:
    shares = [list(range(rows))[Group(rank, count).rows(rows)] for rank in range(count)]
    assert [row for share in shares for row in share] == list(range(rows))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_alone() -> None:
    assert group.process_group() is SINGLE_PROCESS
    gradient = torch.tensor([1.0, 2.0])
    SINGLE_PROCESS.average([gradient, None])
    assert gradient.tolist() == SINGLE_PROCESS.total(gradient).tolist() == [1.0, 2.0]
    assert SINGLE_PROCESS.any_yes(True, False) == [True, False]
    SINGLE_PROCESS.assert_consistent({"anything": object()})
    with SINGLE_PROCESS.rank_zero_first():
        pass


def test_alone_needs_no_torch_distributed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group, "_import_distributed", lambda: pytest.fail("it was asked for"))
    test_alone()


@pytest.mark.parametrize("said", ["soon", "0", "-3", "nan"])
def test_how_long_to_wait_is_a_number_of_minutes(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    monkeypatch.setenv(group.TIMEOUT_VARIABLE, said)
    with pytest.raises(SettingError, match=f"PARTLY_WAIT='{said}' should be a number of minutes"):
        group._minutes()
