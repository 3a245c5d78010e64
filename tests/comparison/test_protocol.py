# Long because each fault that would make a comparison dishonest is planted by itself and must be refused.

from __future__ import annotations

import importlib
import json
import math
import sys
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest

import partly
from comparison.making import write_split
from partly import catalogue, data, scenarios
from partly.comparison import protocol
from partly.comparison.lines import KEY, TIMING
from partly.comparison.plan import Cell
from partly.comparison.protocol import ProtocolError, Source, TestPart, blind, candidates, mask, open_source, run_cell
from partly.errors import DataError
from partly.estimator import Classifier
from partly.labels import Labels
from partly.labels.hierarchy import Hierarchy

RECIPE = {"epochs": 3, "batch_size": 32}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Source:
    return open_source(str(write_split(tmp_path_factory.mktemp("data") / "tiny.npz")))


def cell(**changes) -> Cell:
    asked = Cell("tiny.npz", "uniform:0.5", "bce", "linear", "adamw", 0, {}, RECIPE)
    return replace(asked, **changes)


def flipped(source: Source, part: str, items: slice = slice(None)) -> Source:
    """The same data with the opposite labels for some items of a part."""
    labels = getattr(source.split, part)
    z = np.array(labels.ternary())
    z[items] = -z[items]
    return Source(replace(source.split, **{part: Labels.from_ternary(z, names=labels.names, ids=labels.ids)}))


# ---------------------------------------------------------------- a cell


def test_a_line_carries_its_whole_origin(source):
    line = run_cell(cell(seed=1, head="mlp", tune=2), source)
    assert line["data"] == "tiny"
    assert {name: line[name] for name in ("method", "head", "seed", "recipe", "tune", "validation")} == {
        "method": "bce", "head": "mlp", "seed": 1, "recipe": RECIPE, "tune": 2, "validation": "complete",
    }  # fmt: skip
    assert line["ran"]["epochs"] == 3
    assert line["ran"]["seed"] == 1
    assert line["partly"] == partly.__version__
    assert line["protocol"] == protocol.PROTOCOL
    assert line["mask_sha256"] == scenarios.uniform(source.split.train, 0.5, 1).digest()
    assert line["data_digest"] == source.digest
    assert "1 thread(s)" in line["machine"]
    assert 1 <= line["best_epoch"] <= 3
    assert 0 < line["training_seconds"] <= line["seconds"]
    assert line["memory_mb"] > 10
    assert set(KEY) | set(TIMING) < set(line)
    assert json.loads(json.dumps(line, allow_nan=False)) == line


def test_the_same_cell_gives_the_same_line_but_for_time_and_memory(source):
    one, other = ({k: v for k, v in run_cell(cell(), source).items() if k not in TIMING} for _ in range(2))
    assert one == other
    assert run_cell(cell(seed=1), source)["predictions_sha256"] != one["predictions_sha256"]


def test_with_coarse_labels_no_wholly_known_item_goes_to_validation(source, monkeypatch):
    learned = []
    monkeypatch.setattr(Classifier, "fit", lambda self, x, y, validation: learned.append((y, validation)))
    split = replace(source.split, hierarchy=Hierarchy(dict.fromkeys(source.split.train.names, "all")))
    for seed, scenario in product(range(5), ("coarse-only:0.02", "coarse_only:0.02")):
        asked = cell(scenario=scenario, seed=seed, validation="partial")
        with pytest.raises(AttributeError):  # there is no model
            run_cell(asked, Source(split))
        fit, (_, hold) = learned.pop()
        width = split.train.shape[1]
        assert len(hold) == round(protocol.HOLD_OUT * len(split.train))
        assert (fit.known_per_item() == width).sum() == (mask(asked, split).known_per_item() == width).sum() > 0
        assert not (hold.known_per_item() == width).any()


def test_the_scores_are_those_of_the_test_part(source):
    line = run_cell(cell(), source)
    split = source.split
    fit, hold = data.split.held_out(len(split.train), protocol.HOLD_OUT, 0)
    observed = scenarios.uniform(split.train, 0.5, 0)
    model = Classifier("bce", head="linear", seed=0, device="cpu", progress=False, **RECIPE)
    model.fit(split.train_x[fit], observed[fit], validation=(split.train_x[hold], split.train[hold]))
    assert line["test"]["mAP"] == model.score(split.test_x, split.test)
    assert line["validation_score"] == pytest.approx(model.score(split.train_x[hold], split.train[hold]))


