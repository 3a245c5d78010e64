"""The items on disk that the kit gives to methods: the same as in memory, and never more than a batch at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from conformance.bench import BATCH, ITEMS, OnDisk, features, make_pool
from partly.items import is_items


@pytest.fixture
def on_disk(tmp_path: Path) -> OnDisk:
    return OnDisk.written(make_pool().items, tmp_path / "items")


def test_they_are_the_same_items(on_disk: OnDisk) -> None:
    items, x = make_pool().items, features()
    assert is_items(on_disk)
    assert (len(on_disk), on_disk.kind, on_disk.shape) == (len(items), items.kind, items.shape)
    assert on_disk.digest() == items.digest() != on_disk[:3].digest()
    assert torch.equal(on_disk.statistics.mean, items.statistics.mean)
    index = torch.tensor([20, 3, 3])
    assert torch.equal(on_disk.take(index), x[index])
    assert torch.equal(on_disk[4:].take(slice(1, 3)), x[5:7])
    assert torch.equal(on_disk[np.array([7, 2])].take(slice(None)), x[[7, 2]])
    assert on_disk.take(torch.tensor([], dtype=torch.int64)).shape == (0, *items.shape)


def test_more_than_a_batch_is_refused(on_disk: OnDisk) -> None:
    assert len(on_disk.take(slice(0, BATCH))) == BATCH
    for index in (slice(0, BATCH + 1), slice(None), torch.arange(ITEMS)):
        with pytest.raises(MemoryError, match="items are asked for at once, but 8 are a batch"):
            on_disk.take(index)
