from __future__ import annotations

import json

from typer.testing import CliRunner

from comparison.making import line
from partly.commands.cli import app
from partly.comparison import claims
from partly.comparison import lines as result_lines


def test_claims_are_listed_where_there_are_no_results(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["claims", "--paper", "lyu"])
    assert done.exit_code == 0
    assert "cls-above-asl-voc (table 2, VOC 2007)" in done.stdout
    assert "em-above-an-voc" not in done.stdout
    assert "No result lines in ./results" in done.stderr


def test_claims_are_decided_from_a_folder(tmp_path):
    result_lines.append(tmp_path / "other.jsonl", line())
    done = CliRunner().invoke(app, ["claims", str(tmp_path), "--json"])
    found = json.loads(done.stdout)
    assert [one["id"] for one in found] == [claim.id for claim in claims.read()]
    assert {one["verdict"] for one in found} == {"undecided"}
    shown = CliRunner().invoke(app, ["claims", str(tmp_path), "--paper", "zhou"]).stdout
    assert "undecided: not run" in shown


def test_a_named_folder_without_results_is_an_error(tmp_path):
    done = CliRunner().invoke(app, ["claims", str(tmp_path / "nowhere")])
    assert "there are no result lines" in str(done.exception)