def test_labels_are_grouped_by_their_known_yes_in_training(source):
    line = run_cell(cell(), source)
    fit, hold = data.split.held_out(len(source.split.train), protocol.HOLD_OUT, 0)
    observed = scenarios.uniform(source.split.train, 0.5, 0)[fit].ternary()
    model = Classifier("bce", head="linear", seed=0, device="cpu", progress=False, **RECIPE)
    held = source.split.train_x[hold], source.split.train[hold]
    model.fit(source.split.train_x[fit], partly.Labels.from_ternary(observed), validation=held)
    ap = partly.metrics.average_precision(model.predict_proba(source.split.test_x), source.split.test)
    counts = [int((observed[:, j] == 1).sum()) for j in range(4)]
    groups = [ap[j] for j in sorted(range(4), key=lambda j: counts[j])]
    assert [line["test"][f"mAP group {n}"] for n in range(1, 6)] == [*groups, None]  # four labels, five groups


def test_an_undefined_score_is_null(source):
    nobody = Labels.from_full(np.zeros(source.split.test.shape, int), names=source.split.test.names)
    line = run_cell(cell(), Source(replace(source.split, test=nobody)))
    assert line["test"]["mAP"] is None
    json.dumps(line, allow_nan=False)


# ---------------------------------------------------------------- masks and parts


def test_the_mask_is_the_same_for_all_methods_and_another_for_another_seed_or_scenario(source):
    same = [cell(), cell(method="partial-bce"), cell(head="mlp"), cell(tune=3), cell(validation="partial")]
    assert len({mask(one, source.split).digest() for one in same}) == 1
    others = [cell(), cell(seed=1), cell(scenario="uniform:0.25"), cell(scenario="full")]
    assert len({mask(one, source.split).digest() for one in others}) == 4
    assert mask(cell(scenario="full"), source.split) == source.split.train


@pytest.mark.parametrize("kind", ["complete", "partial"])
def test_validation_is_split_off_the_training_part(source, monkeypatch, kind):
    seen = {}

    def fit(self, X, Y, validation=None):
        seen.update(x=X, y=Y, validation=validation)
        return original(self, X, Y, validation)

    original = Classifier.fit
    monkeypatch.setattr(Classifier, "fit", fit)
    run_cell(cell(validation=kind), source)
    split = source.split
    x, y = seen["validation"]
    fitted, held = ({row.tobytes() for row in part} for part in (seen["x"], x))
    assert len(held) == round(protocol.HOLD_OUT * len(split.train))
    assert fitted.isdisjoint(held)
    assert fitted | held == {row.tobytes() for row in split.train_x}
    assert not (fitted | held) & {row.tobytes() for row in split.test_x}
    observed = scenarios.uniform(split.train, 0.5, 0)
    chooses = split.train if kind == "complete" else observed
    ids = {row.tobytes(): i for i, row in enumerate(split.train_x)}
    assert y == chooses[[ids[row.tobytes()] for row in x]]
    assert seen["y"] == observed[[ids[row.tobytes()] for row in seen["x"]]]


def test_the_test_part_changes_nothing_but_the_scores(source):
    one, other = run_cell(cell(tune=3), source), run_cell(cell(tune=3), flipped(source, "test"))
    differ = {name for name in one if one[name] != other[name]} - set(TIMING)
    assert differ == {"data_digest", "test"}


def test_the_test_part_answers_once_and_only_when_the_epoch_is_chosen(source):
    split = source.split
    test = TestPart(split.test_x, split.test, np.arange(4))
    model = Classifier("bce", head="linear", progress=False, device="cpu", **RECIPE)
    with pytest.raises(ProtocolError, match="before the epoch was chosen"):
        test.scores(model)
    model.fit(split.train_x, split.train)
    model.fitted_.progress.finished = False
    with pytest.raises(ProtocolError, match="before the epoch was chosen"):
        test.scores(model)
    model.fitted_.progress.finished = True
    assert 0 < test.scores(model)["mAP"] <= 1
    with pytest.raises(ProtocolError, match="twice"):
        test.scores(model)


