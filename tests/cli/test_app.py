"""The application: help in sections, other names of options, commands that have moved."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from partly.cli import main
from partly.cli.app import PANELS
from partly.errors import SettingError


def help_of(*words: str) -> str:
    result = CliRunner().invoke(main.app, [*words, "--help"], env={"COLUMNS": "110"}, catch_exceptions=False)
    return result.stdout


def test_commands_are_listed_by_panel() -> None:
    headings = [line[:-1] for line in help_of().splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings == ["Options", *PANELS]


def test_options_are_grouped_with_general_ones_last() -> None:
    text = help_of("train")
    headings = [line[:-1] for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]
    assert headings[:5] == ["Arguments", "Data", "Model", "Training", "Output"]
    assert headings[-1] == "General"
    assert "Usage: root train [OPTIONS] DATA" in text
    assert "--labels PATH " in text
    assert "--lr NUMBER " in text
    assert "list[" not in text


def test_every_option_has_a_help_text_of_one_sentence() -> None:
    def commands(group: Any) -> list[Any]:
        nested = [commands(one) if hasattr(one, "commands") else [one] for one in group.commands.values()]
        return [command for part in nested for command in part]

    for command in commands(typer.main.get_command(main.app)):
        assert command.help.splitlines()[0].endswith("."), command.name
        for option in command.params:
            assert (option.help or "a")[0].isupper(), (command.name, option.name)


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        ("convert", "--form", "--format"),
        ("complete", "--form", "--format"),
        ("predict", "--calls", "--binary"),
        ("refine", "--shadow", "--random-control"),
    ],
)
def test_former_spellings_name_the_same_option(command: str, old: str, new: str) -> None:
    group: Any = typer.main.get_command(main.app)
    (option,) = (option for option in group.commands[command].params if old in option.opts)
    assert new in option.opts


def test_a_command_that_moved_says_where() -> None:
    with pytest.raises(SettingError, match="python -m evidence claims"):
        CliRunner().invoke(main.app, ["claims", "--quick"], catch_exceptions=False)
