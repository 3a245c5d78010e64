"""How one cell is run: the one protocol that every method is measured by.

The mask is a function of (truth, scenario, seed). Validation is split off the training part, and it alone chooses the
epoch, and the settings where they are tuned. The test part is read once, at the very end: by the model of the best
epoch, and beside it by that of the last one.
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
HOLD_OUT = 0.2  # of the training part, for validation
TEST_SHARE = 0.25  # of a table that comes without a test part
AT_CHOSEN = "_at_chosen_thresholds"  # after the name of a score; without it, the threshold is 0.5
GROUPS = 5  # of labels, from the fewest known yes in training to the most, each with its own mAP
LR_FACTOR = (1 / 3, 3.0)  # every method may tune its learning rate in this range


class ProtocolError(PartlyError):
    """Something that would make a comparison dishonest."""


def open_data(
    name: str,
    labels: str | None = None,
    skip_bad: bool = False,
    size: int | None = None,
    meaning: LabelSemantics = LabelSemantics(),  # noqa: B008 (it is frozen)
) -> Dataset:
    """A data set that has a test part: one that comes with it, or items with a file of labels, of which those that it
    says, else a share, are set aside. 'coco.npz:3000' has so many of the training items, and all of the test part."""
    name, count = cut_of(name)
    if count is not None:
        return _cut(open_data(name, labels, skip_bad, size, meaning), count, name)
    by_itself = data.is_whole(name, meaning.label_columns if labels is None else ())
    if labels is None and not by_itself:
        raise DataError(f"{name}: items by themselves need a file with their labels (--labels).")
    of = None if by_itself else labels
    whole = data.read(name, of, skip_bad=skip_bad, size=size, **vars(meaning))
    if whole.test is not None:
        return whole
    train, test = split_holdout(len(whole.labels), TEST_SHARE, 0, "test")
    every = whole.with_unlabelled
    with_unlabelled = None if every is None else every[np.append(train, whole.unlabelled_rows)]
    return replace(whole[train], test=whole[test], with_unlabelled=with_unlabelled)


def _cut(whole: Dataset, items: int, name: str) -> Dataset:
    """Some of the training items, always the same ones, and those of a smaller cut among those of a larger."""
    if items > len(whole.labels):
        raise DataError(f"{name}: cannot be cut to {items} training items, it has {len(whole.labels)}.")
    order = np.random.default_rng(seed_for("cut")).permutation(len(whole.labels))
    return whole[np.sort(order[:items])]


class TestPart:
    """The test part behind a seal: it answers once, and only for a model whose epoch has been chosen."""

    __test__ = False  # not a test class

    def __init__(self, data: Dataset, counts: npt.NDArray[Any]) -> None:
        assert data.test is not None  # `open_data` sees to it
        self._test, self._counts = data.test, counts
        self.predictions_sha256: str | None = None  # of what was predicted when it was read

    def scores(
        self, fitted: FittedModel, validation: Validation | None = None
    ) -> tuple[dict[str, float], dict[str, float]]:
        """Of the model, and of what it was after its last epoch. With a validation part, thresholds for the best F1 are
        chosen on it, in the same way for every method, and F1 is also that at these thresholds."""
        if not fitted.progress.finished:
            raise ProtocolError("The test part was asked for before the epoch was chosen.")
        if self.predictions_sha256 is not None:
            raise ProtocolError("The test part was asked for twice by one cell.")
        probabilities = fitted.predict(self._test.items)
        self.predictions_sha256 = Arrays(probabilities).digest()
        best = self._scored(probabilities, fitted, validation)
        if fitted.progress.last is None:
            return best, best
        with fitted.last_epoch_weights():
            return best, self._scored(fitted.predict(self._test.items), fitted, validation)

    def _scored(
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
    """Train, choose, test once: the result line of a cell, with its whole origin."""
    begun = time.perf_counter()
    _reset_peak()
    found = (_asked if cell.asks else _trained)(cell, precompute_features(cell, data))
    return {
        **cell.key(),
        "data_digest": data.digest,
        **found,
        "needs_truth": methods.find(cell.method).kind.needs_truth,
        "partly": partly.__version__,
        "protocol": PROTOCOL,
        "torch": torch.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} thread(s) a cell",
        "seconds": round(time.perf_counter() - begun, 3),
        "memory_mb": round(_peak_mb(), 1),
    }


def precompute_features(cell: Cell, data: Dataset) -> Dataset:
    """Return the data with the features that the frozen backbone of a cell computes of them, if it has one."""
    config = config_of(cell)
    assert data.test is not None  # `open_data` sees to it
    items = engine.precompute_features(data.items, config)
    test = replace(data.test, items=engine.precompute_features(data.test.items, config, like=items))
    return replace(data, items=items, test=test)


def failed_cell(cell: Cell, data: Dataset, reason: str) -> dict[str, Any]:
    """The line of a cell that came to nothing."""
    return {
        **cell.key(),
        "data_digest": data.digest,
        "failed": reason,
        "partly": partly.__version__,
        "protocol": PROTOCOL,
    }


def _trained(cell: Cell, data: Dataset) -> dict[str, Any]:
    observed = mask(cell, data)
    # With coarse labels the few items that are wholly known matter most: validation takes others while there are some.
    coarse = scenarios.kind(cell.scenario) == "coarse-only"
    whole = observed.known_per_item() == observed.shape[1] if coarse else None
    fit, hold = split_holdout(len(observed), HOLD_OUT, cell.seed, last=whole)
    chooses = data.labels if cell.validation == "complete" else observed
    held_out_part = PreparedData(data.items[hold], chooses[hold])
    if cell.known_only:
        fit = fit[observed.known_per_item()[fit] > 0]
    # By known yes: where entries are known by chance, every label has about as many known entries as any other.
    items, labels = data.items[fit], observed[fit]
    truth = data.labels[fit]
    if data.with_unlabelled is not None and methods.find(cell.method).about.learns_from_unknown:
        items = data.with_unlabelled.items[np.append(fit, data.unlabelled_rows)]
        ids = [data.with_unlabelled.labels.id_at(row) for row in data.unlabelled_rows.tolist()]
        labels, truth = (append_unlabelled(part, ids) for part in (labels, truth))
    plan = engine.resolve(config_of(cell), (items, labels), held_out_part)
    models = _fit_all(candidates(cell, plan))
    best = max(models, key=_validation_score)
    shown = hidden_entries.hidden_label_metrics(best, items, labels, truth)
    test = TestPart(data, labels.counts()[0])
    seconds = sum(model.progress.seconds for model in models)
    found = _tested(best, test, best.config, observed, seconds, plan.validation)
    return found | ({"beside": _plain(shown)} if shown else {})


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


def _asked(cell: Cell, data: Dataset) -> dict[str, Any]:
    """Rounds of questions that the truth answers, or people who err about it. Nothing is chosen, so nothing is held
    out, and the scores of every round are on the test part."""
    observed = mask(cell, data)
    model = Classifier(**vars(config_of(cell)))
    measure = simulation.make_measure(replace(data, labels=observed, truth=data.labels))
    begun = time.perf_counter()
    with TemporaryDirectory() as folder:
        where = (model, data.items, observed, folder, plan_of(cell.asks))
        loop = Loop(*where, hierarchy=data.hierarchy, measure=measure)
        answer = simulation.answers_with_errors(data.labels, cell.asks["errors"], cell.seed)
        rounds = loop.run(answer, cell.asks["rounds"])
        rounds = simulation.add_seconds(rounds, (questions for _, questions, _ in loop.answers()))
    seconds = time.perf_counter() - begun  # of all rounds
    areas = {name: simulation.area(rounds, name) for name in simulation.PRECISION_METRICS}
    test = TestPart(data, loop.labels.counts()[0])
    found = _tested(model.fitted_, test, loop.training.config, observed, seconds)
    return found | {"rounds": rounds, "areas": _plain(areas)}


def _tested(
    fitted: FittedModel,
    test: TestPart,
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
        "test": _plain(best),
        "last": _plain(last),
        "predictions_sha256": test.predictions_sha256,
        "training_seconds": round(seconds, 3),
    }


def _plain(scores: dict[str, float]) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in scores.items()}


def mask(cell: Cell, data: Dataset) -> Labels:
    """The observed labels: the same for every method, head and setting."""
    if cell.scenario == FULL:
        return data.labels
    return scenarios.parse(cell.scenario)(data.labels, cell.seed, data.hierarchy)


def candidates(cell: Cell, plan: Plan) -> Iterator[Plan]:
    """Yield the plans that a cell may try: its own, then `tune - 1` more with a learning rate around its own and
    settings drawn from the ranges that the method declares. The budget is the same for all."""
    yield plan
    ranges = methods.find(cell.method).about.search
    for trial in range(1, cell.tune):
        rng = np.random.default_rng(seed_for(cell.seed, cell.method, "tune", trial))
        rate = plan.config.lr * _between(LR_FACTOR, rng)
        settings = cell.settings | {name: _drawn(choice, rng) for name, choice in ranges.items()}
        yield replace(plan, config=engine.spell_out(replace(plan.config, lr=rate, settings=settings)))


def config_of(cell: Cell) -> TrainConfig:
    """Return the configuration of a cell: its axes, and what the experiment fixes for all cells."""
    axes = {name: getattr(cell, name) for name in ("method", "head", "optimizer", "seed", "settings")}
    return TrainConfig.from_params(axes | cell.recipe | {"progress": False, "device": "cpu"})


def check_no_leak(method: str, settings: dict[str, Any] | None = None) -> None:
    """Refuse a method that sees what nobody observed: two small cells that differ in nothing but what is hidden (under
    unknown entries, and in the labels of the test part) must end in the same predictions. An oracle that says so may
    look. What finds the truth on other data only is not noticed; files that settings name are of other items and
    labels, and left out."""
    if methods.find(method).kind.needs_truth:
        return
    recipe = {"epochs": 2, "batch_size": 16}
    head = AUTO if method == AUTO else "linear"
    plain = {name: value for name, value in (settings or {}).items() if not Path(str(value)).suffix[1:].isalpha()}
    cell = Cell("blind", "uniform:0.5", method, head, "adamw", 0, plain, recipe, "partial")
    found = []
    for other in (False, True):
        world = _world(cell, other)
        line = run_cell(cell, world)
        found.append([line[key] for key in ("mask_sha256", "best_epoch", "validation_score", "predictions_sha256")])
        gone = weakref.ref(world)
        del world
        if gone() is not None:  # never both truths in the room: who always finds the same one would not be noticed
            gc.collect()
    if found[0] != found[1]:
        raise ProtocolError(
            f"{method} peeks at the truth: what is hidden under unknown entries changes its predictions. "
            "A method learns from the batch alone; an oracle says needs_truth = True."
        )


def _world(cell: Cell, other: bool) -> Dataset:
    """A small data set; the other one has the same items and the same observed entries, and all else the other way."""
    rng = np.random.default_rng(seed_for("blind"))
    x = rng.normal(size=(80, 5)).astype(np.float32)
    z = np.where(x[:, :4] + rng.normal(size=(80, 4)) > 0, 1, -1)
    train, test = z[:60], z[60:]
    if other:
        observed = mask(cell, Dataset(Arrays(x[:60]), Labels.from_ternary(train)))
        train, test = np.where(observed.known, train, -train), -test
    held = Dataset(Arrays(x[60:]), Labels.from_ternary(test))
    return Dataset(Arrays(x[:60]), Labels.from_ternary(train), test=held)


def _validation_score(fitted: FittedModel) -> float:
    score = fitted.progress.best_score
    return -np.inf if score is None else score


def _drawn(choice: tuple[float, float] | list[Any], rng: np.random.Generator) -> Any:
    """A tuple is a range (on a logarithmic scale where it is all above 0), a list is a choice."""
    if isinstance(choice, list):
        return choice[int(rng.integers(len(choice)))]
    return _between(choice, rng) if min(choice) > 0 else float(rng.uniform(*choice))


def _between(ends: tuple[float, float], rng: np.random.Generator) -> float:
    return float(np.exp(rng.uniform(*np.log(ends))))


def _reset_peak() -> None:
    """Let the kernel measure the peak memory anew; where it cannot, the peak of the process stands."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def _peak_mb() -> float:
    with suppress(OSError, StopIteration):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
