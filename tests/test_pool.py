"""Every item once an epoch, in an order that only the clock decides, and never a truth among it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given
from hypothesis import strategies as st

from partly.clock import Clock
from partly.items import as_items
from partly.labels import Labels
from partly.pool import Batch, Pool


def make(items: int = 10, batch_size: int = 4, sparse: bool = False) -> Pool:
    z = np.random.default_rng(0).integers(-1, 2, (items, 3)).astype(np.int8)
    x = torch.arange(items * 2, dtype=torch.float32).view(items, 2)
    return Pool(as_items(x), Labels.from_ternary(sp.csr_array(z) if sparse else z), batch_size)


def order(pool: Pool, clock: Clock) -> list[int]:
    return [i for batch in pool.batches(clock) for i in batch.index.tolist()]


def same(a: Batch, b: Batch) -> bool:
    return all(torch.equal(getattr(a, k), getattr(b, k)) for k in ("x", "z", "index"))


@given(st.integers(0, 30), st.integers(1, 12), st.integers(0, 3), st.booleans())
def test_every_item_once(items: int, batch_size: int, epoch: int, sparse: bool) -> None:
    pool = make(items, batch_size, sparse)
    x, z = pool.items.take(slice(None)), pool.labels.rows(slice(None))
    batches = list(pool.batches(Clock(0, epoch=epoch)))
    assert len(batches) == pool.steps
    assert [len(batch.x) for batch in batches[:-1]] == [batch_size] * (pool.steps - 1 if items else 0)
    assert sorted(order(pool, Clock(0, epoch=epoch))) == list(range(items))
    for batch in batches:
        assert torch.equal(batch.x, x[batch.index])
        assert batch.z.tolist() == z[batch.index.numpy()].tolist()


def test_the_order_is_the_clocks_permutation() -> None:
    clock = Clock(5, epoch=2)
    assert order(make(), clock) == clock.epoch_rng("order").permutation(10).tolist()


def test_other_epochs_and_seeds_have_other_orders() -> None:
    pool = make(30)
    orders = [order(pool, clock) for clock in (Clock(0), Clock(0, epoch=1), Clock(1))]
    assert orders[0] == order(pool, Clock(0))
    assert orders[0] != orders[1] != orders[2] != orders[0]


@pytest.mark.parametrize("step", [0, 1, 2, 3])
def test_a_late_start_gives_the_rest_of_the_epoch(step: int) -> None:
    whole = list(make().batches(Clock(0)))
    rest = list(make().batches(Clock(0, step=step)))
    assert len(rest) == len(whole) - step
    assert all(same(*pair) for pair in zip(rest, whole[step:], strict=True))


def test_sparse_labels_give_the_same_batches() -> None:
    pools = make(), make(sparse=True)
    assert pools[1].labels.sparse
    assert all(same(*pair) for pair in zip(*(pool.batches(Clock(0)) for pool in pools), strict=True))


def test_in_order() -> None:
    batches = list(make().in_order())
    assert [batch.index.tolist() for batch in batches] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert all(same(batch, make().take(batch.index)) for batch in batches)


def test_a_batch_is_x_z_index_and_what_the_caller_weighs_by() -> None:
    batch = make().take(torch.tensor([3, 1]))
    assert [field.name for field in dataclasses.fields(Batch)] == ["x", "z", "index", "weights"]
    assert batch.weights is None
    assert (batch.x.dtype, batch.z.dtype, batch.index.dtype) == (torch.float32, torch.int8, torch.int64)
    assert batch.index.tolist() == [3, 1]
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch.z = batch.z  # type: ignore[misc]


@pytest.mark.parametrize("sparse", [False, True])
def test_writing_into_a_batch_does_not_reach_the_pool(sparse: bool) -> None:
    pool = make(sparse=sparse)
    before = pool.take(torch.arange(10))
    x = pool.items.take(slice(None)).clone()
    for batch in (*pool.batches(Clock(0)), *pool.in_order()):
        batch.x.fill_(-7)
        batch.z.fill_(1)
    assert same(before, pool.take(torch.arange(10)))
    assert torch.equal(pool.items.take(slice(None)), x)


def test_pictures_stay_bytes() -> None:
    pool = Pool(as_items(np.zeros((4, 16, 16, 3), np.uint8)), Labels.from_ternary(np.zeros((4, 2), np.int8)))
    assert next(pool.in_order()).x.dtype == torch.uint8


@pytest.mark.parametrize("sparse", [False, True])
def test_items_that_are_wholly_known(sparse: bool) -> None:
    z = np.array([[1, -1], [0, 1], [-1, -1], [0, 0]], np.int8)
    labels = Labels.from_ternary(sp.csr_array(z) if sparse else z)
    assert Pool(as_items(torch.zeros(4, 3)), labels).fully_labelled.tolist() == [0, 2]


@given(st.integers(1, 12), st.integers(1, 5))
def test_items_of_every_kind_give_the_same_batches(items: int, batch_size: int) -> None:
    pool = make(items, batch_size)
    x = pool.items.take(slice(None))
    for others in (as_items(sp.csr_array(x)), as_items(torch.cat([x, x]))[items:]):
        other = dataclasses.replace(pool, items=others)
        assert all(same(*pair) for pair in zip(pool.batches(Clock(0)), other.batches(Clock(0)), strict=True))


@pytest.mark.parametrize("sparse", [False, True])
def test_labels_that_are_picked_some_batches_at_a_time_are_those_of_their_items(
    sparse: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("partly.pool.MAX_PICKED_ENTRIES", 2 * 4 * 3)  # two batches of four items x three labels
    pool = make(30, sparse=sparse)
    z = torch.tensor(pool.labels.rows(slice(None)))
    for batches in (list(pool.batches(Clock(0))), list(pool.in_order())):
        assert [len(batch.z) for batch in batches] == [4] * 7 + [2]
        assert all(torch.equal(batch.z, z[batch.index]) for batch in batches)
    assert all(torch.equal(given, z[index]) for index, given in pool.labels_in_order())
