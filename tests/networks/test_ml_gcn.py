"""MLGCN: counts, graph and propagation by loops; vectors learned and given; saved with the model."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from partly import Classifier, Labels, networks
from partly.errors import SettingError
from partly.items import as_items
from partly.labels import matrix
from partly.networks import MLGCN, label_graph
from partly.networks.ml_gcn import co_occurrence, conditional

Z = arrays(np.int8, st.tuples(st.integers(1, 9), st.integers(1, 4)), elements=st.sampled_from([-1, 0, 1]))


def slow_conditional(z: np.ndarray) -> np.ndarray:
    labels = z.shape[1]
    result = np.zeros((labels, labels))
    for i in range(labels):
        for j in range(labels):
            yes = total = 0
            for item in z:
                if item[i] == 1 and (item[j] != 0 or not (z[:, j] == -1).any()):
                    total += 1
                    yes += int(item[j] == 1)
            result[i, j] = yes / total if total else 0
    return result


@given(Z, st.booleans())
@settings(max_examples=50, deadline=None)
def test_conditional_by_loops(z: np.ndarray, sparse: bool) -> None:
    labels = Labels.from_ternary(sp.csr_array(z) if sparse else z)
    assert labels.sparse == sparse
    np.testing.assert_allclose(conditional(labels), slow_conditional(z), rtol=1e-6)


def test_counts_worked_by_hand() -> None:
    """Of three items where 0 is yes, 1 is yes in one, no in one, and unknown in one: known in two."""
    both, known = co_occurrence(Labels.from_ternary([[1, 1], [1, -1], [1, 0], [-1, 1], [0, 1]]))
    assert both.tolist() == [[3, 1], [1, 3]]
    assert known.tolist() == [[3, 2], [2, 3]]
    assert conditional(Labels.from_ternary([[1, 1], [1, -1], [1, 0], [-1, 1], [0, 1]])).tolist() == [[1, 0.5], [0.5, 1]]


def test_where_only_yes_is_known_unknown_counts_as_no() -> None:
    found = conditional(Labels.from_positives([[1, 1, 0], [1, 0, 0], [1, 0, 0], [1, 0, 1]]))
    assert found.tolist() == [[1, 0.25, 0.25], [1, 1, 0], [1, 0, 1]]


def test_blocks_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    z = np.random.default_rng(0).integers(-1, 2, (50, 4)).astype(np.int8)
    whole = co_occurrence(Labels.from_ternary(z))
    monkeypatch.setattr(matrix, "BLOCK", 12)  # three items
    np.testing.assert_array_equal(co_occurrence(Labels.from_ternary(z)), whole)


def test_graph_worked_by_hand() -> None:
    """0 always comes with 1 and 2; 1 comes with 0 in half of the items; 2 and 3 come with nothing often enough."""
    rows = [[1, 1, 1, -1]] * 2 + [[-1, 1, -1, -1]] * 2 + [[-1, -1, 1, -1]] * 4 + [[-1, -1, -1, 1]]
    graph = label_graph(Labels.from_ternary(rows), tau=0.4, p=0.2)
    expected = [[0.8, 0.1, 0.1, 0], [0.1, 0.8, 0.1, 0], [0, 0, 1, 0], [0, 0, 0, 1]]
    torch.testing.assert_close(graph, torch.tensor(expected))
    # At tau = 0.3 label 2, which brings 0 and 1 in a third of its items, hears them too.
    torch.testing.assert_close(label_graph(Labels.from_ternary(rows), tau=0.3)[2], torch.tensor([0.1, 0.1, 0.8, 0]))


def test_one_yes_an_item_joins_nothing() -> None:
    assert torch.equal(label_graph(Labels.from_positives(np.eye(3))), torch.eye(3))


@pytest.mark.parametrize("wrong", [{"tau": -0.1}, {"tau": 1.1}, {"p": 1.5}])
def test_impossible_thresholds_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError, match=next(iter(wrong))):
        label_graph(Labels.from_positives(np.eye(3)), **wrong)


def slow_logits(net: MLGCN, features: torch.Tensor) -> list[list[float]]:
    """Two propagations, number by number."""
    graph, state = net.graph.tolist(), net.vectors.tolist()
    for number, weight in enumerate((net.first.weight.tolist(), net.second.weight.tolist())):
        mapped = [[sum(w * v for w, v in zip(row, label, strict=True)) for row in weight] for label in state]
        state = [
            [sum(graph[i][j] * mapped[j][d] for j in range(len(graph))) for d in range(len(weight))]
            for i in range(len(graph))
        ]
        if number == 0:
            state = [[v if v > 0 else 0.2 * v for v in label] for label in state]
    return [[math.fsum(f * w for f, w in zip(row, label, strict=True)) for label in state] for row in features.tolist()]


@pytest.mark.parametrize("vectors", [None, torch.randn(3, 5, dtype=torch.float64)], ids=["learned", "given"])
def test_forward_by_loops(vectors: torch.Tensor | None) -> None:
    torch.manual_seed(0)
    graph = torch.tensor([[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.0, 1.0]])
    net = MLGCN(4, graph, vectors, hidden=6).double()
    features = torch.randn(2, 4, dtype=torch.float64)
    expected = torch.tensor(slow_logits(net, features), dtype=torch.float64)
    torch.testing.assert_close(net(features), expected, rtol=1e-10, atol=1e-12)


def test_vectors_are_learned_unless_given_and_the_graph_never_is() -> None:
    learned, fixed = MLGCN(4, torch.eye(3)), MLGCN(4, torch.eye(3), torch.randn(3, 7))
    assert learned.vectors.shape == (3, 300)
    assert {name for name, _ in learned.named_parameters()} == {"vectors", "first.weight", "second.weight"}
    assert {name for name, _ in fixed.named_parameters()} == {"first.weight", "second.weight"}
    assert {"graph", "vectors"} <= set(learned.state_dict()) & set(fixed.state_dict())


@pytest.mark.parametrize(("graph", "vectors"), [((3, 2), None), ((3, 3), (2, 5))])
def test_sizes_that_do_not_fit_are_refused(graph: tuple[int, int], vectors: tuple[int, int] | None) -> None:
    with pytest.raises(SettingError, match=r"graph must be \[L, L\] and vectors \[L, V\]; got \[3, "):
        MLGCN(4, torch.zeros(graph), None if vectors is None else torch.zeros(vectors))


def test_the_head_counts_the_training_labels_and_a_loaded_model_has_its_graph(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    z = np.repeat(rng.choice([-1, 1], (60, 2)), 2, axis=1)  # 0 and 1 always together, and so 2 and 3
    x = (z + 0.1 * rng.normal(size=z.shape)).astype(np.float32)
    z[rng.random(z.shape) < 0.3] = 0
    labels = Labels.from_ternary(z)
    model = Classifier("partial-bce", head="ml-gcn", epochs=5, progress=False).fit(x, labels)
    head = model.fitted_.method.network.head.rest
    assert torch.equal(head.graph, label_graph(labels))
    assert not torch.equal(head.graph, torch.eye(4))
    model.save(tmp_path / "model")
    again = Classifier.load(tmp_path / "model")
    assert torch.equal(again.fitted_.method.network.head.rest.graph, head.graph)
    assert (again.predict_proba(x) == model.predict_proba(x)).all()


def test_the_trunk_is_that_of_mlp() -> None:
    network = networks.build(as_items(torch.randn(6, 7)), labels=5, head="ml-gcn").eval()
    x = torch.randn(2, 7)
    assert network.features(x).shape == (2, 512)
    assert not network.takes_labels
    torch.testing.assert_close(network(x), network.features(x) @ network.head.weights().T)
