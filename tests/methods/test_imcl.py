"""imcl: the losses against plain loops, the warm-up, the bank, lambdas that are measured once, side information, and
explanations that add up."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch

from conformance.bench import ITEMS, LABELS, differing, features, make_clock, make_pool, make_task, observed
from partly import training
from partly.clock import Clock
from partly.errors import SettingError
from partly.labels import Labels
from partly.methods.imcl import PRESETS, Candidates, Imcl
from partly.pool import Pool
from partly.run import Recipe


def made(pool: Pool | None = None, **settings: object) -> Imcl:
    pool = make_pool() if pool is None else pool
    method = Imcl(make_task(pool), **settings)  # type: ignore[arg-type]
    method.begin_epoch(pool, make_clock(pool))
    return method


def trained(**settings: object) -> Imcl:
    pool = make_pool()
    method = made(pool, **settings)
    training.train(method, pool, make_clock(pool, epochs=4))
    return method


def some(method: Imcl, items: int = 8) -> Candidates:
    return method.eval()._seen(make_pool().take(torch.arange(items)))[1]


def test_label_vectors() -> None:
    """0 where the logit is 0; what is known is 1 or -no_value."""
    method = made(no_value=0.25).eval()
    batch = make_pool().take(torch.arange(5))
    logits, seen = method._seen(batch)
    for x, score in zip(logits.flatten().tolist(), seen.scores.flatten().tolist(), strict=True):
        assert score == pytest.approx(1.25 / (1 + math.exp(-2 * x - math.log(0.25))) - 0.25, abs=1e-5)
    y = method._known(seen.scores, batch.z)
    assert (y[batch.z == 1] == 1).all()
    assert (y[batch.z == -1] == -0.25).all()
    assert torch.equal(y[batch.z == 0], seen.scores[batch.z == 0])


@pytest.mark.parametrize("known_through_graph", [True, False])
@pytest.mark.parametrize("tanh", [True, False])
def test_smoothness_by_loops(known_through_graph: bool, tanh: bool) -> None:
    method = made(known_through_graph=known_through_graph, tanh=tanh)
    own = some(method)
    support, c, c_f = method.similar(own, own)
    assert (support >= 0).sum(dim=1).max() >= 2
    edges = zip(method.graph.sources.tolist(), method.graph.weights.tolist(), strict=True)
    weights = {(s, label): w for label, both in enumerate(edges) for s, w in zip(*both, strict=True)}
    y = method._known(own.scores, own.z)
    through = y if known_through_graph else own.scores
    label_error = feature_error = 0.0
    for i in range(8):
        neighbours = [
            (j, a.item(), b.item()) for j, a, b in zip(support[i].tolist(), c[i], c_f[i], strict=True) if j >= 0
        ]
        assert i not in [j for j, _, _ in neighbours]
        if not neighbours:
            continue
        for label in range(LABELS):
            heard = 0.0
            for j, weight, _ in neighbours:
                atom = sum(weights.get((s, label), 0.0) * through[j, s].item() for s in range(LABELS))
                atom = y[j, label].item() if own.z[j, label] and not known_through_graph else atom
                heard += weight * atom
            label_error += (y[i, label].item() - (math.tanh(heard) if tanh else heard)) ** 2
        rebuilt = sum(weight * own.features[j] for j, _, weight in neighbours)
        feature_error += (own.features[i] - rebuilt).square().sum().item()
    found = method._smoothness(own, own)
    assert found.tolist() == pytest.approx([label_error / 8, feature_error / 8], rel=1e-4)


def test_the_warmup_is_plain_training() -> None:
    pool = make_pool()
    for epoch, plain in ((1, True), (2, False)):
        method = made(pool, warmup=0.5)
        clock = Clock(0, epochs=4, steps=pool.steps, epoch=epoch)
        logs = method.update(next(pool.batches(clock)), clock)
        assert (logs["loss"] == logs["known"]) is plain
        assert (method.scale == 0).all().item() is plain


def test_lambdas_are_measured_once() -> None:
    pool = make_pool()
    method = made(pool, warmup=0.0)
    clock = make_clock(pool)
    method.eval()  # without dropout
    batch = next(pool.batches(clock))
    logs = method.update(batch, clock)
    assert logs["loss"] == pytest.approx(logs["known"] * (1 + 1.0 + 0.5), rel=1e-4)
    before = method.scale.clone()
    assert (before > 0).all()
    method.update(batch, clock)
    assert torch.equal(before, method.scale)
    absolute = made(pool, warmup=0.0, relative=False).eval()
    own = absolute._seen(batch)[1]
    smooth = absolute._smoothness(own, own)
    logs = absolute.update(batch, clock)
    assert logs["loss"] - logs["known"] == pytest.approx((smooth[0] + 0.5 * smooth[1]).item(), rel=1e-4)


def test_lambdas_matter() -> None:
    plain = trained(lambda_y=0.0, lambda_f=0.0)
    for other in ({"lambda_y": 1.0, "lambda_f": 0.0}, {"lambda_y": 0.0, "lambda_f": 1.0}):
        assert differing(plain.network.state_dict(), trained(**other).network.state_dict()), other


def test_the_graph_learns_unless_told_not_to() -> None:
    pool = make_pool()
    first = made(pool).graph.weights
    assert not torch.equal(first, trained().graph.weights)
    assert torch.equal(first, trained(learn_graph=False).graph.weights)
    assert trained(graph="identity").graph.sources.shape == (LABELS, 1)


def test_an_item_without_neighbours_has_no_smoothness_loss() -> None:
    method = made()
    one = some(method, 1)
    assert method._smoothness(one, one).tolist() == [0.0, 0.0]


def test_the_bank() -> None:
    pool = make_pool()
    method = trained(candidates="bank", bank=12, refresh=2)
    assert len(set(method.bank_index.tolist())) == 12
    assert torch.equal(method.bank_z, pool.take(method.bank_index).z)
    own = method._seen(pool.take(torch.arange(ITEMS)))[1]
    support, *_ = method.similar(own, method._bank())
    for i, row in enumerate(support.tolist()):
        assert i not in [method.bank_index[j].item() for j in row if j >= 0]
    whole = trained(candidates="bank")
    assert whole.bank_index.tolist() == list(range(ITEMS))
    clock = Clock(0, epochs=4, steps=pool.steps, epoch=3)
    whole.begin_epoch(pool, clock)
    torch.testing.assert_close(whole.bank_features, whole.network.features(pool.x))


def test_presets_run() -> None:
    for settings in PRESETS.values():
        assert training.predict(trained(**settings), features()).shape == (ITEMS, LABELS)


def test_items_of_a_class_are_preferred(tmp_path: Path) -> None:
    classes = np.arange(ITEMS) % 3
    path = tmp_path / "side.csv"
    path.write_text("item,class\n" + "".join(f"{i},bird {c}\n" for i, c in enumerate(classes)), encoding="utf-8")
    agree = {}
    for weight in (0.0, 100.0):
        method = made(side=str(path), side_weight=weight)
        own = method.eval()._seen(make_pool().take(torch.arange(ITEMS)))[1]
        first = method.similar(own, own)[0][:, 0].numpy()
        agree[weight] = (classes[first[first >= 0]] == classes[first >= 0]).mean()
    assert agree[100.0] == 1.0 > agree[0.0]


@pytest.mark.parametrize("settings", [{}, {"known_through_graph": False}, {"candidates": "bank"}])
def test_an_explanation_adds_up(settings: dict[str, object]) -> None:
    pool = make_pool()
    method = trained(**settings).eval()
    whole = method._in_use(pool.in_order())
    support, c, _ = method.similar(whole, whole)
    atoms = method._through_graph(whole.scores, whole.z)
    for item, label in ((0, 0), (7, 3), (21, 4)):
        told = method.explain(item, label, pool)
        estimate = sum(w.item() * atoms[j, label].item() for j, w in zip(support[item], c[item], strict=True) if j >= 0)
        assert told.estimate == pytest.approx(estimate, abs=1e-5)
        assert sum(told.neighbours().values()) == pytest.approx(told.estimate, abs=1e-5)
        assert sum(told.edges().values()) == pytest.approx(told.estimate, abs=1e-5)
        assert set(told.neighbours()) == {j for j in support[item].tolist() if j >= 0}
        sizes = [abs(path.contribution) for path in told.evidence]
        assert sizes == sorted(sizes, reverse=True)
        assert told.probability == pytest.approx(torch.sigmoid(method(pool.x))[item, label].item(), abs=1e-4)
        for path in told.evidence:
            z = observed()[path.neighbour, path.label]
            if path.known:
                assert path.value == (1.0 if z == 1 else -0.5)


def test_a_new_item_is_explained_by_the_bank_or_by_a_pool() -> None:
    x = features()[3] + 0.01
    assert trained(candidates="bank", stop="score").explain(x, 1).evidence
    method = trained(stop="score")
    assert method.explain(x, 1, make_pool()).evidence
    with pytest.raises(SettingError, match=r"explain\(item, label, Pool"):
        method.explain(x, 1)
    with pytest.raises(SettingError, match="label = 5"):
        method.explain(x, 5, make_pool())


def test_a_graph_file_is_refused_before_the_run_begins(tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_text("label,related\n0,seven\n", encoding="utf-8")
    labels = Labels.from_ternary(observed())
    with pytest.raises(ValueError, match="'seven' is not among the 5 names"):
        Recipe("imcl", "linear", settings={"graph": str(path)}).build(features(), *labels.shape, labels)
