"""The label graph: counted on known entries, brought by the caller, applied without a matrix of all pairs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
import torch

from partly.errors import DataError, SettingError
from partly.labels import Labels
from partly.networks.label_vectors import embed_names
from partly.similarity import (
    LabelGraph,
    co_occurrence_edges,
    graph,
    mix_rows,
    read_classes,
    read_edges,
    strongest_edges,
)

NAMES = ("cat", "dog", "sofa")


def labels(items: int = 40, count: int = 7, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).choice([-1, 0, 1], size=(items, count)).astype(np.int8)


def slow_counts(z: np.ndarray, most: int) -> tuple[list[list[int]], list[list[float]]]:
    others, shares = [], []
    for j in range(z.shape[1]):
        rows = []
        for other in range(z.shape[1]):
            both = sum(1 for row in z if row[j] == 1 and row[other] == 1)
            asked = sum(1 for row in z if row[j] == 1 and row[other] != 0)
            if other != j and both:
                rows.append((-both, other, both / asked))
        rows = sorted(rows)[:most] + [(0, -1, 0.0)] * (most - len(rows))
        others.append([row[1] for row in rows])
        shares.append([row[2] for row in rows])
    return others, shares


@pytest.mark.parametrize("most", [1, 3, 6])
def test_counts_of_known_entries(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    z = labels()
    z[:, 2] = np.minimum(z[:, 2], 0)  # never yes
    expected = slow_counts(z, most)
    for block in (1 << 22, 15):
        monkeypatch.setattr(graph, "MAX_PAIRS_PER_BLOCK", block)
        for observed in (Labels.from_ternary(z), Labels.from_ternary(sp.csr_array(z))):
            others, shares = co_occurrence_edges(observed, most)
            assert others.tolist() == expected[0]
            np.testing.assert_allclose(shares, expected[1])


def test_the_strongest_pairs() -> None:
    pairs = (np.array([0, 1, 0, 0, 1]), np.array([1, 1, 2, 3, 0]), np.array([0.2, 9.0, 0.5, 0.5, 0.1]))
    others, strengths = strongest_edges(pairs, 4, 2)
    assert others.tolist() == [[2, 3], [0, -1], [-1, -1], [-1, -1]]
    assert strengths.tolist() == [[0.5, 0.5], [0.1, 0], [0, 0], [0, 0]]


def dense(made: LabelGraph) -> torch.Tensor:
    """[from, to]"""
    matrix = torch.zeros(len(made.sources), len(made.sources))
    for label, (sources, weights) in enumerate(zip(made.sources.tolist(), made.weights.tolist(), strict=True)):
        for source, weight in zip(sources, weights, strict=True):
            if source >= 0:
                matrix[source, label] += weight
    return matrix


def test_it_is_a_product_with_the_matrix_of_its_edges() -> None:
    made = LabelGraph(7, 3)
    y = torch.randn(5, 7, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(made(y), y)  # at first the identity
    made.connect("co-occurrence", Labels.from_ternary(labels()))
    matrix = dense(made)
    assert (matrix != 0).sum() == 7 * 4
    torch.testing.assert_close(matrix.sum(dim=0), torch.ones(7))
    torch.testing.assert_close(made(y), y @ matrix)
    made.connect("identity", Labels.from_ternary(labels()))
    torch.testing.assert_close(made(y), y)


def test_weights_by_hand() -> None:
    """Dog is yes with cat in 1 of the 2 items where both are known; so cat weighs 1 to 1/2."""
    z = np.array([[1, 1, 0], [1, -1, 0], [1, 0, -1]], np.int8)
    made = LabelGraph(3, 2)
    made.connect("co-occurrence", Labels.from_ternary(z, names=NAMES))
    expected = torch.tensor([[2 / 3, 1 / 2, 0], [1 / 3, 1 / 2, 0], [0, 0, 1]])
    torch.testing.assert_close(dense(made), expected)


def test_gradients_reach_weights_and_labels_but_no_missing_edge() -> None:
    rows = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 2, dtype=torch.float64, requires_grad=True)
    index = torch.tensor([[0, 3], [2, -1]])
    assert torch.autograd.gradcheck(lambda r, w: mix_rows(r, index, w), (rows, weights))
    mix_rows(rows, index, weights).sum().backward()
    assert weights.grad is not None
    assert weights.grad[1, 1] == 0
    assert mix_rows(rows, index, weights)[1].tolist() == pytest.approx((weights[1, 0] * rows[2]).tolist())


def test_many_labels_make_no_square_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    made = LabelGraph(5000, 50)
    row = np.arange(400).repeat(5)
    column = np.random.default_rng(0).integers(0, 5000, len(row))
    z = sp.csr_array((np.ones(len(row), np.int8), (row, column)), shape=(400, 5000))
    z.data[:] = 1
    made.connect("co-occurrence", Labels.from_ternary(z))
    made(torch.randn(8, 5000)).sum().backward()
    assert max(p.numel() for p in (made.sources, made.weights)) == 5000 * 51


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_names_that_mean_something_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against plain loops, and in blocks; and by the real vectors a dog is nearer to a cat than to a bus."""
    names = ["cat", "dog", "bus", "train", "dining table"]
    monkeypatch.setattr(graph, "MAX_PAIRS_PER_BLOCK", 2 * len(names))
    others, cosines = graph.name_similarity_edges(names, 2)
    vectors = embed_names(names).double().numpy()
    for label, vector in enumerate(vectors):
        found = {
            float(vector @ other / np.sqrt(vector @ vector) / np.sqrt(other @ other)): place
            for place, other in enumerate(vectors)
            if place != label
        }
        near = sorted(found, reverse=True)[:2]
        assert others[label].tolist() == [found[cosine] for cosine in near]
        assert cosines[label] == pytest.approx(near, abs=1e-5)
    assert others[0, 0] == 1
    assert others[2, 0] == 3


