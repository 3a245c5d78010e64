"""One configuration: what follows from a field of `TrainConfig`, for every field and for a new one."""

from __future__ import annotations

import dataclasses
import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from sklearn.base import clone
from typer.testing import CliRunner

from partly import Classifier, engine
from partly.cli.dataclass_options import expand_options
from partly.cli.main import app
from partly.comparison.plan import CELL_OPTIONS, FIXED_OPTIONS
from partly.config import OPEN, STORED_NAMES, UNSTORED, ResolvedConfig, TrainConfig, option
from partly.errors import SettingError
from partly.estimators.config_parameters import describe_parameters, make_init
from partly.items import as_items
from partly.labels import Labels

FIELDS = {field.name: field for field in dataclasses.fields(TrainConfig)}
ALIASES = {"random_state", "precision"}
X = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
Y = Labels.from_full(X > 0)


@dataclasses.dataclass(frozen=True)
class WithClip(TrainConfig):
    """The worked example of docs/extend.md."""

    clip: float | None = option(None, "Largest norm of the gradient of a step.", "None leaves gradients unchanged.")


def test_the_classifier_has_a_parameter_for_every_field() -> None:
    parameters = dict(inspect.signature(Classifier).parameters)
    assert parameters.keys() == FIELDS.keys() | ALIASES
    for name, field in FIELDS.items():
        expected = None if field.default is dataclasses.MISSING else field.default
        assert parameters[name].default == expected, name
        assert f"\n    {name} : {field.type}\n" in str(Classifier.__doc__), name
    assert list(parameters)[: len(FIELDS)] == list(FIELDS)  # positional order


def test_scikit_learn_clones_and_sets_parameters() -> None:
    settings = {"gamma": 0.5}
    model = Classifier("partial-bce", settings=settings, head="linear")
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    assert model.settings is settings  # stored unchanged
    assert copy.set_params(epochs=3).epochs == 3
    with pytest.raises(TypeError, match="epoch"):
        Classifier(epoch=3)


def test_the_command_has_an_option_for_every_field() -> None:
    text = CliRunner().invoke(app, ["train", "--help"], env={"COLUMNS": "300"}).output
    for name, field in FIELDS.items():
        spelled = field.metadata.get("option", f"--{name.replace('_', '-')}").split("/")[0]
        spelled = spelled.removesuffix("s") if name.endswith("settings") else spelled
        is_option = field.metadata.get("cli", True)
        assert (f"{spelled} " in text.replace(",", " ").replace("/", " ")) == (is_option or name == "hierarchy"), name
        if is_option:
            words = field.metadata["help"].split()
            assert " ".join(words[:4]) in " ".join(text.split()), name


def test_every_field_has_a_help_text_of_one_line() -> None:
    for name, field in FIELDS.items():
        assert field.metadata["help"].endswith("."), name
        assert len(field.metadata["help"]) <= 110, name


def test_stored_fields_are_in_run_json(tmp_path: Path) -> None:
    Classifier("bce", head="linear", run_dir=tmp_path, progress=False).fit(X, Y)
    recipe = engine.read_description(tmp_path)["recipe"]
    assert recipe.keys() == set(STORED_NAMES.values())
    assert not recipe.keys() & set(UNSTORED)
    assert ResolvedConfig.from_json(recipe).to_json() == recipe


def test_experiments_may_fix_every_stored_field() -> None:
    expected = {*STORED_NAMES, *STORED_NAMES.values()} - {*CELL_OPTIONS, "hierarchy", "penalty"}
    assert set(FIXED_OPTIONS) == expected


def test_what_is_left_open_is_none_and_resolved() -> None:
    assert {"epochs", "batch_size", "lr", "optimizer", "schedule"} <= set(OPEN)
    config = engine.resolve(TrainConfig("em"), (as_items(X), Y)).config
    assert config.explicit_values().keys() >= {"epochs", "batch_size", "lr", "optimizer", "schedule"}
    assert TrainConfig().explicit_values() == {
        "method": "auto", "head": "auto", "seed": 0, "accumulate": 1, "dtype": "auto", "compile": False
    }  # fmt: skip


def test_settings_that_are_none_are_empty() -> None:
    assert TrainConfig(settings=None, head_settings=None).settings == {}
    with pytest.raises(SettingError, match="settings = 3 must be a dictionary"):
        TrainConfig(settings=3)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"method": None}, "method = None must be a name"),
        ({"epochs": 0}, "epochs = 0 must be a whole number, 1 or more"),
        ({"lr": float("nan")}, "lr = nan must be a number above 0"),
        ({"seed": 1.5}, "seed = 1.5 must be a whole number"),
        ({"average": 1}, "average = 1 must be a number from 0 to below 1"),
    ],
)
def test_values_that_cannot_be_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        TrainConfig(**values)


def test_a_new_option_is_one_field() -> None:
    """Signature, docstring and command line follow from it."""

    class Model:
        __init__ = make_init({}, WithClip)

    assert vars(Model(clip=1.0))["clip"] == 1.0
    assert "clip" in inspect.signature(Model).parameters
    assert "Largest norm of the gradient" in describe_parameters(WithClip)
    received: list[WithClip] = []
    typed = typer.Typer()

    @typed.command()
    @expand_options
    def command(config: WithClip = WithClip()) -> None:  # noqa: B008 (frozen)
        received.append(config)

    result = CliRunner().invoke(typed, ["--clip", "0.5", "--epochs", "2"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert received == [WithClip(clip=0.5, epochs=2)]


def test_the_configuration_needs_no_numpy() -> None:
    program = "import sys, partly.config; assert not {'numpy', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)
