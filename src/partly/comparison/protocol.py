"""How one cell is run: the one protocol that every method is measured by.

The mask is a function of (truth, scenario, seed). Validation is split off the training part, and it alone chooses the
epoch, and the settings where they are tuned. The test part is read once, at the very end.
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
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

import partly
from partly import catalogue, data, metrics, progression, run, scenarios
from partly.active import Loop
from partly.clock import seed_for
from partly.comparison.plan import FULL, Cell, plan_of
from partly.data.matching import read_matching
from partly.data.sets import open_split
from partly.data.split import Split, held_out
from partly.errors import DataError, PartlyError
from partly.estimator import Classifier
from partly.labels import Labels

PROTOCOL = 1  # raised whenever the same cell would give other numbers
HOLD_OUT = 0.2  # of the training part, for validation
TEST_SHARE = 0.25  # of a table that comes without a test part
GROUPS = 5  # of labels, from the fewest known yes in training to the most, each with its own mAP
LR_FACTOR = (1 / 3, 3.0)  # every method may tune its learning rate in this range


class ProtocolError(PartlyError):
    """Something that would make a comparison dishonest."""


@dataclass(frozen=True)
class Source:
    """A data set: its split, and the digest that every result line carries."""

    split: Split

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that is learned from or tested on."""
        s = self.split
        parts = (data.digest(s.train_x), s.train.digest(), data.digest(s.test_x), s.test.digest())
        return f"{seed_for(*parts):016x}"


def open_source(name: str, labels: str | None = None) -> Source:
    """A built-in set, an `.npz` with a train and a test part, or a table of features with a file of labels."""
    split = open_split(name)
    if split is not None:
        return Source(split)
    if labels is None:
        raise DataError(f"{name}: a table of features needs a file with its labels (--labels).")
    known = data.read_labels(labels)
    x = read_matching(name, known.ids)
    train, test = held_out(len(known), TEST_SHARE, 0, "test")
    return Source(Split(x[train], known[train], x[test], known[test]))


class TestPart:
    """The test part behind a seal: it answers once, and only for a model whose epoch has been chosen."""

    __test__ = False  # not a test class

    def __init__(self, x: npt.NDArray[Any], labels: Labels, counts: npt.NDArray[Any]) -> None:
        self._x, self._labels, self._counts = x, labels, counts
        self.predictions_sha256: str | None = None  # of what was predicted when it was read

    def scores(self, model: Classifier) -> dict[str, float]:
        if not hasattr(model, "fitted_") or not model.fitted_.progress.finished:
            raise ProtocolError("The test part was asked for before the epoch was chosen.")
        if self.predictions_sha256 is not None:
            raise ProtocolError("The test part was asked for twice by one cell.")
        probabilities = model.predict_proba(self._x)
        self.predictions_sha256 = data.digest(probabilities)
        by_group = metrics.by_group(probabilities, self._labels, self._counts, GROUPS)
        groups = {f"mAP group {number}": float(score) for number, score in enumerate(by_group, 1)}
        return metrics.evaluate(probabilities, self._labels) | groups


def run_cell(cell: Cell, source: Source) -> dict[str, Any]:
    """Train, choose, test once: the result line of a cell, with its whole origin."""
    begun = time.perf_counter()
    _reset_peak()
    found = (_asked if cell.asks else _trained)(cell, source.split)
    return {
        **cell.key(),
        "data_digest": source.digest,
        **found,
        "needs_truth": catalogue.find(cell.method).kind.needs_truth,
        "partly": partly.__version__,
        "protocol": PROTOCOL,
        "torch": torch.__version__,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {torch.get_num_threads()} thread(s) a cell",
        "seconds": round(time.perf_counter() - begun, 3),
        "memory_mb": round(_peak_mb(), 1),
    }


def _trained(cell: Cell, split: Split) -> dict[str, Any]:
    observed = mask(cell, split)
    # With coarse labels the few items that are wholly known matter most: validation takes others while there are some.
    coarse = scenarios.kind(cell.scenario) == "coarse-only"
    whole = observed.known_per_item() == observed.shape[1] if coarse else None
    fit, hold = held_out(len(observed), HOLD_OUT, cell.seed, last=whole)
    chooses = split.train if cell.validation == "complete" else observed
    validation = (split.train_x[hold], chooses[hold])
    # By known yes: where entries are known by chance, every label has about as many known entries as any other.
    test = TestPart(split.test_x, split.test, observed[fit].counts()[0])
    x, lr = split.train_x[fit], run.default_recipe(split.train_x, split.train.shape[1], cell.optimizer)["lr"]
    models = [m.fit(x, observed[fit], validation=validation) for m in candidates(cell, lr)]
    model = max(models, key=_validation_score)
    seconds = sum(m.fitted_.progress.seconds for m in models)
    return _tested(model, test, model.fitted_.recipe, observed, seconds)