def test_a_graph_that_the_caller_brings(tmp_path: Path) -> None:
    path = write(tmp_path / "graph.csv", "label,related,weight\ncat,dog,0.5\ncat,sofa,3\nsofa,cat,1\n")
    made = LabelGraph(3, 1)
    made.connect(path, Labels.from_ternary(np.zeros((2, 3), np.int8), names=NAMES))
    assert made.sources.tolist() == [[0, 2], [1, -1], [2, 0]]
    assert made.weights.tolist() == [[0.25, 0.75], [1.0, 0.0], [0.5, 0.5]]
    plain = write(tmp_path / "plain.csv", "label,related\ncat,dog\n")
    assert [part.tolist() for part in read_edges(plain, NAMES)] == [[0], [1], [1.0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("label,related\ncat,dgo\n", r"graph.csv:2: label 'dgo' is not among the 3 names. Nearest: 'dog'"),
        ("label,other\ncat,dog\n", "the columns must be label and related and perhaps weight; there is label, other"),
        ("label,related\ncat,dog\ndog,cat\ncat,dog\n", r"graph.csv:4: \('cat', 'dog'\)\n.*an edge is there once"),
        ("label,related,weight\ncat,dog,x\nsofa,dog,-1\n", "0 or more: 2\n.*graph.csv:2: 'x'\n.*graph.csv:3: '-1'"),
    ],
)
def test_a_graph_that_cannot_be_read(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read_edges(write(tmp_path / "graph.csv", text), NAMES)


def test_a_graph_from_parquet_has_numbers(tmp_path: Path) -> None:
    columns = {"label": ["cat", "dog"], "related": ["sofa", "cat"], "weight": [0.5, 2.0]}
    pq.write_table(pa.table(columns), tmp_path / "graph.parquet")
    assert [part.tolist() for part in read_edges(tmp_path / "graph.parquet", NAMES)] == [[0, 1], [2, 0], [0.5, 2.0]]
    pq.write_table(pa.table(columns | {"weight": [0.5, None]}), tmp_path / "graph.parquet")
    with pytest.raises(DataError, match="row 2: None"):
        read_edges(tmp_path / "graph.parquet", NAMES)


def test_a_graph_that_does_not_exist_is_refused_with_what_there_is() -> None:
    with pytest.raises(SettingError, match=r"Did you mean 'co-occurrence'\? Or name a file of edges"):
        LabelGraph(3, 2).connect("cooccurrence", Labels.from_ternary(labels(count=3)))
    with pytest.raises(SettingError, match="max_edges = 7: should be from 0 to 6"):
        co_occurrence_edges(Labels.from_ternary(labels()), 7)


def test_classes_of_items(tmp_path: Path) -> None:
    path = write(tmp_path / "side.csv", "item,class\nb,wren\na,crow\nd,wren\nc,\n")
    assert read_classes(path, ("a", "b", "c", "d", "e")).tolist() == [1, 0, -1, 0, -1]
    with pytest.raises(DataError, match=r"side.csv:3: 'b'\n.*an item has one class"):
        read_classes(write(tmp_path / "side.csv", "item,class\nb,wren\nb,crow\n"), ("a", "b"))
    path = write(tmp_path / "side.csv", "item,class\nb,wren\n")
    with pytest.raises(DataError, match="none of the 2 items is in it, such as 'x'"):
        read_classes(path, ("x", "y"))


def test_the_old_name_warns() -> None:
    with pytest.warns(DeprecationWarning, match="mixed is now mix_rows"):
        from partly.similarity import mixed
    assert mixed is mix_rows
