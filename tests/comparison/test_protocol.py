# Long because each fault that would make a comparison dishonest is planted by itself and must be refused.

from __future__ import annotations

import importlib
import json
import math
import sys
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import partly
from comparison.making import write_split
from partly import Dataset, engine, methods, metrics, scenarios
from partly.comparison import protocol
from partly.comparison.plan import Cell
from partly.comparison.protocol import ProtocolError, TestSet, candidates, check_no_leak, mask, open_data, run_cell
from partly.comparison.results import KEY, TIMING
from partly.data import split_holdout
from partly.errors import DataError, Diverged
from partly.estimators.classifier import Classifier
from partly.items import Items, as_items
from partly.labels import Labels
from partly.labels.hierarchy import Hierarchy
from plans import fit_config

RECIPE = {"epochs": 3, "batch_size": 32, "start": "random"}


@pytest.fixture(scope="module")
def source(tmp_path_factory) -> Dataset:
    return open_data(str(write_split(tmp_path_factory.mktemp("data") / "tiny.npz")))


def cell(**changes) -> Cell:
    asked = Cell("tiny.npz", "uniform:0.5", "bce", "linear", "adamw", 0, {}, RECIPE)
    return replace(asked, **changes)


def flipped(data: Dataset, items: slice = slice(None)) -> Dataset:
    """The same data with the opposite labels for some items."""
    z = np.array(data.labels.ternary())
    z[items] = -z[items]
    return replace(data, labels=Labels.from_ternary(z, names=data.labels.names, ids=data.labels.ids))


def numbers(items: Items) -> np.ndarray:
    return items.take(slice(None)).numpy()


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
    assert line["mask_sha256"] == scenarios.uniform(source.labels, 0.5, 1).digest()
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
    monkeypatch.setattr(engine, "fit", lambda plan, **_: learned.append((plan.labels, plan.validation)))
    data = replace(source, hierarchy=Hierarchy(dict.fromkeys(source.labels.names, "all")))
    for seed, scenario in product(range(5), ("coarse-only:0.02", "coarse_only:0.02")):
        asked = cell(scenario=scenario, seed=seed, validation="partial")
        with pytest.raises(AttributeError):  # there is no model
            run_cell(asked, data)
        fit, hold = learned[-1][0], learned.pop()[1].labels
        width = data.labels.shape[1]
        assert len(hold) == round(protocol.HOLD_OUT * len(data.labels))
        assert (fit.known_per_item() == width).sum() == (mask(asked, data).known_per_item() == width).sum() > 0
        assert not (hold.known_per_item() == width).any()


def test_the_scores_are_those_of_the_test_part(source):
    line = run_cell(cell(), source)
    fit, hold = split_holdout(len(source.labels), protocol.HOLD_OUT, 0)
    observed = scenarios.uniform(source.labels, 0.5, 0)
    model = Classifier("bce", head="linear", seed=0, device="cpu", progress=False, **RECIPE)
    x = numbers(source.items)
    model.fit(x[fit], observed[fit], validation=(x[hold], source.labels[hold]))
    assert line["test"]["mAP"] == model.score(source.test.items, source.test.labels)
    assert line["validation_score"] == pytest.approx(model.score(x[hold], source.labels[hold]))


@pytest.mark.parametrize("method", ["bce", "assume-negative"])
def test_f1_is_also_that_at_thresholds_that_validation_chooses_for_every_method(source, method):
    line = run_cell(cell(method=method), source)
    fit, hold = split_holdout(len(source.labels), protocol.HOLD_OUT, 0)
    observed = scenarios.uniform(source.labels, 0.5, 0)
    model = Classifier(method, head="linear", seed=0, device="cpu", progress=False, **RECIPE)
    held = source.items[hold], source.labels[hold]
    model.fit(source.items[fit], observed[fit], validation=held)
    thresholds = partly.calibrate(model, *held, thresholds="f1").thresholds_
    scores = partly.metrics.evaluate(model.predict_proba(source.test.items), source.test.labels, thresholds)
    at_half = partly.metrics.evaluate(model.predict_proba(source.test.items), source.test.labels)
    for name in ("CF1", "OF1"):
        assert line["test"][f"{name}_at_chosen_thresholds"] == pytest.approx(scores[name])
        assert line["test"][name] == pytest.approx(at_half[name])