# ---------------------------------------------------------------- tuning


def tried(asked: Cell) -> list[Classifier]:
    """The models of a search, each taken for fitted before the next is asked for."""
    models = []
    for model in candidates(asked):
        model.fitted_ = SimpleNamespace(recipe=SimpleNamespace(lr=1e-3))
        models.append(model)
    return models


def test_the_search_has_the_same_budget_for_all_and_starts_with_what_was_asked():
    for method in catalogue.discover():
        asked, *others = tried(cell(method=method, tune=4))
        assert len(others) == 3
        assert (asked.lr, asked.settings, asked.epochs) == (None, {}, 3)
        assert len({model.lr for model in others}) == 3
        low, high = (1e-3 * factor for factor in protocol.LR_FACTOR)
        assert all(low <= model.lr <= high for model in others)
        ranges = catalogue.find(method).search()
        assert all(set(model.settings) == set(ranges) for model in others)
        for model in others:
            catalogue.find(method).checked(model.settings)
    assert len(tried(cell(tune=0))) == len(tried(cell(tune=1))) == 1


def test_draws_are_inside_what_a_method_declares():
    rng = np.random.default_rng(0)
    logs = [math.log(protocol._drawn((0.01, 100.0), rng)) for _ in range(500)]
    assert max(map(abs, logs)) <= math.log(100)
    assert abs(np.mean(logs)) < 0.5  # even on the logarithmic scale
    plain = [protocol._drawn((0.0, 10.0), rng) for _ in range(500)]
    assert min(plain) >= 0
    assert max(plain) <= 10
    assert 4.4 < np.mean(plain) < 5.6
    assert {protocol._drawn(["a", "b"], rng) for _ in range(50)} == {"a", "b"}


def test_settings_that_were_asked_for_are_searched_around_only_where_declared():
    *_, last = tried(cell(method="partial-bce", settings={"gamma": 2.0}, tune=3))
    assert last.settings["gamma"] == 2.0
    assert last.settings["value"] != catalogue.find("partial-bce").defaults()["value"]


def test_the_search_chooses_by_validation_only(source):
    tuned = cell(method="partial-bce", tune=5)
    line = run_cell(tuned, source)
    split = source.split
    fit, hold = data.split.held_out(len(split.train), protocol.HOLD_OUT, 0)
    models = [
        m.fit(split.train_x[fit], mask(tuned, split)[fit], (split.train_x[hold], split.train[hold]))
        for m in candidates(tuned)
    ]
    scores = [model.fitted_.progress.best_score for model in models]
    assert line["validation_score"] == max(scores)
    assert line["ran"] == vars(models[scores.index(max(scores))].fitted_.recipe)
    assert line["settings"] == catalogue.find("partial-bce").defaults()  # what was asked for; `ran` has what was found


# ---------------------------------------------------------------- data


def test_the_digest_follows_everything_that_is_learned_from_or_tested_on(source):
    split = source.split
    others = [
        flipped(source, "train", slice(1)),
        flipped(source, "test", slice(1)),
        Source(replace(split, train_x=split.train_x + 1)),
        Source(replace(split, test_x=split.test_x + 1)),
    ]
    assert len({source.digest, *(other.digest for other in others)}) == 5
    assert Source(split).digest == source.digest


def test_a_table_with_labels_is_split_the_same_way_every_time(tmp_path):
    rng = np.random.default_rng(0)
    ids = [f"i{k}" for k in range(40)]
    (tmp_path / "x.csv").write_text("item,f\n" + "".join(f"{i},{rng.random()}\n" for i in ids))
    (tmp_path / "y.csv").write_text(
        "item,a,b\n" + "".join(f"{i},{k % 2},{'' if k % 3 else 1}\n" for k, i in enumerate(ids))
    )
    one, other = (open_source(str(tmp_path / "x.csv"), str(tmp_path / "y.csv")) for _ in range(2))
    assert one.digest == other.digest
    assert (len(one.split.train), len(one.split.test)) == (30, 10)
    assert set(one.split.train.ids) | set(one.split.test.ids) == set(ids)
    with pytest.raises(DataError, match="needs a file with its labels"):
        open_source(str(tmp_path / "x.csv"))


