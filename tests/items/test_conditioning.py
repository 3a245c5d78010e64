"""Columns that float32 cannot hold as they are: what is done to them, to which of them, and that others stay."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import torch

from partly.items import Arrays, as_items, prepare_for_training, prepare_like
from partly.items.conditioning import CLIP, Conditioning, choose_conditioning, is_conditioning

Array = np.ndarray[Any, Any]
X = np.random.default_rng(0).normal(size=(300, 3))
EPSILON = float(np.finfo(np.float64).eps)


def chosen(x: Array, rounding: float = EPSILON) -> Conditioning | None:
    return choose_conditioning(x.mean(axis=0), x.std(axis=0), x, rounding)


def is_clipped(x: Array) -> bool:
    found = chosen(x)
    return found is not None and bool(np.isfinite(found.limit).any())


def with_values(values: dict[int, float], x: Array = X) -> Array:
    """The first column with other values at some items."""
    changed = x.copy()
    changed[list(values), 0] = list(values.values())
    return changed


# ---------------------------------------------------------------- which columns


@pytest.mark.parametrize("x", [X, X + 900, X * 1e11, X * 1e-11, X**5, (X > 2).astype(float), X * 0 + 0.1])
def test_ordinary_columns_are_left_alone(x: Array) -> None:
    assert chosen(x) is None
    items = as_items(x)
    assert prepare_for_training(items).digest() == as_items(x.astype(np.float32)).digest()
    np.testing.assert_array_equal(prepare_for_training(items).take(slice(None)).numpy(), x.astype(np.float32))


def test_float32_items_are_not_even_copied() -> None:
    items = as_items(X.astype(np.float32))
    assert prepare_for_training(items) is items


def test_a_column_far_from_zero_is_centered_and_keeps_its_scale() -> None:
    found = chosen(X + np.array([0, 2e3, 1e9]))
    assert found is not None
    assert found.columns.tolist() == [1, 2]
    np.testing.assert_allclose(found.shift, (X + np.array([0, 2e3, 1e9])).mean(axis=0)[1:])
    assert found.factor.tolist() == [1, 1]
    assert found.limit.tolist() == [np.inf, np.inf]


def test_rounding_noise_of_a_constant_is_not_blown_up() -> None:
    x = np.where(X > 0, 0.1 + 0.2, 0.3)  # they differ in the last bit
    assert x.std() > 0
    assert chosen(x) is None
    single = np.full((300, 1), 1e6, np.float32) + (X[:, :1] > 0) * np.float32(0.06)
    assert chosen(single.astype(float), float(np.finfo(np.float32).eps)) is None


@pytest.mark.parametrize("scale", [1e-20, 1e-40, 1e20, 1e36])
def test_an_unusual_scale_is_divided_by(scale: float) -> None:
    with np.errstate(over="ignore"):
        items = prepare_for_training(as_items(X * scale))
    np.testing.assert_allclose(items.statistics.scale, 1.0, rtol=1e-6)


@pytest.mark.parametrize("value", [1e3, 1e20, -1e20, 1e36])
def test_a_single_item_does_not_decide_the_scale(value: float) -> None:
    with pytest.warns(UserWarning, match="a few extreme items dominate: 1\n  feature 0"):
        items = prepare_for_training(as_items(with_values({7: value})))
    x = items.take(slice(None)).numpy()
    others = np.delete(np.arange(300), 7)
    np.testing.assert_allclose(x[others, 0], X[others, 0] - np.median(X[:, 0]), atol=0.02)
    assert 0.9 * CLIP < abs(x[7, 0]) < 1.1 * CLIP
    np.testing.assert_array_equal(x[:, 1:], X[:, 1:].astype(np.float32))
    assert 0.8 < float(items.statistics.scale[0]) < 1.5


def test_one_of_a_hundred_items_may_be_extreme_in_a_column_that_varies() -> None:
    assert is_clipped(with_values(dict.fromkeys(range(3), 1e20)))
    assert not is_clipped(with_values(dict.fromkeys(range(30), 1e20)))  # a tenth of the items means it


def test_a_rare_one_is_no_extreme_item_but_a_huge_value_beside_it_is() -> None:
    rare = np.zeros((300, 1))
    rare[:4] = 1
    assert chosen(rare[3:]) is None
    rare[:4, 0] = [1, 2, 500, 800]
    assert not is_clipped(rare)
    rare[5] = 1e20
    assert is_clipped(rare)


def test_few_items_are_all_taken_as_they_are() -> None:
    assert not is_clipped(np.array([[0.0], [0.1], [1e20]]))


# ---------------------------------------------------------------- what is done


def test_values_by_hand() -> None:
    made = Conditioning(np.array([1]), np.array([10.0]), np.array([2.0]), np.array([5.0]))
    x = np.array([[1.5, 11.0, 3.0], [0.1, 1e9, 1e9], [0.0, -1e9, 0.0]])
    expected = np.array([[1.5, 2.0, 3.0], [0.1, 5.0, 1e9], [0.0, -5.0, 0.0]], np.float32)
    np.testing.assert_array_equal(made.apply(x), expected)


def test_digits_beyond_float32_survive(tmp_path) -> None:
    far = X + 1.7e9
    np.save(tmp_path / "x.npy", far)
    for items in (as_items(far), Arrays(np.load(tmp_path / "x.npy", mmap_mode="c"))):
        with pytest.warns(UserWarning, match=r"far from 0 .*: 3\n  feature 0: mean 1.7e\+09, scale 0.9"):
            made = prepare_for_training(items)
        expected = (far - far.mean(axis=0)).astype(np.float32)
        np.testing.assert_allclose(made.take(torch.arange(300)).numpy(), expected, atol=1e-5)
        other = prepare_like(as_items(far[:5]), made)
        np.testing.assert_array_equal(other.take(slice(None)).numpy(), made.take(slice(0, 5)).numpy())
        assert made[10:20].conditioning is made.conditioning


def test_columns_are_named() -> None:
    from partly.items import features

    with pytest.warns(UserWarning, match="'b': mean 1e"):
        prepare_for_training(features(X + np.array([0, 1e6, 0]), names=("a", "b", "c")))


def test_whole_numbers_are_exact() -> None:
    times = 1_700_000_000 + np.arange(400).reshape(200, 2)
    with pytest.warns(UserWarning, match="far from 0"):
        made = prepare_for_training(as_items(times))
    np.testing.assert_allclose(np.diff(made.take(slice(None)).numpy(), axis=0), 2.0)


def test_the_digest_of_conditioned_items_is_of_all_their_digits() -> None:
    one, other = X + 1e9, X + 1e9
    other[0, 0] += 1e-3
    assert as_items(one).digest() == as_items(other).digest()  # as nothing but float32 would see them
    with pytest.warns(UserWarning, match="far from 0"):
        digests = {prepare_for_training(as_items(x)).digest() for x in (one, other)}
    assert len(digests) == 2


# ---------------------------------------------------------------- as JSON


def test_from_json_reads_what_to_json_writes() -> None:
    made = chosen(with_values({7: 1e20}) + np.array([0, 0, 1e9]))
    assert made is not None
    plain = json.loads(json.dumps(made.to_json()))
    assert is_conditioning(plain, 3)
    read = Conditioning.from_json(plain)
    for name in ("columns", "shift", "factor", "limit"):
        np.testing.assert_array_equal(getattr(read, name), getattr(made, name))


@pytest.mark.parametrize(
    "value",
    [[], {}, [[0, 1.0, 1.0]], [[3, 1.0, 1.0, None]], [[0, None, 1.0, None]], [[0, "1", 1.0, None]],
     [[0, float("nan"), 1.0, None]], [[1, 0.0, 1.0, None], [0, 0.0, 1.0, None]], [[0.0, 0.0, 1.0, None]]],
)  # fmt: skip
def test_forged_json_is_told(value: Any) -> None:
    assert not is_conditioning(value, 3)
