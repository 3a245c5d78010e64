"""Parts of the labels and of the items are measured as if they were all."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from partly import Labels
from partly.errors import DataError
from partly.labels.scored import gather_known
from partly.metrics import measure, measure_slice, slice_items, slice_labels


def example(sparse=False):
    rng = np.random.default_rng(0)
    z = rng.choice([-1, 0, 1], (90, 5), p=[0.4, 0.3, 0.3])
    z[:, 1] = np.where(rng.random(90) < 0.8, 0, z[:, 1])  # little known
    labels = Labels.from_ternary(sp.csr_array(z) if sparse else z, names=list("abcde"))
    scores = rng.random(z.shape)
    return (gather_known([(slice(None), scores)], labels) if sparse else scores), labels, scores, z


@pytest.mark.parametrize("sparse", [False, True])
def test_parts_equal_the_metrics_of_the_parts_alone(sparse):
    scores, labels, dense, z = example(sparse)
    groups = np.array(["x", "y", "z"])[np.arange(90) % 3]
    for part in slice_labels(labels, "frequency") + slice_items(labels, groups, "site"):
        rows = slice(None) if part.rows is None else part.rows
        columns = slice(None) if part.columns is None else part.columns
        thresholds = np.linspace(0.3, 0.7, 5)
        found = measure_slice(part, scores, labels, thresholds).values
        expected = measure(
            dense[rows][:, columns], Labels.from_ternary(z[rows][:, columns]), thresholds[columns]
        ).values
        assert found == pytest.approx(expected, nan_ok=True)


def test_labels_are_ordered_by_their_counts():
    _, labels, _, z = example()
    parts = slice_labels(labels, "known", parts=5)
    counts = (z != 0).sum(axis=0)
    assert [int(part.columns[0]) for part in parts] == np.argsort(counts, kind="stable").tolist()
    assert parts[0].title == f"labels with {counts.min()} known entries"
    titles = [part.title for part in slice_labels(labels, "frequency", parts=1)]
    yes = (z == 1).sum(axis=0)
    assert titles == [f"labels with {yes.min()} to {yes.max()} known yes"]


def test_groups_are_matched_by_id():
    _, labels, _, _ = example()
    groups = {name: "north" if int(name) < 30 else "south" for name in reversed(labels.ids)}
    north, south = slice_items(labels, groups, "site")
    assert (north.title, south.title) == ("site north", "site south")
    assert north.rows.tolist() == list(range(30))
    del groups["3"]
    with pytest.raises(DataError, match="1 of the 90 items have no group; the first is '3'"):
        slice_items(labels, groups, "site")
    with pytest.raises(DataError, match="90 groups of items; 50 at most"):
        slice_items(labels, list(range(90)), "site")