# ---------------------------------------------------------------- methods that peek

START = '''"""Peeks."""
import gc, sys
import torch
from partly.method import Method
from partly.data.split import Split
'''
BODY = """
class Peeking(Method):
    {says}
    def __init__(self, task):
        super().__init__(task)
        self.network = task.network()
        self.optimiser = task.optimiser(self.network.parameters())
    def update(self, batch, clock):
        z = batch.z if {forward} else find()
        logits = self.network(batch.x)
        z = z if isinstance(z, torch.Tensor) else torch.from_numpy(z[:len(logits)])
        loss = (torch.nn.functional.softplus(-logits * z)).mean()
        self.step(loss, clock, self.optimiser)
        return {{"loss": loss.item()}}
    def forward(self, x):
        logits = self.network(x)
        found = find() if {forward} else None
        return logits if found is None else logits + torch.from_numpy(found[:len(x)])
"""
FRAMES = """
def find():
    frame = sys._getframe()
    while frame is not None:
        for value in frame.f_locals.values():
            if isinstance(value, Split):
                return value.train.rows(slice(None)).astype("float32")
        frame = frame.f_back
"""
GARBAGE = """
def find():
    for one in gc.get_objects():
        if isinstance(one, Split):
            return one.train.rows(slice(None)).astype("float32")
"""
GLOBALS = """
from partly.comparison import protocol
kept = []
original = protocol.mask
def mask(cell, split):
    kept[:] = [split.train.rows(slice(None)).astype("float32")]
    return original(cell, split)
protocol.mask = mask
def find():
    return kept[0] if kept else None
"""
TEST_LABELS = """
from partly.comparison.protocol import TestPart
def find():
    frame = sys._getframe()
    while frame is not None:
        for value in frame.f_locals.values():
            if isinstance(value, TestPart):
                return value._labels.rows(slice(None)).astype("float32")
        frame = frame.f_back
"""


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Put a method file into the folder of methods; returns its name."""
    folder = importlib.import_module("partly.methods")
    monkeypatch.setattr(folder, "__path__", [*folder.__path__, str(tmp_path)])
    monkeypatch.setattr(protocol, "mask", protocol.mask)  # put back what a method may patch
    planted = []

    def write(name: str, text: str) -> str:
        (tmp_path / f"{name}.py").write_text(text)
        planted.append(f"partly.methods.{name}")
        return name.replace("_", "-")

    yield write
    for name in planted:
        sys.modules.pop(name, None)


@pytest.mark.parametrize("method", sorted(catalogue.discover()))
def test_no_method_sees_the_truth(method):
    blind(method)


@pytest.mark.parametrize(
    ("how", "forward"),
    [(FRAMES, False), (GARBAGE, False), (GLOBALS, False), (FRAMES, True), (TEST_LABELS, True)],
    ids=["frames", "garbage", "globals", "when it predicts", "test labels"],
)
def test_a_method_that_peeks_is_refused(plant, how, forward):
    name = plant("peeking", START + how + BODY.format(says="", forward=forward))
    with pytest.raises(ProtocolError, match="peeking peeks at the truth"):
        blind(name)


def test_the_same_method_that_does_not_look_passes(plant):
    blind(plant("honest", START + "def find(): return None\n" + BODY.format(says="", forward=True)))


def test_an_oracle_that_says_so_may_look(plant):
    text = START + FRAMES + BODY.format(says="needs_truth = True", forward=False)
    blind(plant("seer", text))


def test_the_two_worlds_agree_on_what_is_observed_and_on_nothing_else():
    asked = Cell("blind", "uniform:0.5", "bce", "linear", "adamw", 0)
    one, other = (protocol._world(asked, which).split for which in (False, True))
    assert mask(asked, one) == mask(asked, other)
    known = mask(asked, one).known
    assert (one.train.ternary() == other.train.ternary()).tolist() == known.tolist()
    assert (one.test.ternary() == -other.test.ternary()).all()
    assert (one.train_x == other.train_x).all()
    assert (one.test_x == other.test_x).all()
