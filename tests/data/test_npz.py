"""Archives of arrays: none of a few bytes becomes gigabytes unasked."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from partly import budget
from partly.data import npz
from partly.errors import DataError


@pytest.fixture
def bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small one: what nobody is afraid of is smaller here."""
    monkeypatch.setattr(budget, "FREE_BYTES", 1 << 16)
    np.savez_compressed(tmp_path / "a.npz", zeros=np.zeros(1 << 20, np.int8), some=np.arange(9))
    return tmp_path / "a.npz"


def test_an_array_far_larger_than_its_file_is_refused(bomb: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npz, "_array", lambda _: pytest.fail("it was read"))
    with pytest.raises(DataError, match=r"would become 1 MiB or more, \d+ times as much; up to 100 times"):
        npz.read_npz(bomb, ["zeros"])


def test_the_limit_can_be_lifted_as_is_said_and_concerns_what_is_read(
    bomb: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert npz.read_npz(bomb, ["some"])["some"].tolist() == list(range(9))
    with pytest.raises(DataError) as refused:
        npz.read_npz(bomb, ["zeros"])
    (said,) = re.findall(r"set PARTLY_MOST_EXPANSION=(\d+) or higher", str(refused.value))
    monkeypatch.setenv("PARTLY_MOST_EXPANSION", said)
    assert not npz.read_npz(bomb, ["zeros"])["zeros"].any()


def test_what_is_small_is_read_however_it_was_packed(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", zeros=np.zeros(1 << 20, np.int8))
    assert len(npz.read_npz(tmp_path / "a.npz", ["zeros"])["zeros"]) == 1 << 20
