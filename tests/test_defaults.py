"""What is taken where method and head are left open, and that its reason is true of the labels it is given for."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from partly import Labels, methods
from partly.defaults import choose, plain
from partly.items import Items, as_items

nan = np.nan


@pytest.mark.parametrize(
    ("what", "rows", "method", "reason"),
    [
        ("nothing unknown", [[1, 0], [0, 1]], "bce", "every entry is known"),
        ("nothing unknown, all yes", [[1, 1], [1, 1]], "bce", "every entry is known"),
        ("some no", [[1, 0, nan], [nan, 1, nan]], "partial-bce", "2 entries are known to be yes and 1 to be no"),
        ("only no", [[0, nan], [nan, 0]], "partial-bce", "0 entries are known to be yes and 2 to be no"),
        ("wholly known items", [[1, 0], [0, 0], [nan, nan]], "partial-bce", "1 entries are known to be yes and 3"),
        ("only yes", [[1, 1, nan], [nan, 1, nan]], "assume-negative", "only yes is known"),
        ("only yes, not of every item", [[1, nan], [nan, nan]], "assume-negative", "only yes is known"),
        ("one yes each", [[1, nan, nan], [nan, nan, 1]], "assume-negative", "one yes per item is known"),
    ],
)
def test_the_rule(what: str, rows: list[list[float]], method: str, reason: str) -> None:
    chosen, why = plain(Labels.from_nan(rows))
    assert (chosen, why.startswith(reason)) == (method, True), f"{what}: {why}"


@given(arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.sampled_from([1.0, 0.0, nan])))
def test_the_reason_is_true(values: np.ndarray) -> None:
    if np.isnan(values).all():  # refused before anybody asks
        return
    method, reason = plain(Labels.from_nan(values))
    assert method in methods.discover()
    yes, no = int((values == 1).sum()), int((values == 0).sum())
    numbers = [int(number) for number in re.findall(r"\d+", reason)]
    if method == "bce":
        assert "every entry is known" in reason
        assert not np.isnan(values).any()
    elif method == "partial-bce":
        assert "left out" in reason
        assert numbers == [yes, no]
        assert no > 0
    else:
        assert "no entry is known to be no; unknown ones are taken for no" in reason
        assert no == 0
        assert ("one yes per item" in reason) == bool(((values == 1).sum(axis=1) == 1).all())


def test_sparse_labels_get_the_same_answer() -> None:
    import scipy.sparse as sp

    z = np.array([[1, 0, 0], [0, 1, 0]], dtype=np.int8)
    sparse, dense = (Labels.from_ternary(kind(z)) for kind in (sp.csr_array, np.asarray))
    assert plain(sparse) == plain(dense)
    items = as_items(np.eye(2, 3))
    assert choose("auto", "auto", items, sparse) == choose("auto", "auto", items, dense)


# -------------------------------------------------------------------- method and head


KNOWN = Labels.from_nan([[1, 0, nan], [nan, 1, nan], [nan, nan, 0], [1, nan, nan]])
ROWS = as_items(np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32))
PICTURES = as_items(np.zeros((4, 16, 16, 3), np.uint8))


@pytest.mark.parametrize(
    ("asked", "items", "taken"),
    [
        (("auto", "auto"), ROWS, ("auto", "kernel")),
        (("auto", "kernel"), ROWS, ("partial-bce", "kernel")),
        (("auto", "linear"), ROWS, ("partial-bce", "linear")),
        (("auto", "mlp"), ROWS, ("partial-bce", "mlp")),
        (("auto", "auto"), PICTURES, ("partial-bce", "mlp")),
        (("auto", "linear"), PICTURES, ("partial-bce", "linear")),
        (("bce", "auto"), ROWS, ("bce", "kernel")),  # solved
        (("role", "auto"), ROWS, ("role", "kernel")),  # trained from the solved baseline
        (("bce", "auto"), PICTURES, ("bce", "mlp")),
        (("role", "linear"), ROWS, ("role", "linear")),
        (("auto", "auto", "sgd"), ROWS, ("partial-bce", "mlp")),  # somebody asks for steps
        (("bce", "auto", "sgd"), ROWS, ("bce", "mlp")),
    ],
)
def test_what_is_taken(asked: tuple[str, ...], items: Items, taken: tuple[str, str]) -> None:
    method, head, *optimizer = asked
    *found, reason = choose(method, head, items, KNOWN, *optimizer)
    assert tuple(found) == taken
    expected = {"auto": "a portfolio", "partial-bce": plain(KNOWN)[1]}.get(taken[0], "as requested")
    assert reason.startswith(expected if method == "auto" else "as requested")


def test_what_is_too_large_to_be_solved_is_trained_by_the_plain_method(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partly.solvers.solved_readout.MAX_BYTES", 100)
    *taken, reason = choose("auto", "auto", ROWS, KNOWN)
    assert taken == ["partial-bce", "mlp"]
    assert reason == f"{plain(KNOWN)[1]}; a portfolio of 4 x 3 entries would take too much memory"
    assert choose("auto", "linear", ROWS, KNOWN)[2] == plain(KNOWN)[1]  # nobody has asked for a portfolio
    assert choose("bce", "auto", ROWS, KNOWN)[:2] == ("bce", "mlp")
