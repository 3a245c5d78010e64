"""Unlike questions: near-twins wait, and where nothing is near it is uncertainty."""

from __future__ import annotations

import numpy as np
import torch

from partly import Labels
from partly.active.selection import select_questions
from partly.active.strategies.diverse import scale_features, select_diverse
from partly.clock import Clock
from partly.engine import build_method, make_config
from partly.items import as_items, texts


def asked(query: str, x: np.ndarray, count: int, **settings: float) -> list[tuple[int, int]]:
    items, labels = as_items(x.astype(np.float32)), Labels.from_ternary(np.zeros((len(x), 2), np.int8))
    method = build_method(make_config("bce", "linear"), items, 2, labels)
    with torch.no_grad():
        for weight in method.parameters():
            weight.copy_(torch.linspace(-1, 1, weight.numel()).reshape(weight.shape))
    found = select_questions(query, method, items, labels, count, Clock(0), settings=settings)
    return list(zip(found.rows.tolist(), found.columns.tolist(), strict=True))


def test_a_twin_comes_after_all_others() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(12, 4))
    x[6:] = x[:6]  # each has a twin
    first = asked("diverse", x, 12)
    assert len({(row % 6, column) for row, column in first}) == 12
    assert len({(row % 6, column) for row, column in asked("uncertainty", x, 12)}) < 12


def test_where_nothing_is_near_it_is_uncertainty() -> None:
    x = np.random.default_rng(1).normal(size=(9, 3))
    assert asked("diverse", x, 18, near=1e-9) == asked("uncertainty", x, 18)


def test_what_lies_behind_comes_by_its_entropy() -> None:
    x = np.random.default_rng(2).normal(size=(9, 3))
    plain = asked("uncertainty", x, 18)
    assert set(asked("diverse", x, 18, among=5)[:5]) == set(plain[:5])
    assert asked("diverse", x, 18, among=5)[5:] == plain[5:]


def test_spread_is_what_slow_code_says() -> None:
    rng = np.random.default_rng(3)
    value, columns, vectors = rng.random(7), np.array([0, 0, 1, 0, 1, 1, 0]), rng.normal(size=(7, 2))
    middle = np.median([np.sum((vectors[i] - vectors[(i - 3) % 7]) ** 2) for i in range(7)])
    left = {k: value[k] + 1e-9 for k in range(7)}
    order, worth = [], []
    while left:
        k = max(left, key=lambda i: left[i])
        order.append(k)
        worth.append(left.pop(k))
        for i in left:
            if columns[i] == columns[k]:
                left[i] *= 1 - np.exp(-np.sum((vectors[i] - vectors[k]) ** 2) / (0.1 * middle))
    found = select_diverse(value, columns, vectors, 7)
    assert found[0].tolist() == order
    np.testing.assert_allclose(found[1], worth)


def test_items_without_features_lie_where_the_model_puts_them() -> None:
    words = texts([f"word{i % 5} and word{i % 3}" for i in range(8)])
    labels = Labels.from_ternary(np.zeros((8, 2), np.int8))
    method = build_method(make_config("bce", "linear"), words, 2, labels)
    assert len(select_questions("diverse", method, words, labels, 6, Clock(0))) == 6


def test_features_are_at_their_scale() -> None:
    items = as_items(np.array([[0.0, 100.0, 5.0], [2.0, 300.0, 5.0]], np.float32))
    np.testing.assert_allclose(np.abs(scale_features(items, np.array([1, 0, 1]))), [[1, 1, 0]] * 3)