def test_labels_are_grouped_by_their_known_yes_in_training(source):
    line = run_cell(cell(), source)
    fit, hold = split_holdout(len(source.labels), protocol.HOLD_OUT, 0)
    observed = scenarios.uniform(source.labels, 0.5, 0)[fit].ternary()
    model = Classifier("bce", head="linear", seed=0, device="cpu", progress=False, **RECIPE)
    held = source.items[hold], source.labels[hold]
    model.fit(source.items[fit], partly.Labels.from_ternary(observed), validation=held)
    ap = partly.metrics.average_precision(model.predict_proba(source.test.items), source.test.labels)
    counts = [int((observed[:, j] == 1).sum()) for j in range(4)]
    groups = [ap[j] for j in sorted(range(4), key=lambda j: counts[j])]
    assert [line["test"][f"mAP group {n}"] for n in range(1, 6)] == [*groups, None]  # four labels, five groups


def test_the_last_epoch_is_scored_beside_the_best(source):
    line = run_cell(cell(method="em", head="mlp", recipe=RECIPE | {"lr": 1.0, "epochs": 6}), source)
    assert line["best_epoch"] < 6
    fit, _ = split_holdout(len(source.labels), protocol.HOLD_OUT, 0)
    observed = scenarios.uniform(source.labels, 0.5, 0)[fit]
    last = fit_config(
        engine.ResolvedConfig.from_json(line["ran"]), source.items[fit], observed
    )  # without validation the last epoch is kept
    assert line["last"]["mAP"] == metrics.evaluate(last.predict(source.test.items), source.test.labels)["mAP"]
    assert line["last"]["mAP"] != line["test"]["mAP"]
    assert set(line["last"]) == set(line["test"])
    solved = run_cell(cell(), source)
    assert solved["last"] == solved["test"]


def test_items_of_which_nothing_is_known_can_be_left_out(source, monkeypatch):
    learned = []
    monkeypatch.setattr(engine, "fit", lambda plan, **_: learned.append((plan.items, plan.labels)))
    for known_only in (False, True):
        with pytest.raises(AttributeError):  # there is no model
            run_cell(cell(scenario="dense:0.3", known_only=known_only), source)
    (everything, _), (items, labels) = learned
    fit = split_holdout(len(source.labels), protocol.HOLD_OUT, 0)[0]
    some = fit[scenarios.dense(source.labels, 0.3, 0).known_per_item()[fit] > 0]
    assert len(everything) == len(fit) > len(items) == len(some) > 0
    assert (numbers(items) == numbers(source.items[some])).all()
    assert labels == source.labels[some]


def test_a_data_set_can_be_cut_to_some_items_which_are_always_the_same(tmp_path):
    path = str(write_split(tmp_path / "tiny.npz"))
    whole, large, small = (open_data(path + cut) for cut in ("", ":60", ":20"))
    assert (len(whole.labels), len(large.labels), len(small.labels)) == (120, 60, 20)
    rows = [{row.tobytes() for row in numbers(part.items)} for part in (small, large, whole)]
    assert rows[0] < rows[1] < rows[2]
    assert open_data(path + ":60").digest == large.digest != whole.digest
    assert (numbers(small.test.items) == numbers(whole.test.items)).all()
    with pytest.raises(DataError, match="cannot be cut to 121 training items, it has 120"):
        open_data(path + ":121")


def test_an_undefined_score_is_null(source):
    nobody = Labels.from_full(np.zeros(source.test.labels.shape, int), names=source.labels.names)
    line = run_cell(cell(), replace(source, test=replace(source.test, labels=nobody)))
    assert line["test"]["mAP"] is None
    json.dumps(line, allow_nan=False)


# ---------------------------------------------------------------- masks and parts


