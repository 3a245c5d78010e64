from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from partly import engine, methods
from partly.comparison.plan import (
    FULL,
    NAIVE,
    Cell,
    Experiment,
    cut_of,
    method_and_settings,
    name_of,
    parse_settings,
    read_experiment,
)
from partly.comparison.protocol import candidates, config_of
from partly.errors import SettingError
from partly.items import as_items
from partly.labels import Labels

ROOT = Path(__file__).resolve().parents[2]


def experiment(**changes):
    return Experiment(**{"data": "a.npz", "methods": "partial-bce", "scenarios": "uniform:0.1", "seeds": 2} | changes)


def shown(cells):
    return {(cell.scenario, cell.method, cell.tune) for cell in cells}


def test_the_full_row_and_the_naive_rows_always_run_along():
    cells = experiment().cells()
    names = ("partial-bce", *NAIVE)
    assert shown(cells) == {(FULL, "bce", 0), *(("uniform:0.1", name, 0) for name in names)}
    assert len(cells) == 2 * 4


def test_the_naive_rows_stay_away_where_they_are_not_wanted():
    assert shown(experiment(naive=False).cells()) == {(FULL, "bce", 0), ("uniform:0.1", "partial-bce", 0)}


def test_every_cell_is_there_once_and_early_seeds_come_first():
    made = experiment(
        methods=("bce", "bce", "partial-bce"), heads=("linear", "mlp"), validation=("complete", "partial")
    )
    cells = made.cells()
    keys = [json.dumps(cell.key(), sort_keys=True) for cell in cells]
    assert len(set(keys)) == len(keys) == 2 * 2 * (1 + 2 * 3)
    assert [cell.seed for cell in cells] == sorted(cell.seed for cell in cells)


def test_where_nothing_is_hidden_both_kinds_of_validation_are_one():
    cells = experiment(validation=("complete", "partial")).cells()
    assert {cell.validation for cell in cells if cell.scenario == FULL} == {"complete"}
    assert {cell.validation for cell in cells if cell.scenario != FULL} == {"complete", "partial"}


def test_the_untuned_rows_stay_and_the_budget_is_the_same_for_all():
    cells = experiment(tune=8).cells()
    names = ("partial-bce", *NAIVE)
    assert shown(cells) == {(FULL, "bce", 0), *(("uniform:0.1", name, tune) for name in names for tune in (0, 8))}


def test_the_references_are_told_neither_head_nor_optimizer_nor_recipe():
    cells = experiment(references=True, heads=("linear", "mlp"), optimizers="sgd", recipe={"epochs": 3}).cells()
    along = [cell for cell in cells if cell.method in ("auto", "per-label")]
    assert len(along) == 2 * 2  # seeds x references, whatever the heads
    assert {(cell.head, cell.optimizer, str(cell.recipe)) for cell in along} == {("auto", "adamw", "{}")}
    assert {cell.settings.get("estimator") for cell in along} == {None, "tuned-logistic-regression"}


def test_references_of_pictures_learn_from_the_features_of_the_backbone_as_it_comes():
    recipe = {"epochs": 3, "backbone": "small-conv", "backbone_settings": {"freeze": 1, "widths": [4]}}
    cells = experiment(references=True, recipe=recipe).cells()
    along = [cell.recipe for cell in cells if cell.method in ("auto", "per-label")]
    assert (
        along == [{"backbone": "small-conv", "backbone_settings": {"freeze": "all", "widths": [4]}}] * len(along) != []
    )
    assert all(cell.recipe == recipe for cell in cells if cell.method == "bce")


def test_parts_overrule_what_they_say_and_share_the_rest():
    parts = ({"methods": ["em"]}, {"heads": "linear", "methods": ["em", "role"]}, {"methods": ["em"]})
    whole = experiment(naive=False, parts=parts)
    assert [(one.methods, one.heads, one.seeds) for one in whole.split()] == [
        (("em",), ("mlp",), 2), (("em", "role"), ("linear",), 2), (("em",), ("mlp",), 2),
    ]  # fmt: skip
    cells = whole.cells()
    assert len(cells) == 2 * (2 + 3)  # what two parts ask for is run once
    assert {(cell.head, cell.method) for cell in cells if cell.scenario != FULL} == {
        ("mlp", "em"), ("linear", "em"), ("linear", "role"),
    }  # fmt: skip
    with pytest.raises(SettingError, match="There is no recipe entry 'epoch'"):
        experiment(parts=({"recipe": {"epoch": 3}},))


def test_who_learns_from_known_items_only_has_no_row_of_all_labels():
    cells = experiment(known_only=True, naive=False).cells()
    assert shown(cells) == {("uniform:0.1", "partial-bce", 0)}
    assert all(cell.key()["known_only"] is True for cell in cells)
    assert "known_only" not in experiment().cells()[0].key()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("../d/coco.npz:3000", ("../d/coco.npz", 3000, "coco:3000")),
        ("coco.npz", ("coco.npz", None, "coco")),
        ("scenes:50", ("scenes", 50, "scenes:50")),
        ("odd:name.npz", ("odd:name.npz", None, "odd:name")),
    ],
)
def test_a_cut_is_part_of_the_name(text, found):
    assert (*cut_of(text), name_of(text)) == found


def test_a_cut_to_nothing_is_refused():
    with pytest.raises(SettingError, match="cut to no items"):
        experiment(data="a.npz:0")


def test_a_key_spells_the_defaults_and_forgets_the_folder():
    key = Cell("/some/where/coco.npz", "full", "partial-bce", "mlp", "adamw", 0, {"value": 9.0}).key()
    assert key["data"] == "coco"
    assert key["settings"] == methods.find("partial-bce").defaults() | {"value": 9.0}


