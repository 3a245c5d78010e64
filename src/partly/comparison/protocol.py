"""Protocol of a cell, the same for every method.

The mask is a function of (truth, scenario, seed). A validation set is split off the training set, and alone chooses the
epoch and tuned settings. The test set is read once, at the end, by the models of the best and of the last epoch.
"""

from __future__ import annotations

import gc
import os
import platform
import resource
import time
import weakref
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import partly
from partly import calibration, data, engine, methods, metrics, scenarios
from partly.active import Loop, simulation
from partly.clock import seed_for
from partly.comparison import hidden_entries
from partly.comparison.plan import AUTO, FULL, Cell, cut_of, plan_of
from partly.data import Dataset, LabelSemantics, split_holdout
from partly.data.dataset import append_unlabelled
from partly.engine import FittedModel, Plan, PreparedData, ResolvedConfig, TrainConfig, Validation
from partly.errors import DataError, Diverged, PartlyError
from partly.estimators.classifier import Classifier
from partly.items import Arrays
from partly.labels import Labels

PROTOCOL = 4  # raised whenever the same cell would give other numbers
HOLD_OUT = 0.2  # share of the training set for validation
TEST_SHARE = 0.25  # of data without a test set
AT_CHOSEN = "_at_chosen_thresholds"  # after the name of a score; without it, the threshold is 0.5
GROUPS = 5  # of labels, from the fewest known yes in training to the most, each with its own mAP
LR_FACTOR = (1 / 3, 3.0)  # every method may tune its learning rate in this range


class ProtocolError(PartlyError):
    """Raised when a comparison would not be fair."""


def open_data(
    name: str,
    labels: str | None = None,
    skip_bad: bool = False,
    size: int | None = None,
    meaning: LabelSemantics = LabelSemantics(),  # noqa: B008 (it is frozen)
) -> Dataset:
    """Open data with a test set: its own, or a share of the items.

    'coco.npz:3000' has 3000 of the training items, and all of the test set.
    """
    name, count = cut_of(name)
    if count is not None:
        return _cut(open_data(name, labels, skip_bad, size, meaning), count, name)
    has_labels = data.is_whole(name, meaning.label_columns if labels is None else ())
    if labels is None and not has_labels:
        raise DataError(f"{name}: items without labels need a label file (--labels).")
    whole = data.read(name, None if has_labels else labels, skip_bad=skip_bad, size=size, **vars(meaning))
    if whole.test is not None:
        return whole
    train, test = split_holdout(len(whole.labels), TEST_SHARE, 0, "test")
    every = whole.with_unlabelled
    with_unlabelled = None if every is None else every[np.append(train, whole.unlabelled_rows)]
    return replace(whole[train], test=whole[test], with_unlabelled=with_unlabelled)


def _cut(whole: Dataset, items: int, name: str) -> Dataset:
    """Return some of the training items, always the same; smaller cuts are subsets of larger ones."""
    if items > len(whole.labels):
        raise DataError(f"{name}: cannot be cut to {items} training items, it has {len(whole.labels)}.")
    order = np.random.default_rng(seed_for("cut")).permutation(len(whole.labels))
    return whole[np.sort(order[:items])]