def test_the_mask_is_the_same_for_all_methods_and_another_for_another_seed_or_scenario(source):
    same = [cell(), cell(method="partial-bce"), cell(head="mlp"), cell(tune=3), cell(validation="partial")]
    assert len({mask(one, source).digest() for one in same}) == 1
    others = [cell(), cell(seed=1), cell(scenario="uniform:0.25"), cell(scenario="full")]
    assert len({mask(one, source).digest() for one in others}) == 4
    assert mask(cell(scenario="full"), source) == source.labels


@pytest.mark.parametrize("kind", ["complete", "partial"])
def test_validation_is_split_off_the_training_part(source, monkeypatch, kind):
    seen = {}

    def fit(plan, **how):
        seen.update(x=numbers(plan.items), y=plan.labels, validation=plan.validation)
        return original(plan, **how)

    original = engine.fit
    monkeypatch.setattr(engine, "fit", fit)
    run_cell(cell(validation=kind), source)
    x, y = numbers(seen["validation"].items), seen["validation"].labels
    fitted, held = ({row.tobytes() for row in part} for part in (seen["x"], x))
    train, test = (numbers(part.items) for part in (source, source.test))
    assert len(held) == round(protocol.HOLD_OUT * len(source.labels))
    assert fitted.isdisjoint(held)
    assert fitted | held == {row.tobytes() for row in train}
    assert not (fitted | held) & {row.tobytes() for row in test}
    observed = scenarios.uniform(source.labels, 0.5, 0)
    chooses = source.labels if kind == "complete" else observed
    ids = {row.tobytes(): i for i, row in enumerate(train)}
    assert y == chooses[[ids[row.tobytes()] for row in x]]
    assert seen["y"] == observed[[ids[row.tobytes()] for row in seen["x"]]]


def test_the_test_part_changes_nothing_but_the_scores(source):
    one, other = run_cell(cell(tune=3), source), run_cell(cell(tune=3), replace(source, test=flipped(source.test)))
    differ = {name for name in one if one[name] != other[name]} - set(TIMING)
    assert differ == {"data_digest", "test", "last"}


def test_the_test_part_answers_once_and_only_when_the_epoch_is_chosen(source):
    test = TestSet(source, np.arange(4))
    fitted = fit_config(engine.make_config("bce", "linear", **RECIPE), source.items, source.labels)
    fitted.progress.finished = False
    with pytest.raises(ProtocolError, match="before the epoch was chosen"):
        test.scores(fitted)
    fitted.progress.finished = True
    best, last = test.scores(fitted)
    assert 0 < best["mAP"] <= 1
    assert last == best  # nobody asked to keep the last epoch
    with pytest.raises(ProtocolError, match="twice"):
        test.scores(fitted)


# ---------------------------------------------------------------- tuning


def tried(asked: Cell) -> list[engine.ResolvedConfig]:
    """The configurations of a search."""
    plan = engine.resolve(protocol.config_of(asked), (as_items(np.zeros((9, 2))), Labels.from_full(np.eye(9, 3))))
    return [candidate.config for candidate in candidates(asked, plan)]


def test_the_search_has_the_same_budget_for_all_and_starts_with_what_was_asked():
    for method in methods.discover():
        asked, *others = tried(cell(method=method, tune=4))
        assert asked.method == ("bce" if method == "auto" else method)  # with a head of its own, auto is the plain one
        method = asked.method
        assert {model.method for model in others} == {method}
        defaults = methods.find(method).defaults()
        assert len(others) == 3
        assert (asked.lr, asked.settings, asked.epochs) == (1e-3, defaults, 3)
        assert len({model.lr for model in others}) == 3
        low, high = (1e-3 * factor for factor in protocol.LR_FACTOR)
        assert all(low <= model.lr <= high for model in others)
        ranges = methods.find(method).about.search
        for model in others:
            assert set(model.settings) == set(defaults)
            assert all(model.settings[name] == defaults[name] for name in set(defaults) - set(ranges))
            drawn = {name for name, choice in ranges.items() if isinstance(choice, tuple)}
            assert all(model.settings[name] != defaults[name] for name in drawn)
    assert len(tried(cell(tune=0))) == len(tried(cell(tune=1))) == 1