def _asked(cell: Cell, split: Split) -> dict[str, Any]:
    """Rounds of questions that the truth answers. Nothing is chosen, so nothing is held out, and the scores of every
    round are on the test part."""
    observed, (model,) = mask(cell, split), candidates(cell)
    measure = progression.against(split.train_x, split.train, split.test_x, split.test)
    begun = time.perf_counter()
    with TemporaryDirectory() as folder:
        where = (model, split.train_x, observed, folder, plan_of(cell.asks))
        loop = Loop(*where, hierarchy=split.hierarchy, measure=measure)
        rounds = loop.run(progression.from_truth(split.train), cell.asks["rounds"])
    seconds = time.perf_counter() - begun  # of all rounds
    areas = {name: progression.area(rounds, name) for name in progression.RANKS}
    test = TestPart(split.test_x, split.test, loop.labels.counts()[0])
    found = _tested(model, test, loop.recipe, observed, seconds)
    return found | {"rounds": rounds, "areas": _plain(areas)}


def _tested(model: Classifier, test: TestPart, recipe: run.Recipe, observed: Labels, seconds: float) -> dict[str, Any]:
    return {
        "mask_sha256": observed.digest(),
        "ran": vars(recipe),
        "best_epoch": model.best_epoch_,
        "validation_score": model.fitted_.progress.best_score,
        "test": _plain(test.scores(model)),
        "predictions_sha256": test.predictions_sha256,
        "training_seconds": round(seconds, 3),
    }


def _plain(scores: dict[str, float]) -> dict[str, float | None]:
    return {name: None if value != value else value for name, value in scores.items()}


def mask(cell: Cell, split: Split) -> Labels:
    """The observed labels: the same for every method, head and setting."""
    if cell.scenario == FULL:
        return split.train
    return scenarios.parse(cell.scenario)(split.train, cell.seed, split.hierarchy)


def candidates(cell: Cell, lr: float = 1e-3) -> Iterator[Classifier]:
    """The models that a cell may try: the asked one, then `tune - 1` more with a learning rate (around `lr`, if the
    recipe has none) and settings drawn from the ranges that the method declares. The budget is the same for all."""
    asked: dict[str, Any] = {
        "head": cell.head,
        "optimizer": cell.optimizer,
        "seed": cell.seed,
        "progress": False,
        "device": "cpu",
    }
    yield Classifier(cell.method, **asked, settings=cell.settings, **cell.recipe)
    ranges = catalogue.find(cell.method).search()
    for trial in range(1, cell.tune):
        rng = np.random.default_rng(seed_for(cell.seed, cell.method, "tune", trial))
        rate = cell.recipe.get("lr", lr) * _between(LR_FACTOR, rng)
        settings = {name: _drawn(choice, rng) for name, choice in ranges.items()}
        yield Classifier(cell.method, **asked, settings=cell.settings | settings, **cell.recipe | {"lr": rate})


def blind(method: str, settings: dict[str, Any] | None = None) -> None:
    """Refuse a method that sees what nobody observed: two small cells that differ in nothing but what is hidden (under
    unknown entries, and in the labels of the test part) must end in the same predictions. An oracle that says so may
    look. What finds the truth on other data only is not noticed."""
    if catalogue.find(method).kind.needs_truth:
        return
    recipe = {"epochs": 2, "batch_size": 16}
    cell = Cell("blind", "uniform:0.5", method, "linear", "adamw", 0, settings or {}, recipe, "partial")
    found = []
    for other in (False, True):
        source = _world(cell, other)
        line = run_cell(cell, source)
        found.append([line[key] for key in ("mask_sha256", "best_epoch", "validation_score", "predictions_sha256")])
        gone = weakref.ref(source.split)
        del source
        if gone() is not None:  # never both truths in the room: who always finds the same one would not be noticed
            gc.collect()
    if found[0] != found[1]:
        raise ProtocolError(
            f"{method} peeks at the truth: what is hidden under unknown entries changes its predictions. "
            "A method learns from the batch alone; an oracle says needs_truth = True."
        )


def _world(cell: Cell, other: bool) -> Source:
    """A small data set; the other one has the same items and the same observed entries, and all else the other way."""
    rng = np.random.default_rng(seed_for("blind"))
    x = rng.normal(size=(80, 5)).astype(np.float32)
    z = np.where(x[:, :4] + rng.normal(size=(80, 4)) > 0, 1, -1)
    train, test = z[:60], z[60:]
    if other:
        observed = mask(cell, Split(x[:60], Labels.from_ternary(train), x[60:], Labels.from_ternary(test)))
        train, test = np.where(observed.known, train, -train), -test
    return Source(Split(x[:60], Labels.from_ternary(train), x[60:], Labels.from_ternary(test)))


def _validation_score(model: Classifier) -> float:
    score = model.fitted_.progress.best_score
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
