"""imcl: the losses against plain loops, the warm-up, the bank, lambdas that are measured once, side information, and
explanations that add up."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from conformance.bench import ITEMS, LABELS, differing, features, make_clock, make_pool, make_task, observed, x_of
from partly import engine, methods
from partly.clock import Clock
from partly.engine import build_method, make_config, prediction, training
from partly.errors import DataError, PartlyError, SettingError
from partly.items import as_items
from partly.labels import Labels
from partly.methods.imcl import PRESETS, Imcl
from partly.networks import eval_mode
from partly.pool import Batch, Pool
from partly.similarity import Candidates, joint_nonnegative_omp
from plans import fit_config, plan_of


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


def seen(method: Imcl, batch: Batch) -> tuple[torch.Tensor, Candidates]:
    return method.eval()._encode(batch, method.classes)


def some(method: Imcl, items: int = 8) -> Candidates:
    return seen(method, make_pool().take(torch.arange(items)))[1]


def test_label_vectors() -> None:
    """0 where the logit is 0; what is known is 1 or -no_value."""
    method = made(no_value=0.25).eval()
    batch = make_pool().take(torch.arange(5))
    logits, as_seen = seen(method, batch)
    for x, score in zip(logits.flatten().tolist(), as_seen.scores.flatten().tolist(), strict=True):
        assert score == pytest.approx(1.25 / (1 + math.exp(-2 * x - math.log(0.25))) - 0.25, abs=1e-5)
    y = method.vectors.fill_unknown(as_seen.scores, batch.z)
    assert (y[batch.z == 1] == 1).all()
    assert (y[batch.z == -1] == -0.25).all()
    assert torch.equal(y[batch.z == 0], as_seen.scores[batch.z == 0])


@pytest.mark.parametrize("known_through_graph", [True, False])
@pytest.mark.parametrize("tanh", [True, False])
def test_smoothness_by_loops(known_through_graph: bool, tanh: bool) -> None:
    method = made(known_through_graph=known_through_graph, tanh=tanh)
    own = some(method)
    support, c, c_f = method.similar(own, own)
    assert (support >= 0).sum(dim=1).max() >= 2
    edges = zip(method.vectors.graph.sources.tolist(), method.vectors.graph.weights.tolist(), strict=True)
    weights = {(s, label): w for label, both in enumerate(edges) for s, w in zip(*both, strict=True)}
    y = method.vectors.fill_unknown(own.scores, own.z)
    through = y if known_through_graph else own.scores
    label_error = feature_error = 0.0
    for i in range(8):
        neighbors = [
            (j, a.item(), b.item()) for j, a, b in zip(support[i].tolist(), c[i], c_f[i], strict=True) if j >= 0
        ]
        assert i not in [j for j, _, _ in neighbors]
        if not neighbors:
            continue
        for label in range(LABELS):
            heard = 0.0
            for j, weight, _ in neighbors:
                atom = sum(weights.get((s, label), 0.0) * through[j, s].item() for s in range(LABELS))
                atom = y[j, label].item() if own.z[j, label] and not known_through_graph else atom
                heard += weight * atom
            label_error += (y[i, label].item() - (math.tanh(heard) if tanh else heard)) ** 2
        rebuilt = sum(weight * own.features[j] for j, _, weight in neighbors)
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
    own = seen(absolute, batch)[1]
    smooth = absolute._smoothness(own, own)
    logs = absolute.update(batch, clock)
    assert logs["loss"] - logs["known"] == pytest.approx((smooth[0] + 0.5 * smooth[1]).item(), rel=1e-4)


@pytest.mark.parametrize("scaled", [False, True])
def test_measured_scales_count_in_the_search_where_asked(scaled: bool) -> None:
    pool = make_pool()
    method = made(pool, warmup=0.0, scaled_search=scaled, lambda_f=0.25).eval()
    bare = {"lambda_y": 1.0, "lambda_f": 0.25}
    assert torch.equal(*searched(method, **bare))  # nothing is measured yet
    method.scale.copy_(torch.tensor([3.0, 0.001]))  # as if it were: features hardly count
    with_scales = {"lambda_y": 3.0, "lambda_f": 0.25 * 0.001}
    assert torch.equal(*searched(method, **with_scales)) is scaled
    assert torch.equal(*searched(method, **bare)) is not scaled


def searched(method: Imcl, **lambdas: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Who is similar to whom as the method has it, and with these lambdas."""
    own = some(method, ITEMS)
    filled, heard = method.vectors.fill_unknown(own.scores, own.z), method.vectors.through_graph(own.scores, own.z)
    views = (own.features, filled, own.features, heard)
    found = joint_nonnegative_omp(*views, k=5, exclude=torch.arange(ITEMS), **lambdas)
    return method.similar(own, own)[0], found[0]


