"""The portfolio: what it tells of itself, what it is worth, and what happens when parts fail, cost too much, or it is
killed between them."""

# Long because each part of a portfolio can be there, fail, be too dear or be cut off, in each kind of what is known.

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import partly
from partly import Classifier, Labels, engine, metrics
from partly.errors import SettingError, Stopped
from partly.items import as_items
from partly.methods import auto
from partly.methods.auto import Auto, parse_budget
from partly.pool import Pool
from partly.solvers import folds
from partly.solvers.forest import Forest, log_odds
from plans import fit_config, task_of

KINDS = ["linear", "linear_raw", "gaussian", "gaussian_raw", "laplace"]
STEPS = [*KINDS, "kernels", *(f"forest without fold {k}" for k in range(1, 6)), "forest", "together"]


@pytest.fixture(autouse=True)
def _small_forests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "TREES", ((float("inf"), 15, 8),))


def toy(items: int = 300, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """What no line can tell: inside or outside of a ring, the sign of a product; and one label that a line can."""
    x = np.random.default_rng(seed).normal(size=(items, 4)).astype(np.float32)
    y = np.stack([x[:, 0] ** 2 + x[:, 1] ** 2 > 1.5, x[:, 2] * x[:, 3] > 0, x[:, 0] + x[:, 3] > 0.3], axis=1)
    return x, y


def known(y: np.ndarray, kind: str = "some no", share: float = 0.7) -> Labels:
    seen = np.random.default_rng(1).random(y.shape) < share
    return Labels.from_positives(y & seen) if kind == "only yes" else Labels.from_nan(np.where(seen, y, np.nan))


def model(**more: Any) -> Classifier:
    return Classifier(progress=False, **more)


def few() -> tuple[np.ndarray, Labels]:
    x, y = toy(60)
    return x, known(y)


def m_ap(fitted: Classifier, x: np.ndarray, y: np.ndarray) -> float:
    return metrics.evaluate(fitted.predict_proba(x), y.astype(float))["mAP"]


# -------------------------------------------------------------------- what it is worth, and what it tells


@pytest.mark.parametrize("kind", ["some no", "only yes"])
def test_it_beats_plain_logistic_regression_where_lines_cannot_tell(kind: str) -> None:
    x, y = toy()
    labels = known(y, kind)
    plain = model(method="bce" if kind == "some no" else "assume-negative", head="linear").fit(x, labels)
    fitted = model().fit(x, labels)
    assert fitted.method_ == "auto"
    new, truth = toy(seed=5)
    assert m_ap(fitted, new, truth) > m_ap(plain, new, truth) + 0.15
    assert ("unknown entries count as negatives" in fitted.reason_) == (kind == "only yes")
    assert m_ap(fitted, new, truth) > 0.85


def test_it_is_not_much_worse_where_a_line_is_all_there_is() -> None:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 4)).astype(np.float32)
    y = x @ rng.normal(size=(4, 3)) + rng.normal(size=(400, 3)) > 0
    labels = known(y[:150])
    plain, fitted = (model(**how).fit(x[:150], labels) for how in ({"method": "bce", "head": "linear"}, {}))
    assert m_ap(fitted, x[150:], y[150:]) > m_ap(plain, x[150:], y[150:]) - 0.02


def test_what_was_tried_is_told() -> None:
    fitted = model().fit(*few())
    parts = fitted.portfolio_
    assert [part["name"] for part in parts] == [*KINDS, "forest"]
    assert all(set(part) == {"name", "score", "weight", "seconds"} for part in parts)
    assert sum(part["weight"] for part in parts) == pytest.approx(1)
    assert all(part["weight"] >= 0 and np.isfinite(part["score"]) and part["seconds"] > 0 for part in parts)
    assert fitted.criterion_ in partly.criteria()
    best = max(parts, key=lambda part: part["score"])
    for words in ("6 models", f"({best['name'].replace('_', ' ')}) {best['score']:.1%}", "logistic regression"):
        assert words in fitted.reason_
    assert "left out" not in fitted.reason_