class TestSet:
    """A test set that can be read once, and only by a model whose epoch has been chosen."""

    __test__ = False  # not a test class

    def __init__(self, data: Dataset, counts: npt.NDArray[Any]) -> None:
        assert data.test is not None  # ensured by `open_data`
        self._test, self._counts = data.test, counts
        self.predictions_sha256: str | None = None  # of the predictions

    def scores(
        self, fitted: FittedModel, validation: Validation | None = None
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Score the model of the best and of the last epoch.

        With a validation set, also compute F1 at thresholds that maximize F1 on it.
        """
        if not fitted.progress.finished:
            raise ProtocolError("The test set was read before the epoch was chosen.")
        if self.predictions_sha256 is not None:
            raise ProtocolError("One cell read the test set twice.")
        probabilities = fitted.predict(self._test.items)
        self.predictions_sha256 = Arrays(probabilities).digest()
        best = self._score(probabilities, fitted, validation)
        if fitted.progress.last is None:
            return best, best
        with fitted.last_epoch_weights():
            return best, self._score(fitted.predict(self._test.items), fitted, validation)

    def _score(
        self, probabilities: npt.NDArray[np.float32], fitted: FittedModel, validation: Validation | None
    ) -> dict[str, float]:
        scores, table = metrics.both(probabilities, self._test.labels)
        by_group = metrics.grouped(table["AP"], self._counts, GROUPS)
        scores |= {f"mAP group {number}": float(score) for number, score in enumerate(by_group, 1)}
        if validation is not None:
            logits = fitted.logits(validation.items)
            thresholds = calibration.fit_calibration(logits, validation.labels, goal="f1").thresholds
            chosen = metrics.evaluate(probabilities, self._test.labels, thresholds)
            scores |= {f"{name}{AT_CHOSEN}": chosen[name] for name in ("CF1", "OF1")}
        return scores


def run_cell(cell: Cell, data: Dataset) -> dict[str, Any]:
    """Train, choose an epoch, test once, and return the result record with its full provenance."""
    started = time.perf_counter()
    _reset_peak()
    outcome = (_ask_questions if cell.asks else _train)(cell, precompute_features(cell, data))
    return {
        **cell.key(),
        "data_digest": data.digest,
        **outcome,
        "needs_truth": methods.find(cell.method).kind.needs_truth,
        "partly": partly.__version__,
        "protocol": PROTOCOL,
        "torch": torch.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} thread(s) a cell",
        "seconds": round(time.perf_counter() - started, 3),
        "memory_mb": round(_peak_mb(), 1),
    }


def precompute_features(cell: Cell, data: Dataset) -> Dataset:
    """Return the data with the features that the frozen backbone of a cell computes of them, if it has one."""
    config = config_of(cell)
    assert data.test is not None  # ensured by `open_data`
    items = engine.precompute_features(data.items, config)
    test = replace(data.test, items=engine.precompute_features(data.test.items, config, like=items))
    return replace(data, items=items, test=test)


def record_failure(cell: Cell, data: Dataset, reason: str) -> dict[str, Any]:
    """Return the record of a failed cell."""
    return {
        **cell.key(),
        "data_digest": data.digest,
        "failed": reason,
        "partly": partly.__version__,
        "protocol": PROTOCOL,
    }


def _train(cell: Cell, data: Dataset) -> dict[str, Any]:
    observed = mask(cell, data)
    # With coarse labels the few fully labeled items matter most, so validation takes other items first.
    coarse = scenarios.kind(cell.scenario) == "coarse-only"
    whole = observed.known_per_item() == observed.shape[1] if coarse else None
    fit, hold = split_holdout(len(observed), HOLD_OUT, cell.seed, last=whole)
    validation_labels = data.labels if cell.validation == "complete" else observed
    validation = PreparedData(data.items[hold], validation_labels[hold])
    if cell.known_only:
        fit = fit[observed.known_per_item()[fit] > 0]
    items, labels = data.items[fit], observed[fit]
    truth = data.labels[fit]
    if data.with_unlabelled is not None and methods.find(cell.method).about.learns_from_unknown:
        items = data.with_unlabelled.items[np.append(fit, data.unlabelled_rows)]
        ids = [data.with_unlabelled.labels.id_at(row) for row in data.unlabelled_rows.tolist()]
        labels, truth = (append_unlabelled(part, ids) for part in (labels, truth))
    plan = engine.resolve(config_of(cell), (items, labels), validation)
    models = _fit_all(candidates(cell, plan))
    best = max(models, key=_validation_score)
    hidden = hidden_entries.measure_hidden_labels(best, items, labels, truth)
    test = TestSet(data, labels.counts()[0])  # label groups are by known yes
    seconds = sum(model.progress.seconds for model in models)
    outcome = _test(best, test, best.config, observed, seconds, plan.validation)
    return outcome | ({"beside": _without_nan(hidden)} if hidden else {})


def _fit_all(plans: Iterator[Plan]) -> list[FittedModel]:
    """Return a model of each plan, except those that diverge: they are never chosen."""
    models, errors = [], []
    for plan in plans:
        try:
            models.append(engine.fit(plan, keep_last=True))
        except Diverged as error:
            errors.append(error)
    if not models:
        raise errors[0]
    return models


def _ask_questions(cell: Cell, data: Dataset) -> dict[str, Any]:
    """Run rounds of questions, answered by the truth with simulated errors.

    Nothing is chosen, so nothing is held out; the scores of every round are on the test set.
    """
    observed = mask(cell, data)
    model = Classifier(**vars(config_of(cell)))
    measure = simulation.make_measure(replace(data, labels=observed, truth=data.labels))
    started = time.perf_counter()
    with TemporaryDirectory() as folder:
        loop = Loop(model, data.items, observed, folder, plan_of(cell.asks), hierarchy=data.hierarchy, measure=measure)
        answer = simulation.answers_with_errors(data.labels, cell.asks["errors"], cell.seed)
        rounds = loop.run(answer, cell.asks["rounds"])
        rounds = simulation.add_seconds(rounds, (questions for _, questions, _ in loop.answers()))
    seconds = time.perf_counter() - started  # of all rounds
    areas = {name: simulation.area(rounds, name) for name in simulation.PRECISION_METRICS}
    test = TestSet(data, loop.labels.counts()[0])
    outcome = _test(model.fitted_, test, loop.training.config, observed, seconds)
    return outcome | {"rounds": rounds, "areas": _without_nan(areas)}


def _test(
    fitted: FittedModel,
    test: TestSet,
    config: ResolvedConfig,
    observed: Labels,
    seconds: float,
    validation: Validation | None = None,
) -> dict[str, Any]:
    best, last = test.scores(fitted, validation)
    return {
        "mask_sha256": observed.digest(),
        "ran": config.to_json(),
        "best_epoch": fitted.progress.best_epoch,
        "validation_score": fitted.progress.best_score,
        "start_score": fitted.progress.notes.get("start", {}).get("validation_mAP"),
        "validation_curve": fitted.progress.scores,
        "test": _without_nan(best),
        "last": _without_nan(last),
        "predictions_sha256": test.predictions_sha256,
        "training_seconds": round(seconds, 3),
    }


def _without_nan(scores: dict[str, float]) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in scores.items()}


def mask(cell: Cell, data: Dataset) -> Labels:
    """Return the observed labels, the same for every method, head and setting."""
    if cell.scenario == FULL:
        return data.labels
    return scenarios.parse(cell.scenario)(data.labels, cell.seed, data.hierarchy)


def candidates(cell: Cell, plan: Plan) -> Iterator[Plan]:
    """Yield the plans that a cell tries: its own, then `tune - 1` random ones.

    Random plans have a learning rate around the first one and settings from the ranges that the method declares.
    """
    yield plan
    ranges = methods.find(cell.method).about.search
    for trial in range(1, cell.tune):
        rng = np.random.default_rng(seed_for(cell.seed, cell.method, "tune", trial))
        rate = plan.config.lr * _draw_log_uniform(LR_FACTOR, rng)
        settings = cell.settings | {name: _draw_setting(choice, rng) for name, choice in ranges.items()}
        yield replace(plan, config=engine.spell_out(replace(plan.config, lr=rate, settings=settings)))


def config_of(cell: Cell) -> TrainConfig:
    """Return the configuration of a cell: its axes, and what the experiment fixes for all cells."""
    axes = {name: getattr(cell, name) for name in ("method", "head", "optimizer", "seed", "settings")}
    return TrainConfig.from_params(axes | cell.recipe | {"progress": False, "device": "cpu"})


def check_no_leak(method: str, settings: dict[str, Any] | None = None) -> None:
    """Refuse a method whose predictions depend on hidden labels.

    Two small cells that differ only in unknown entries and test labels must give the same predictions. Methods with
    `needs_truth` are exempt. A leak that only works on other data is not detected. Settings that name files are left
    out, because such files belong to other items.
    """
    if methods.find(method).kind.needs_truth:
        return
    # From nothing: a method that stays at a solved start would show nothing of what it has seen.
    recipe = {"epochs": 2, "batch_size": 16, "start": "random"}
    head = AUTO if method == AUTO else "linear"
    plain = {name: value for name, value in (settings or {}).items() if not Path(str(value)).suffix[1:].isalpha()}
    cell = Cell("blind", "uniform:0.5", method, head, "adamw", 0, plain, recipe, "partial")
    outcomes = []
    for flipped in (False, True):
        dataset = _make_leak_data(cell, flipped)
        record = run_cell(cell, dataset)
        outcomes.append(
            [record[key] for key in ("mask_sha256", "best_epoch", "validation_score", "predictions_sha256")]
        )
        reference = weakref.ref(dataset)
        del dataset
        if reference() is not None:  # only one truth may be in memory, or a method could always find the same one
            gc.collect()
    if outcomes[0] != outcomes[1]:
        raise ProtocolError(
            f"{method} uses the truth: hidden labels change its predictions. "
            "A method may only learn from the batch; an oracle must set needs_truth = True."
        )


def _make_leak_data(cell: Cell, flipped: bool) -> Dataset:
    """Make a small data set; flipped: with the same items and observed entries, and all other labels inverted."""
    rng = np.random.default_rng(seed_for("blind"))
    x = rng.normal(size=(80, 5)).astype(np.float32)
    z = np.where(x[:, :4] + rng.normal(size=(80, 4)) > 0, 1, -1)
    train, test = z[:60], z[60:]
    if flipped:
        observed = mask(cell, Dataset(Arrays(x[:60]), Labels.from_ternary(train)))
        train, test = np.where(observed.known, train, -train), -test
    held = Dataset(Arrays(x[60:]), Labels.from_ternary(test))
    return Dataset(Arrays(x[:60]), Labels.from_ternary(train), test=held)


def _validation_score(fitted: FittedModel) -> float:
    score = fitted.progress.best_score
    return -np.inf if score is None else score


def _draw_setting(choice: tuple[float, float] | list[Any], rng: np.random.Generator) -> Any:
    """Draw from a range (tuple; logarithmic if positive) or a choice (list)."""
    if isinstance(choice, list):
        return choice[int(rng.integers(len(choice)))]
    return _draw_log_uniform(choice, rng) if min(choice) > 0 else float(rng.uniform(*choice))


def _draw_log_uniform(ends: tuple[float, float], rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(*np.log(ends))))


def _reset_peak() -> None:
    """Reset the kernel's peak memory of this process, where it can."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