def test_draws_are_inside_what_a_method_declares():
    rng = np.random.default_rng(0)
    logs = [math.log(protocol._draw_setting((0.01, 100.0), rng)) for _ in range(500)]
    assert max(map(abs, logs)) <= math.log(100)
    assert abs(np.mean(logs)) < 0.5  # even on the logarithmic scale
    plain = [protocol._draw_setting((0.0, 10.0), rng) for _ in range(500)]
    assert min(plain) >= 0
    assert max(plain) <= 10
    assert 4.4 < np.mean(plain) < 5.6
    assert {protocol._draw_setting(["a", "b"], rng) for _ in range(50)} == {"a", "b"}


def test_settings_that_were_asked_for_are_searched_around_only_where_declared():
    *_, last = tried(cell(method="partial-bce", settings={"gamma": 2.0}, tune=3))
    assert last.settings["gamma"] == 2.0
    assert last.settings["value"] != methods.find("partial-bce").defaults()["value"]


def test_the_search_chooses_by_validation_only(source):
    tuned = cell(method="partial-bce", tune=5)
    line = run_cell(tuned, source)
    fit, hold = split_holdout(len(source.labels), protocol.HOLD_OUT, 0)
    items, labels = source.items[fit], mask(tuned, source)[fit]
    plan = engine.resolve(protocol.config_of(tuned), (items, labels), (source.items[hold], source.labels[hold]))
    models = [engine.fit(candidate) for candidate in candidates(tuned, plan)]
    scores = [model.progress.best_score for model in models]
    assert line["validation_score"] == max(scores)
    assert line["ran"] == models[scores.index(max(scores))].config.to_json()
    assert line["settings"] == methods.find("partial-bce").defaults()  # what was asked for; `ran` has what was found


# ---------------------------------------------------------------- data


def test_the_digest_follows_everything_that_is_learned_from_or_tested_on(source):
    moved, moved_test = (as_items(numbers(part.items) + 1) for part in (source, source.test))
    others = [
        flipped(source, slice(1)),
        replace(source, test=flipped(source.test, slice(1))),
        replace(source, items=moved),
        replace(source, test=replace(source.test, items=moved_test)),
    ]
    assert len({source.digest, *(other.digest for other in others)}) == 5
    assert replace(source).digest == source.digest


def test_a_table_with_labels_is_split_the_same_way_every_time(tmp_path):
    rng = np.random.default_rng(0)
    ids = [f"i{k}" for k in range(40)]
    (tmp_path / "x.csv").write_text("item,f\n" + "".join(f"{i},{rng.random()}\n" for i in ids))
    (tmp_path / "y.csv").write_text(
        "item,a,b\n" + "".join(f"{i},{k % 2},{'' if k % 3 else 1}\n" for k, i in enumerate(ids))
    )
    one, other = (open_data(str(tmp_path / "x.csv"), str(tmp_path / "y.csv")) for _ in range(2))
    assert one.digest == other.digest
    assert (len(one.labels), len(one.test.labels)) == (30, 10)
    assert set(one.labels.ids) | set(one.test.labels.ids) == set(ids)
    with pytest.raises(DataError, match="need a label file"):
        open_data(str(tmp_path / "x.csv"))


