"""Options of a command from the fields of a dataclass."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from partly.cli.dataclass_options import expand_options
from partly.errors import SettingError


@dataclass(frozen=True)
class Config:
    method: str = field(default="auto", metadata={"help": "Name of the method."})
    epochs: int | None = field(default=None, metadata={"help": "Passes over the data."})
    rate: float | None = field(default=None, metadata={"option": ("-l", "--lr")})
    augment: bool | None = field(default=None, metadata={"option": "--augment/--no-augment"})
    fast: bool = False
    start: Path | None = None
    columns: tuple[str, ...] = ()
    head_settings: dict[str, Any] = field(default_factory=dict)
    seed: Annotated[int, typer.Option(help="Same seed, same result.")] = 0
    callback: object = field(default=None, metadata={"cli": False})


def job(data: str, config: Config = Config(), *, quick: bool = False) -> tuple[str, Config, bool]:  # noqa: B008
    return data, config, quick


def typed(*words: str) -> tuple[str, Config, bool]:
    found: list[Any] = []
    app = typer.Typer()

    @app.command()
    @expand_options
    def command(data: str, config: Config = Config(), *, quick: bool = False) -> None:  # noqa: B008
        found.extend(job(data, config, quick=quick))

    result = CliRunner().invoke(app, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return found[0], found[1], found[2]


def test_defaults_are_those_of_the_fields() -> None:
    assert typed("x") == ("x", Config(), False)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--method", "bce", "--epochs", "3"], Config("bce", 3)),
        (["-l", "0.1", "--no-augment", "--fast"], Config(rate=0.1, augment=False, fast=True)),
        (["--start", "a/b", "--columns", "a", "--columns", "b"], Config(start=Path("a/b"), columns=("a", "b"))),
        (["--head-setting", "hidden=256", "--head-setting", "a=x"], Config(head_settings={"hidden": 256, "a": "x"})),
        (["--seed", "7"], Config(seed=7)),
    ],
)  # fmt: skip
def test_options_become_fields(words: list[str], expected: Config) -> None:
    assert typed("x", *words, "--quick") == ("x", expected, True)


def test_help_comes_from_the_metadata_and_other_fields_are_no_options() -> None:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(expand_options(job))
    text = CliRunner().invoke(app, ["--help"]).stdout
    assert "Name of the method." in text
    assert "Same seed, same result." in text
    assert "--callback" not in text
    assert "--config" not in text
    assert "--no-fast" not in text


def test_settings_without_a_value_are_refused() -> None:
    with pytest.raises(SettingError, match="name=value"):
        typed("x", "--head-setting", "hidden")


def test_an_instance_can_be_given_and_its_values_are_the_defaults() -> None:
    assert expand_options(job)("x", config=Config("bce")) == ("x", Config("bce"), False)

    def other(config: Config = Config("mine", head_settings={"a": 1})) -> Config:  # noqa: B008
        return config

    app = typer.Typer(rich_markup_mode=None)
    app.command()(expand_options(other))
    assert CliRunner().invoke(app, [], standalone_mode=False).return_value == Config("mine", head_settings={"a": 1})
