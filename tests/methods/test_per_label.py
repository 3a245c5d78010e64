"""per-label: what scikit-learn itself gives label by label, on the entries that count; and all of it is saved."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from conformance.bench import ITEMS, LABELS, logits_of, make_clock, make_pool, make_task, observed, x_of
from partly import Classifier, binary_relevance, engine
from partly.binary_relevance import estimator_store
from partly.clock import seed_for
from partly.engine import training
from partly.errors import CheckpointError, SettingError, Stopped
from partly.items import as_items
from partly.labels import Labels
from partly.methods.per_label import ESTIMATORS, PerLabel
from partly.pool import Pool


def fitted(pool: Pool, **settings: Any) -> PerLabel:
    method = PerLabel(make_task(pool), **settings)
    training.train(method, pool, make_clock(pool, epochs=1))
    return method


def standardized_x(pool: Pool) -> np.ndarray:
    x = x_of(pool.items).double().numpy()
    return (x - x.mean(axis=0)) / x.std(axis=0)


def log_odds(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))


@pytest.mark.parametrize(("unknown", "weight"), [("ignore", 1.0), ("no", 1.0), ("no", 0.2)])
def test_each_label_is_what_scikit_learn_gives(unknown: str, weight: float) -> None:
    pool = make_pool()
    logits = logits_of(fitted(pool, unknown=unknown, weight_unknown=weight, c=0.5), x_of(pool.items))
    x, z = standardized_x(pool), observed()
    for j in range(LABELS):
        rows, targets, weights = [], [], []
        for i in range(ITEMS):
            if z[i, j] or unknown == "no":
                rows.append(i)
                targets.append(int(z[i, j] == 1))
                weights.append(1.0 if z[i, j] else weight)
        by_hand = LogisticRegression(C=0.5, max_iter=1000).fit(x[rows], targets, weights).predict_proba(x)[:, 1]
        np.testing.assert_allclose(logits[:, j], log_odds(by_hand), rtol=1e-3, atol=1e-3)


def test_the_tuned_one_takes_for_each_label_the_strength_that_is_best_in_folds() -> None:
    z = observed()
    z[:, 0] = np.where(z[:, 0] == 0, 0, np.random.default_rng(0).choice([1, -1], len(z)))  # nothing to be learned
    pool = Pool(make_pool().items, Labels.from_ternary(z))
    logits = logits_of(fitted(pool, estimator="tuned-logistic-regression", unknown="ignore"), x_of(pool.items))
    x, chosen = standardized_x(pool), []
    for j in range(LABELS):
        rows = np.flatnonzero(z[:, j])
        yes = z[rows, j] == 1
        folds = list(StratifiedKFold(3).split(x[rows], yes))
        losses = {}
        for c in (1e-4, 1e-3, 1e-2, 0.1, 1.0):
            model = LogisticRegression(C=c, max_iter=1000)
            said = [model.fit(x[rows][a], yes[a]).predict_proba(x[rows][b])[:, 1] for a, b in folds]
            each = [-np.log(np.where(yes[b], p, 1 - p)).mean() for (_, b), p in zip(folds, said, strict=True)]
            losses[c] = np.mean(each)
        chosen.append(min(losses, key=losses.__getitem__))
        by_hand = LogisticRegression(C=chosen[-1], max_iter=1000).fit(x[rows], yes).predict_proba(x)[:, 1]
        np.testing.assert_allclose(logits[:, j], log_odds(by_hand), rtol=2e-2, atol=2e-2)
    assert len(set(chosen)) > 1


def test_the_tuned_one_makes_do_with_a_single_yes() -> None:
    z = observed()
    z[:, 0] = np.minimum(z[:, 0], 0)
    z[0, 0] = 1
    pool = Pool(make_pool().items, Labels.from_ternary(z))
    how = {"unknown": "ignore", "c": 0.5}
    tuned, plain = (
        logits_of(fitted(pool, estimator=name, **how), x_of(pool.items))[:, 0]
        for name in ("tuned-logistic-regression", "logistic-regression")
    )
    assert (tuned == plain).all()


def test_a_label_that_says_only_one_thing_is_a_smoothed_constant() -> None:
    z = observed()
    z[:, 0] = np.minimum(z[:, 0], 0)  # no yes
    z[:, 1] = 0  # nothing
    z[:, 2] = np.maximum(z[:, 2], 0)  # no no
    logits = logits_of(fitted(make_pool(z), unknown="ignore"), torch.randn(4, 6))
    no, yes = (z[:, 0] == -1).sum(), (z[:, 2] == 1).sum()
    expected = np.log([1 / (no + 1), 1.0, yes + 1])
    np.testing.assert_allclose(logits[:, :3], np.tile(expected, (4, 1)), rtol=1e-5)
    assert len(set(logits[:, 3].tolist())) == 4


def test_auto_takes_unknown_for_no_only_where_no_no_is_known() -> None:
    z = observed()
    z[:, 1] = np.maximum(z[:, 1], 0)
    auto, ignore, no = (fitted(make_pool(z), unknown=rule).weights() for rule in ("auto", "ignore", "no"))
    for j in range(LABELS):
        name = f"method.shelf.{j}"
        assert torch.equal(auto[name], (no if j == 1 else ignore)[name])
        assert not torch.equal(auto[name], (ignore if j == 1 else no)[name])


def test_the_loss_is_the_cross_entropy_of_what_counts() -> None:
    pool, seen = make_pool(), []
    method = PerLabel(make_task(pool), unknown="no", weight_unknown=0.3)
    training.train(method, pool, make_clock(pool, epochs=2), callback=lambda clock, logs: seen.append(logs["loss"]))
    p, z = torch.sigmoid(logits_of(method, x_of(pool.items)).double()).numpy(), observed()
    for j in range(LABELS):
        weights = np.where(z[:, j] == 0, 0.3, 1.0)
        by_hand = -np.log(np.where(z[:, j] == 1, p[:, j], 1 - p[:, j])) @ weights / weights.sum()
        assert seen[j] == seen[LABELS + j] == pytest.approx(by_hand, rel=1e-4)  # the second epoch rests


def test_bags_are_drawn_by_the_seed_of_the_label() -> None:
    z = np.maximum(observed(), 0)
    pool = make_pool(z, as_items(x_of(make_pool().items)))
    method = fitted(pool, bags=3, c=1.0)
    x = standardized_x(pool)
    for j in range(LABELS):
        p, seed = np.zeros(ITEMS), seed_for(0, "per-label", j)
        yes, unknown = np.flatnonzero(z[:, j] == 1), np.flatnonzero(z[:, j] == 0)
        for bag in range(3):
            rng = np.random.default_rng(seed_for(seed, "bag", bag))
            drawn = rng.choice(np.searchsorted(np.arange(ITEMS), unknown), min(len(unknown), len(yes)), replace=False)
            rows = np.sort(np.concatenate([yes, drawn]))
            p += LogisticRegression(max_iter=1000).fit(x[rows], z[rows, j] == 1).predict_proba(x)[:, 1] / 3
        np.testing.assert_allclose(logits_of(method, x_of(pool.items))[:, j], log_odds(p), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_estimator_is_saved_without_pickle_and_says_the_same(name: str, tmp_path: Path) -> None:
    x, y = x_of(make_pool().items).numpy(), Labels.from_ternary(observed()[:, :1])  # of 200 trees, one is enough
    model = Classifier("per-label", settings={"estimator": name}, progress=False, run_dir=tmp_path / "run").fit(x, y)
    again = Classifier("per-label", settings={"estimator": name}, progress=False).fit(x, y)
    assert model.fitted_.config.epochs == 1  # nobody asked for more
    assert (model.predict_proba(x) == again.predict_proba(x)).all()
    loaded = Classifier.load(tmp_path / "run")
    assert (loaded.predict_proba(x) == model.predict_proba(x)).all()
    loaded.save(tmp_path / "copy")
    assert (Classifier.load(tmp_path / "copy").predict_proba(x) == model.predict_proba(x)).all()


@pytest.mark.parametrize("label", [1, 3])
def test_a_stopped_run_goes_on_after_the_last_finished_label(
    label: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool, done = make_pool(), []
    whole = fitted(pool)
    fit_label = binary_relevance.fit_label
    monkeypatch.setattr(
        "partly.methods.per_label.fit_label", lambda *given: done.append(given[-1]) or fit_label(*given)
    )

    def stop(clock: Any, _: dict[str, float]) -> None:
        if clock.step == label:
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(Stopped):
        training.train(PerLabel(make_task(pool)), pool, make_clock(pool, epochs=1), folder=tmp_path, callback=stop)
    assert done == [f"label '{j}'" for j in range(label)]
    method = PerLabel(make_task(pool))
    training.train(method, pool, make_clock(pool, epochs=1), folder=tmp_path)
    assert done == [f"label '{j}'" for j in range(LABELS)]  # none twice
    assert all(torch.equal(a, b) for a, b in zip(whole.weights().values(), method.weights().values(), strict=True))


def test_sparse_features_stay_sparse_and_give_the_same_scores() -> None:
    x = x_of(make_pool().items).numpy()
    x[np.abs(x) < 1] = 0
    sparse, dense = (
        Classifier("per-label", settings={"c": 1.0}, progress=False).fit(part, Labels.from_ternary(observed()))
        for part in (sp.csr_array(x), x)
    )
    assert sparse.predict_proba(sp.csr_array(x)).shape == (ITEMS, LABELS)
    assert np.corrcoef(sparse.decision_function(x).ravel(), dense.decision_function(x).ravel())[0, 1] > 0.9


def test_a_model_that_holds_anything_else_is_not_opened(tmp_path: Path) -> None:
    pool = make_pool()
    method = fitted(pool)
    strange = binary_relevance.pack({"constant": None, "estimators": [np.ndarray.dump, Path]})
    tensors = method.weights() | {"method.shelf.2": torch.frombuffer(bytearray(strange), dtype=torch.uint8)}
    with pytest.raises(CheckpointError, match=r"label 2: holds types that are not trusted: .*Path"):
        method.load_state(tensors)
    with pytest.raises(CheckpointError, match="label 2: not an estimator that was saved"):
        method.load_state(tensors | {"method.shelf.2": torch.arange(9, dtype=torch.uint8)})


def test_an_estimator_is_opened_once_and_let_go_with_its_model() -> None:
    before = len(estimator_store._OPEN)
    method = fitted(make_pool())
    loaded = PerLabel(make_task(make_pool()))
    loaded.load_state(method.weights())
    assert loaded.shelf.get(0) is loaded.shelf.get(0)
    assert loaded.shelf.get(0) is not method.shelf.get(0)
    del method, loaded
    assert len(estimator_store._OPEN) == before


def test_settings_that_cannot_be_are_refused() -> None:
    for settings, words in (
        ({"estimator": "svm"}, "estimator = 'svm' should be one of 'logistic-regression'"),
        ({"unknown": "yes"}, "unknown = 'yes' should be one of 'auto', 'ignore', 'no'"),
        ({"c": 0.0}, "c = 0.0: should be 1e-09 or more"),
        ({"bags": -1}, "bags = -1: should be 0 or more"),
    ):
        with pytest.raises(SettingError, match=words):
            engine.build_method(
                engine.make_config("per-label", settings=settings), make_pool().items, LABELS, make_pool().labels
            )