def test_a_score_is_the_part_of_the_priors_loss_that_is_taken_away() -> None:
    """By `partly.criteria`, on what is held out."""
    x, y = toy(120)
    labels = known(y)
    config, _ = engine.resolve_config(engine.TrainConfig(method="auto", head="auto"), as_items(x), labels)
    method = engine.build_method(config, as_items(x), 3, labels)
    _train(method, x, labels)
    criterion = partly.model_choice.criteria.log_loss
    for part in method.notes["portfolio"][:-1]:
        expected = criterion(method.read_held_out(part["name"]).T, labels)
        assert part["score"] == pytest.approx(expected, abs=5e-3)
    assert method.notes["score"] == pytest.approx(criterion(method.out_of_fold().numpy(), labels), abs=5e-3)


def _train(method: Auto, x: np.ndarray, labels: Labels, steps: int | None = None) -> None:
    """Its parts, one after the other."""
    pool = Pool(as_items(x), labels, 64)
    for step in STEPS[:steps]:
        method._try_step(pool, [step])


def test_the_steps_are_the_parts() -> None:
    x, labels = few()
    method = Auto(task_of(as_items(x), 3, observed=labels))
    pool = Pool(as_items(x), labels, 64)
    assert method._steps(pool) == STEPS
    assert method.steps(pool) == len(STEPS) == 13
    one = Pool(as_items(x[:1]), labels[:1], 64)  # nothing to learn a fold from: no forest
    assert Auto(task_of(as_items(x[:1]), 3, observed=labels[:1])).steps(one) == 7


# -------------------------------------------------------------------- what it believes, and of whom it has learned


@pytest.mark.parametrize("kind", ["some no", "only yes"])
def test_beliefs_never_contradict_what_is_known(kind: str) -> None:
    x, y = toy(80)
    labels = known(y, kind)
    fitted = model().fit(x, labels)
    z = labels.rows(slice(None))
    beliefs = fitted.beliefs_
    assert beliefs is not None
    assert (beliefs[z == 1] == 1).all()
    assert (beliefs[z == -1] == 0).all()
    unknown = 1 / (1 + np.exp(-np.asarray(fitted.out_of_fold_, float)))
    np.testing.assert_allclose(beliefs[z == 0], unknown[z == 0], atol=1e-5)
    assert ((beliefs > 0) & (beliefs < 1))[z == 0].all()