def test_similar_by_features_is_the_same_whatever_the_network_says() -> None:
    """The fixed similarity of table 4, where features are given; labels are rebuilt with the weights of features."""
    before, after = (made(similar_by=by) for by in ("features", "both"))
    with torch.no_grad():
        own = some(before, ITEMS)
        other = replace(own, scores=-own.scores, z=-own.z)
        support, labels, features = before.similar(own, own)
        assert (support >= 0).sum(dim=1).max() >= 2
        assert torch.equal(labels, features)
        assert all(torch.equal(a, b) for a, b in zip((support, labels), before.similar(other, other)[:2], strict=True))
        assert not torch.equal(after.similar(own, own)[0], after.similar(other, other)[0])


def test_lambdas_matter() -> None:
    plain = trained(lambda_y=0.0, lambda_f=0.0)
    for other in ({"lambda_y": 1.0, "lambda_f": 0.0}, {"lambda_y": 0.0, "lambda_f": 1.0}):
        assert differing(plain.network.state_dict(), trained(**other).network.state_dict()), other


def test_the_graph_learns_unless_told_not_to() -> None:
    pool = make_pool()
    first = made(pool).vectors.graph.weights
    assert not torch.equal(first, trained().vectors.graph.weights)
    assert torch.equal(first, trained(learn_graph=False).vectors.graph.weights)
    assert trained(graph="identity").vectors.graph.sources.shape == (LABELS, 1)


def test_an_item_without_neighbours_has_no_smoothness_loss() -> None:
    method = made()
    one = some(method, 1)
    assert method._smoothness(one, one).tolist() == [0.0, 0.0]


def test_the_bank() -> None:
    pool = make_pool()
    method = trained(candidates="bank", bank=12, refresh=2)
    bank = method.bank.candidates()
    assert len(set(bank.index.tolist())) == 12
    assert torch.equal(bank.z, pool.take(bank.index).z)
    support, *_ = method.similar(some(method, ITEMS), bank)
    for i, row in enumerate(support.tolist()):
        assert i not in [bank.index[j].item() for j in row if j >= 0]
    whole = trained(candidates="bank")
    assert whole.bank.index.tolist() == list(range(ITEMS))
    clock = Clock(0, epochs=4, steps=pool.steps, epoch=3)
    whole.begin_epoch(pool, clock)
    torch.testing.assert_close(whole.bank.features, whole.network.features(x_of(pool.items)))


def test_presets_run() -> None:
    scores = {name: prediction.predict(trained(**settings), as_items(features())) for name, settings in PRESETS.items()}
    for own in scores.values():
        assert own.shape == (ITEMS, LABELS)
        assert np.isfinite(own).all()
        assert (own.std(axis=0) > 0).all()
    assert not np.array_equal(scores["paper"], scores["code"])


def test_items_of_a_class_are_preferred(tmp_path: Path) -> None:
    classes = np.arange(ITEMS) % 3
    path = tmp_path / "side.csv"
    path.write_text("item,class\n" + "".join(f"{i},bird {c}\n" for i, c in enumerate(classes)), encoding="utf-8")
    agree = {}
    for weight in (0.0, 100.0):
        method = made(side=str(path), side_weight=weight)
        own = some(method, ITEMS)
        first = method.similar(own, own)[0][:, 0].numpy()
        agree[weight] = (classes[first[first >= 0]] == classes[first >= 0]).mean()
    assert agree[100.0] == 1.0 > agree[0.0]


@pytest.mark.parametrize("settings", [{}, {"known_through_graph": False}, {"candidates": "bank"}])
def test_an_explanation_adds_up(settings: dict[str, object]) -> None:
    pool = make_pool()
    method = trained(**settings).eval()
    with eval_mode(method), torch.no_grad():
        whole = some(method, ITEMS)
        support, c, _ = method.similar(whole, whole)
        atoms = method.vectors.through_graph(whole.scores, whole.z)
    for item, label in ((0, 0), (7, 3), (21, 4)):
        told = method.explain(item, label, pool)
        estimate = sum(w.item() * atoms[j, label].item() for j, w in zip(support[item], c[item], strict=True) if j >= 0)
        assert told.estimate == pytest.approx(estimate, abs=1e-5)
        assert sum(told.neighbors().values()) == pytest.approx(told.estimate, abs=1e-5)
        assert sum(told.edges().values()) == pytest.approx(told.estimate, abs=1e-5)
        assert set(told.neighbors()) == {j for j in support[item].tolist() if j >= 0}
        sizes = [abs(path.contribution) for path in told.evidence]
        assert sizes == sorted(sizes, reverse=True)
        assert told.probability == pytest.approx(torch.sigmoid(method(x_of(pool.items)))[item, label].item(), abs=1e-4)
        for path in told.evidence:
            z = observed()[path.neighbor, path.label]
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
    with pytest.raises(DataError, match=r"An item of shape \[2\]; this model is for items of shape \[6\]"):
        method.explain(x[:2], 1, make_pool())