def test_methods_with_settings():
    assert method_and_settings("partial-bce[value=9, gamma=2]") == ("partial-bce", {"value": 9, "gamma": 2})
    assert method_and_settings("bce") == ("bce", {})
    for text in ("em[alpha=0.1", "em[alpha=0.1]]", "em]", "em]alpha=0.1[", "em[alpha=0.1]x"):
        with pytest.raises(SettingError, match="brackets do not match"):
            method_and_settings(text)
    assert parse_settings(["a=1e-3", "b=true", "c=null", "d=wild"]) == {"a": 1e-3, "b": True, "c": None, "d": "wild"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"methods": "partial-bxe"}, "Did you mean 'partial-bce'"),
        ({"methods": "partial-bce[vale=9]"}, "Did you mean 'value'"),
        ({"methods": "partial-bce[value=much]"}, "value = 'much'"),
        ({"methods": "partial-bce[value]"}, "name=value"),
        ({"scenarios": "uniform"}, "no share"),
        ({"scenarios": "unifrom:0.1"}, "Did you mean 'uniform'"),
        ({"validation": "whole"}, "no validation 'whole'"),
        ({"recipe": {"epoch": 3}}, "Did you mean 'epochs'"),
        ({"seeds": 0}, "at least one seed"),
        ({"methods": ()}, "needs data, methods"),
        ({"data": ()}, "needs data, methods"),
        ({"tune": -1}, "needs data, methods"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_runs(changes, words):
    with pytest.raises(SettingError, match=words):
        experiment(**changes)


# ---------------------------------------------------------------- experiment files

FILE = 'data = ["scenes", "../d/x.npz", "/abs/y.npz"]\nmethods = ["bce"]\nscenarios = "single-positive"\nseeds = 3\n'


def test_an_experiment_file(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(FILE + 'labels = "l.csv"\ntitle = "Mine"\nabout = "Why."\nrecipe = {epochs = 3}\n')
    found = read_experiment(path)
    assert found.name == "mine"
    assert found.data == ("scenes", str(tmp_path / "../d/x.npz"), "/abs/y.npz")
    assert found.labels == str(tmp_path / "l.csv")
    assert (found.scenarios, found.seeds, found.title) == (("single-positive",), 3, "Mine")
    assert found.recipe == {"epochs": 3}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (FILE + "sedes = 3", "unknown entry 'sedes'. Did you mean 'seeds'"),
        ("data = [", "cannot be read"),
        ('data = "scenes"\n', "missing"),
        (FILE + "[[parts]]\nsedes = 3", "unknown entry 'sedes'. Did you mean 'seeds'"),
    ],
)
def test_a_bad_experiment_file_is_refused_by_name(tmp_path, text, words):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(SettingError, match=words) as refused:
        read_experiment(path)
    assert "mine.toml" in str(refused.value)


def test_the_parts_of_a_file_name_their_data_relative_to_it(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('methods = ["bce"]\n[[parts]]\ndata = "x.npz:9"\nscenarios = "uniform:0.1"\n')
    (part,) = read_experiment(path).split()
    assert part.data == (str(tmp_path / "x.npz:9"),)
    assert {cell.key()["data"] for cell in part.cells()} == {"x:9"}


def test_an_experiment_file_that_is_not_there(tmp_path):
    with pytest.raises(SettingError, match=r"no\.toml: cannot be read"):
        read_experiment(tmp_path / "no.toml")


@pytest.mark.parametrize("path", sorted((ROOT / "evidence" / "experiments").glob("*.toml")), ids=lambda path: path.stem)
def test_the_experiments_of_the_project_are_data_that_can_be_run(path):
    found = read_experiment(path)
    assert found.name == path.stem
    assert found.cells()
    assert found.title
    assert '"/' not in path.read_text()  # no paths of one machine


def test_another_name_of_a_method_is_the_same_cell() -> None:
    assert method_and_settings("masked-bce") == ("bce", {})
    one, both = (Experiment(("scenes",), methods, ("uniform:0.1",)) for methods in (("bce",), ("masked-bce", "bce")))
    assert one.cells() == both.cells()


def test_what_makes_a_step_can_be_fixed_for_all_cells() -> None:
    how = {"schedule": "step", "schedule_settings": {"at": [1]}, "accumulate": 2, "average": 0.9}
    (cell, *_) = Experiment(("scenes",), ("bce",), ("uniform:0.5",), recipe=how).cells()
    x = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    plan = engine.resolve(config_of(cell), (as_items(x), Labels.from_full(x > 0)))
    (config,) = (candidate.config for candidate in candidates(cell, plan))
    assert (config.schedule, config.schedule_settings["at"]) == ("step", [1])
    assert (config.accumulate, config.average) == (2, 0.9)


def test_a_preset_fills_what_the_axes_leave_open() -> None:
    given = {"heads": ("auto",), "optimizers": ("sgd",), "recipe": {"recipe": "durand2019", "batch_size": 8}}
    (cell, *_) = Experiment(("scenes",), ("bce",), ("uniform:0.5",), naive=False, **given).cells()
    pictures = np.random.default_rng(0).integers(0, 256, (8, 16, 16, 3), dtype=np.uint8)
    config = engine.resolve(config_of(cell), (as_items(pictures), Labels.from_full(np.eye(8, 3)))).config
    assert (config.method, config.optimizer, config.batch_size) == ("bce", "sgd", 8)  # the cell's
    assert (config.head, config.epochs, config.schedule_settings["at"]) == ("weldon", 20, [10])  # the paper's