@pytest.mark.parametrize("name", KINDS)
def test_scores_of_an_item_do_not_come_from_its_own_labels(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernel machines, at a given strength: other labels of a whole fold change nothing there."""
    monkeypatch.setattr(folds, "GRID", (1.0,))
    monkeypatch.setattr("partly.solvers.logistic.TOLERANCE", 1e-9)
    x, y = toy(60)
    labels, held_out = known(y), []
    z = labels.rows(slice(None))
    method = Auto(task_of(as_items(x), 3, observed=labels))
    own = method.fold(Pool(as_items(x), labels)) == 3
    for part in (z, np.where(own[:, None], -z, z)):
        pool = Pool(as_items(x), Labels.from_ternary(part.astype(np.int8)), 64)
        method.solve(pool, name)
        held_out.append(method.read_held_out(name).copy())
    scale = np.abs(held_out[0]).max()
    np.testing.assert_allclose(held_out[1][:, own], held_out[0][:, own], atol=0.005 * scale)
    assert np.abs(held_out[1] - held_out[0])[:, ~own].max() > 0.1 * scale


def test_a_forest_without_a_fold_has_seen_nothing_of_it() -> None:
    """Nor has what made its targets: other labels of the fold change no bit of what the forest says of it."""
    x, y = toy(60)
    labels, found = known(y), []
    z = labels.rows(slice(None))
    method = Auto(task_of(as_items(x), 3, observed=labels))
    _train(method, x, labels, steps=6)
    own = method.fold(Pool(as_items(x), labels)) == 2
    for part in (z, np.where(own[:, None], -z, z), np.where(own[:, None], 0, z)):
        pool = Pool(as_items(x), Labels.from_ternary(part.astype(np.int8)), 64)
        out, scores = method.compute(pool, "forest without fold 3")
        assert out.tolist() == np.flatnonzero(own).tolist()
        found.append(scores)
    assert found[0].any()
    assert all(torch.equal(found[0], other) for other in found[1:])


def test_the_model_is_the_sum_that_was_weighed() -> None:
    """forward, piece by piece from what the parts say."""
    x, labels = few()
    method = Auto(task_of(as_items(x), 3, observed=labels))
    _train(method, x, labels)
    method.eval()
    rng = np.random.default_rng(0)
    for name in ("relation", "relation_mean", "last"):  # here they would be nearly nothing
        buffer = method.get_buffer(name)
        buffer.copy_(torch.from_numpy(rng.uniform(0.2, 0.9, tuple(buffer.shape))))
    method.competition.fill_(0.75)
    items = torch.from_numpy(toy(20, seed=7)[0])
    standardized_x = method.network.features[0](items)
    forest = log_odds(method.forest(standardized_x)) - method.forest_mean
    logits = method.lines[0] * method.network(items) + method.lines[1] * forest + method.shift
    related = logits.clone()
    for i in range(20):
        for j in range(3):
            gained = sum((logits[i, k] - method.relation_mean[k]) * method.relation[k, j] for k in range(3))
            related[i, j] += gained
    crowd = torch.log(torch.sigmoid(related).sum(dim=1, keepdim=True) + 1e-3)
    expected = method.last[0] * (related - method.competition * crowd) + method.last[1]
    torch.testing.assert_close(method(items), expected, rtol=1e-4, atol=1e-4)


def test_thresholds_are_used_to_predict_and_f1_is_better_for_it() -> None:
    x, y = toy()
    rare = y & (np.random.default_rng(2).random(y.shape) < 0.3)
    fitted = model().fit(x, known(rare))
    assert fitted.thresholds_.shape == (3,)
    assert (fitted.thresholds_ < 0.5).all()
    p = fitted.predict_proba(x)
    assert (fitted.predict(x) == (p >= fitted.thresholds_)).mean() > 0.999  # rounding, at most
    new, truth = toy(seed=6)
    truth = truth & (np.random.default_rng(4).random(truth.shape) < 0.3)

    def f1(called: np.ndarray) -> float:
        return float(2 * (called & truth).sum() / (called.sum() + truth.sum()))

    assert f1(fitted.predict(new) == 1) > f1(fitted.predict_proba(new) >= 0.5) + 0.05


# -------------------------------------------------------------------- budgets


def test_a_budget_of_one_fit_leaves_the_other_parts_out_and_says_so() -> None:
    fitted = model(budget="1x").fit(*few())
    assert [part["name"] for part in fitted.portfolio_] == ["linear"]
    assert fitted.portfolio_[0]["weight"] == pytest.approx(1)
    for part in (*KINDS[1:], "forest"):
        assert f"{part} (the budget was spent)" in fitted.reason_
    assert np.isfinite(fitted.predict_proba(few()[0])).all()
    assert fitted.fitted_.config.settings == {"budget": "1x"}


def test_a_budget_that_is_large_enough_changes_nothing() -> None:
    x, labels = few()
    assert (model(budget=100.0).fit(x, labels).predict_proba(x) == model().fit(x, labels).predict_proba(x)).all()


def test_what_is_begun_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time is up after the third part: the fourth is not begun."""
    now = iter(range(0, 10**6, 10))
    monkeypatch.setattr(auto.time, "monotonic", lambda: float(next(now)))
    x, labels = few()
    method = Auto(task_of(as_items(x), 3, observed=labels), budget=0.5)  # 30 seconds; each part takes 10
    _train(method, x, labels)
    assert [part["name"] for part in method.notes["portfolio"]] == KINDS[:3]
    assert list(method.notes["left_out"]) == [*KINDS[3:], "forest"]


@pytest.mark.parametrize(
    ("budget", "read"),
    [
        (None, (300.0, False)),
        ("inf", (np.inf, False)),
        (2, (120.0, False)),
        (0.5, (30.0, False)),
        ("3", (180.0, False)),
        ("20x", (20.0, True)),
    ],
)
def test_budgets_are_minutes_or_fits(budget: Any, read: tuple[float, bool]) -> None:
    assert parse_budget(budget) == read


@pytest.mark.parametrize("budget", [0, -1, "0x", "-3x", "x", "", "fast", "20 x 3", float("nan"), "nanx", True])
def test_budgets_that_cannot_be_are_refused(budget: Any) -> None:
    with pytest.raises(SettingError, match=r"budget = .* should be"):
        model(budget=budget).fit(*few())


@pytest.mark.parametrize("how", [{"method": "bce"}, {"head": "linear"}, {"method": "role"}])
def test_only_the_portfolio_has_a_budget(how: dict[str, str]) -> None:
    with pytest.raises(SettingError, match=r"budget = '5x': only the portfolio .* has one, and this is"):
        model(budget="5x", **how).fit(*few())


# -------------------------------------------------------------------- parts that fail


@pytest.mark.parametrize("name", ["gaussian", "forest"])
@pytest.mark.parametrize("error", [ValueError, MemoryError, np.linalg.LinAlgError, FloatingPointError])
def test_a_part_that_fails_is_left_out_and_named(
    name: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    _break(monkeypatch, name, error("planted"))
    fitted = model().fit(*few())
    names = [part["name"] for part in fitted.portfolio_]
    assert names == [part for part in (*KINDS, "forest") if part != name]
    assert f"left out: {name} ({error.__name__}: planted)" in fitted.reason_
    assert sum(part["weight"] for part in fitted.portfolio_) == pytest.approx(1)
    assert np.isfinite(fitted.predict_proba(few()[0])).all()


def _break(monkeypatch: pytest.MonkeyPatch, name: str, error: Exception) -> None:
    if name == "forest":

        def grow(*_: Any) -> None:
            raise error

        monkeypatch.setattr(Forest, "grow", grow)
        return
    solve = Auto.compute_fit

    def broken(self: Auto, pool: Pool, kind: str) -> Any:
        if kind == name:
            raise error
        return solve(self, pool, kind)

    monkeypatch.setattr(Auto, "compute_fit", broken)


def test_what_is_left_out_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a forest, the logits are those of the kernel machines."""
    _break(monkeypatch, "forest", ValueError("planted"))
    x, labels = few()
    fitted = model().fit(x, labels)
    assert not len(fitted.fitted_.method.forest.roots)
    assert not fitted.fitted_.method.lines[1].any()


@pytest.mark.parametrize("error", [ValueError, KeyError])
def test_without_plain_logistic_regression_there_is_nothing(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    _break(monkeypatch, "linear", error("planted"))
    with pytest.raises(error, match="planted"):
        model().fit(*few())


def test_a_fault_of_ours_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    _break(monkeypatch, "gaussian", TypeError("planted"))
    with pytest.raises(TypeError, match="planted"):
        model().fit(*few())


# -------------------------------------------------------------------- saved, killed, loaded


def test_what_is_loaded_is_the_same_and_tells_the_same(tmp_path: Path) -> None:
    x, labels = few()
    fitted = model(run_dir=tmp_path / "run").fit(x, labels)
    fitted.save(tmp_path / "saved")
    for folder in ("run", "saved"):
        loaded = Classifier.load(tmp_path / folder)
        assert (loaded.decision_function(x) == fitted.decision_function(x)).all()
        assert (loaded.predict(x) == fitted.predict(x)).all()
        for told in ("portfolio_", "criterion_", "reason_", "method_"):
            assert getattr(loaded, told) == getattr(fitted, told)
        assert (loaded.thresholds_ == fitted.thresholds_).all()
    assert (Classifier.load(tmp_path / "run").out_of_fold_ == fitted.out_of_fold_).all()
    with pytest.raises(AttributeError, match="out_of_fold_"):
        Classifier.load(tmp_path / "saved").out_of_fold_  # noqa: B018


def test_stopped_after_every_part_it_ends_in_the_same_bits(tmp_path: Path) -> None:
    x, labels = few()
    recipe = engine.resolve_config(engine.TrainConfig(), as_items(x), labels)[0]
    whole = fit_config(recipe, as_items(x), labels)

    def stop(*_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    for _ in STEPS:
        with pytest.raises(Stopped):
            fit_config(recipe, as_items(x), labels, folder=tmp_path, callback=stop)
    again = fit_config(recipe, as_items(x), labels, folder=tmp_path)
    assert (again.logits(as_items(x)) == whole.logits(as_items(x))).all()
    assert (again.out_of_fold == whole.out_of_fold).all()
    assert (again.beliefs == whole.beliefs).all()
    assert (again.thresholds == whole.thresholds).all()

    def told(fitted: engine.FittedModel) -> list[dict[str, Any]]:
        parts = fitted.method.notes["portfolio"]
        return [{name: value for name, value in part.items() if name != "seconds"} for part in parts]

    assert told(again) == told(whole)
    assert again.method.notes["reason"] == whole.method.notes["reason"]


def test_a_budget_counts_what_was_spent_before_a_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x, labels = few()
    recipe = engine.resolve_config(engine.TrainConfig(settings={"budget": 0.5}), as_items(x), labels)[0]
    now = iter(range(0, 10**6, 10))
    monkeypatch.setattr(auto, "time", _Time(now))

    def stop(*_: object) -> None:
        signal.raise_signal(signal.SIGTERM)

    for _ in range(2):
        with pytest.raises(Stopped):
            fit_config(recipe, as_items(x), labels, folder=tmp_path, callback=stop)
    fitted = fit_config(recipe, as_items(x), labels, folder=tmp_path)
    assert [part["name"] for part in fitted.method.notes["portfolio"]] == KINDS[:3]


class _Time:
    """Ten seconds between two looks at the clock."""

    def __init__(self, now: Any) -> None:
        self.now = now

    def monotonic(self) -> float:
        return float(next(self.now))


# -------------------------------------------------------------------- other data


def test_sparse_features() -> None:
    x, y = toy()
    x[np.abs(x) < 0.3] = 0
    fitted = model().fit(sp.csr_array(x), known(y))
    assert fitted.method_ == "auto"
    assert [part["name"] for part in fitted.portfolio_] == [*KINDS, "forest"]
    new, truth = toy(seed=5)
    new[np.abs(new) < 0.3] = 0
    assert m_ap(fitted, sp.csr_array(new), truth) > 0.8
    np.testing.assert_allclose(fitted.predict_proba(new), fitted.predict_proba(sp.csr_array(new)), atol=1e-5)


def test_too_many_features_for_a_forest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "DENSE", 100)
    fitted = model().fit(*few())
    assert "left out: forest (MemoryError: a forest needs 60 x 4 features at once)" in fitted.reason_


def test_too_many_labels_to_be_related(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auto, "MAX_RELATED_LABELS", 2)
    x, labels = few()
    fitted = model().fit(x, labels)
    assert fitted.fitted_.method.relation.numel() == 0
    assert np.isfinite(fitted.predict_proba(x)).all()


def test_pictures_and_a_given_head_are_for_the_plain_method() -> None:
    x, labels = few()
    pictures = np.random.default_rng(0).integers(0, 256, (60, 16, 16, 3), dtype=np.uint8)
    for items, how in ((pictures, {"epochs": 1}), (x, {"head": "linear"})):
        fitted = model(**how).fit(items, labels)
        assert fitted.method_ == "partial-bce"
        assert fitted.reason_ == partly.defaults.plain(labels)[1]
        with pytest.raises(AttributeError, match="portfolio_: only a portfolio"):
            fitted.portfolio_  # noqa: B018
    with pytest.raises(SettingError, match="Auto learns from features, not from pictures"):
        Auto(task_of(as_items(pictures), 3, observed=labels))


def test_one_item_and_one_label() -> None:
    x, y = toy(40)
    for rows, columns in ((1, 3), (2, 3), (40, 1)):
        labels = Labels.from_full(y[:rows, :columns].astype(float))
        fitted = model().fit(x[:rows], labels)
        assert fitted.method_ == "auto"
        assert np.isfinite(fitted.predict_proba(x)).all()
        assert np.isfinite(fitted.out_of_fold_).all()
        assert fitted.predict(x).shape == (40, columns)


def test_a_label_nobody_spoke_of_is_called_by_the_share_of_all() -> None:
    """Nothing is known of the first label, and only no of the second: scores and beliefs of them say nothing."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 6)).astype(np.float32)
    y = np.where(rng.random((200, 4)) < 0.5, (x[:, :4] + rng.normal(size=(200, 4)) > 0.8).astype(float), np.nan)
    y[:, 0] = np.nan
    y[:, 1] = np.where(rng.random(200) < 0.5, 0, np.nan)
    model = partly.Classifier(progress=False).fit(x, y)
    p = model.predict_proba(x)
    share = np.nanmean(y)
    assert np.ptp(p[:, :2], axis=0) == pytest.approx([0, 0], abs=1e-5)
    assert p[0, 0] == pytest.approx(share, abs=0.03)
    assert p[0, 1] < 0.02
    assert np.ptp(np.asarray(model.beliefs_)[:, 0]) == pytest.approx(0, abs=1e-5)
    assert not model.predict(x)[:, :2].any()
    assert np.ptp(p[:, 2:], axis=0).min() > 0.3