def test_the_last_item_is_not_asked_for_as_the_first_from_the_end() -> None:
    """It would be one of its own neighbours."""
    method = trained()
    assert ITEMS - 1 not in method.explain(ITEMS - 1, 0, make_pool()).neighbors()
    for item in (-1, ITEMS):
        with pytest.raises(SettingError, match=f"item = {item}"):
            method.explain(item, 0, make_pool())


def test_what_the_network_is_sure_of_has_a_probability() -> None:
    method = trained(no_value=0.3)
    with torch.no_grad():
        method.network.head.weight.mul_(0)
        method.network.head.bias.copy_(torch.tensor([40.0, -40.0, 20.0, 12.0, 9.0]))
    told = [method.explain(0, label, make_pool()).probability for label in range(LABELS)]
    assert told == pytest.approx([1 / (1 + math.exp(-x)) for x in (40, -40, 20, 12, 9)])


def test_classes_belong_to_the_items_of_the_pool(tmp_path: Path) -> None:
    """An explanation seeks among other items than those of training: their classes are found by id."""
    classes = {f"train {i}": i % 2 for i in range(ITEMS)} | {f"new {i}": i % 3 for i in range(2 * ITEMS)}
    path = tmp_path / "side.csv"
    path.write_text("item,class\n" + "".join(f"{i},{c}\n" for i, c in classes.items()), encoding="utf-8")
    train, new = (
        Labels.from_ternary(observed(n), ids=[i for i in classes if i.startswith(word)])
        for word, n in (("train", ITEMS), ("new", 2 * ITEMS))
    )
    method = made(Pool(as_items(features()), train), side=str(path), side_weight=100.0, k=1)
    for item in (0, 4, 2 * ITEMS - 1):
        near = method.explain(item, 0, Pool(as_items(features(2 * ITEMS)), new)).neighbors()
        assert near
        assert {n % 3 for n in near} == {item % 3}


def test_files_are_refused_before_the_run_begins(tmp_path: Path) -> None:
    path = tmp_path / "graph.csv"
    path.write_text("label,related\n0,seven\n", encoding="utf-8")
    labels = Labels.from_ternary(observed())
    for name, words in (("graph", "'seven' is not among the 5 names"), ("side", "must be item and class")):
        with pytest.raises(PartlyError, match=words):
            build_method(
                make_config("imcl", "linear", settings={name: str(path)}), as_items(features()), labels.shape[1], labels
            )


def test_a_start_keeps_the_graph_that_it_has_learned() -> None:
    items, labels = as_items(features()), Labels.from_ternary(observed())
    recipe = make_config("imcl", "linear", epochs=2, lr=0.1, settings={"warmup": 0.0})
    first = fit_config(recipe, items, labels).method.weights()
    again = fit_config(replace(recipe, epochs=1, settings={"warmup": 1.0}), items, labels, start=first).method
    assert torch.equal(again.weights()["method.vectors.graph.weights"], first["method.vectors.graph.weights"])


@pytest.mark.parametrize("optimizer", ["adamw", "sgd"])
def test_the_optimizer_of_the_graph_is_there_from_the_start_and_has_not_begun(optimizer: str) -> None:
    pool = make_pool()
    ready, late = (Imcl(make_task(pool, optimizer=optimizer), warmup=0.0).eval() for _ in range(2))
    clock = make_clock(pool)
    ready.begin_epoch(pool, clock)
    assert ready.graph_optimizer.state
    assert torch.equal(ready.vectors.graph.weights, made(pool).vectors.graph.weights)
    late.begin_epoch(pool, clock)
    late.graph_optimizer.state.clear()
    for method in (ready, late):
        method.update(next(pool.batches(clock)), clock)
    assert not differing(ready.state(), late.state())


def test_memory_of_the_bank_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = make_pool()
    defaults = methods.find("imcl").complete({})
    assert Imcl.memory(make_task(pool), defaults) == (0, 0)
    for room in (10, ITEMS, 10**9):
        settings = {"candidates": "bank", "bank": room}
        bank = made(pool, **settings).bank
        assert Imcl.memory(make_task(pool), defaults | settings) == (bank.scores.nbytes + bank.z.nbytes, 0)
    monkeypatch.setattr("os.sysconf", {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1}.__getitem__)
    labels = Labels.from_ternary(np.zeros((100, 100), np.int8))
    items = as_items(np.zeros((100, 2)))
    engine.check_memory(plan_of(make_config("imcl", settings={"candidates": "bank", "bank": 4}), items, labels))
    with pytest.raises(PartlyError, match=r"imcl keeps .* for 100 x 100 entries"):
        engine.check_memory(plan_of(make_config("imcl", settings={"candidates": "bank", "bank": 6}), items, labels))


def test_an_exact_fit_says_nothing_of_the_scale() -> None:
    """One label is rebuilt exactly from any item on the same side: what is left is rounding."""
    pool = make_pool(observed(labels=1))
    method = made(pool, warmup=0.0)
    training.train(method, pool, make_clock(pool))
    assert method.scale[0] < 1e4
    assert method.scale[1] > 0