def test_items_that_no_label_names_are_learned_from_by_those_who_can(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    (tmp_path / "x.csv").write_text("item,f\n" + "".join(f"i{k},{rng.random()}\n" for k in range(60)))
    (tmp_path / "y.csv").write_text("item,a,b\n" + "".join(f"i{k},{k % 2},{k % 3 // 2}\n" for k in range(40)))
    data, fit, seen = open_data(str(tmp_path / "x.csv"), str(tmp_path / "y.csv")), engine.fit, {}
    assert (len(data.labels), len(data.test.labels), len(data.unlabelled_rows)) == (30, 10, 20)

    def watched(plan, **how):
        seen[plan.config.method] = (len(plan.items), int((plan.labels.known_per_item() == 0).sum()))
        return fit(plan, **how)

    monkeypatch.setattr(engine, "fit", watched)
    for method in ("bce", "em", "assume-negative"):
        run_cell(cell(data="x.csv", scenario="full", method=method), data)
    assert seen == {"bce": (24, 0), "em": (44, 20), "assume-negative": (24, 0)}


# ---------------------------------------------------------------- methods that peek

START = '''"""Peeks."""
import gc, sys
import torch
from partly.method import Method
from partly import Dataset
'''
BODY = """
class Peeking(Method):
    {says}
    def __init__(self, task):
        super().__init__(task)
        self.network = task.network()
        self.optimizer = task.make_optimizer(self.network.parameters())
    def update(self, batch, clock):
        z = batch.z if {forward} else find()
        logits = self.network(batch.x)
        z = z if isinstance(z, torch.Tensor) else torch.from_numpy(z[:len(logits)])
        loss = (torch.nn.functional.softplus(-logits * z)).mean()
        self.step(loss, clock, self.optimizer)
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
            if isinstance(value, Dataset):
                return value.labels.rows(slice(None)).astype("float32")
        frame = frame.f_back
"""
GARBAGE = """
def find():
    for one in gc.get_objects():
        if isinstance(one, Dataset):
            return one.labels.rows(slice(None)).astype("float32")
"""
GLOBALS = """
from partly.comparison import protocol
kept = []
original = protocol.mask
def mask(cell, data):
    kept[:] = [data.labels.rows(slice(None)).astype("float32")]
    return original(cell, data)
protocol.mask = mask
def find():
    return kept[0] if kept else None
"""
TEST_LABELS = """
from partly.comparison.protocol import TestSet
def find():
    frame = sys._getframe()
    while frame is not None:
        for value in frame.f_locals.values():
            if isinstance(value, TestSet):
                return value._test.labels.rows(slice(None)).astype("float32")
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


@pytest.mark.parametrize("method", sorted(methods.discover()))
def test_no_method_sees_the_truth(method):
    check_no_leak(method)


@pytest.mark.parametrize(
    ("how", "forward"),
    [(FRAMES, False), (GARBAGE, False), (GLOBALS, False), (FRAMES, True), (TEST_LABELS, True)],
    ids=["frames", "garbage", "globals", "when it predicts", "test labels"],
)
def test_a_method_that_peeks_is_refused(plant, how, forward):
    name = plant("peeking", START + how + BODY.format(says="", forward=forward))
    with pytest.raises(ProtocolError, match="peeking uses the truth"):
        check_no_leak(name)


def test_a_candidate_that_diverges_is_not_chosen_and_all_that_do_are_an_error(source, monkeypatch):
    rates = []

    def fit(plan, **how):
        rates.append(plan.config.lr)
        if len(rates) == 1:
            raise Diverged("The loss is nan.")
        return plain(plan, **how)

    plain = engine.fit
    monkeypatch.setattr(engine, "fit", fit)
    assert run_cell(cell(tune=2), source)["ran"]["lr"] == rates[1] != rates[0]
    rates.clear()
    with pytest.raises(Diverged):
        run_cell(cell(), source)


def test_a_method_is_looked_at_without_the_files_that_its_settings_name():
    """They are of other items and labels than those of the small world."""
    check_no_leak("imcl", {"graph": "of-others.csv", "side": "of-others.parquet", "warmup": 0.5})


def test_the_same_method_that_does_not_look_passes(plant):
    check_no_leak(plant("honest", START + "def find(): return None\n" + BODY.format(says="", forward=True)))


def test_an_oracle_that_says_so_may_look(plant):
    text = START + FRAMES + BODY.format(says="needs_truth = True", forward=False)
    check_no_leak(plant("seer", text))


def test_the_two_worlds_agree_on_what_is_observed_and_on_nothing_else():
    asked = Cell("blind", "uniform:0.5", "bce", "linear", "adamw", 0)
    one, other = (protocol._make_leak_data(asked, which) for which in (False, True))
    assert mask(asked, one) == mask(asked, other)
    known = mask(asked, one).known
    assert (one.labels.ternary() == other.labels.ternary()).tolist() == known.tolist()
    assert (one.test.labels.ternary() == -other.test.labels.ternary()).all()
    assert one.items.digest() == other.items.digest()
    assert one.test.items.digest() == other.test.items.digest()
