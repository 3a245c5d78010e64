"""`python -m evidence claims`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from comparison.making import line
from evidence import claims
from evidence.__main__ import main
from partly.cli.main import app
from partly.comparison import results as result_lines
from partly.errors import SettingError


def test_claims_are_decided_from_a_folder(tmp_path, capsys):
    result_lines.append(tmp_path / "other.jsonl", line())
    assert main(["claims", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["id"] for one in found] == [claim.id for claim in claims.read()]
    assert {one["verdict"] for one in found} == {"undecided"}
    assert main(["claims", str(tmp_path), "--paper", "zhou"]) == 0
    shown = capsys.readouterr().out
    assert "undecided: not run" in shown
    assert "cls-above-asl-voc" not in shown


def test_a_folder_without_results_is_an_error(tmp_path, capsys):
    assert main(["claims", str(tmp_path / "nowhere")]) == 2
    assert "there are no result lines" in capsys.readouterr().err


def test_the_old_command_says_where_it_went():
    with pytest.raises(SettingError, match="python -m evidence claims"):
        CliRunner().invoke(app, ["claims", "results", "--json"], catch_exceptions=False)
