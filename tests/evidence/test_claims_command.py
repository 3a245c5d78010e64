"""`python -m evidence claims`."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from comparison.making import line
from evidence import claims
from evidence.__main__ import main
from partly import methods
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


def test_every_comparison_lists_how_both_sides_were_trained(tmp_path, capsys):
    ran = {"epochs": 20, "batch_size": 64, "lr": 1e-3, "start": "random"}
    for seed in range(8):
        for method, best in (("one-class", 6), ("refine", 12)):
            made = line(method, seed, data="voc2012:2000", scenario="coarse-only:0.015625", head="mlp", best_epoch=best)
            made |= {"recipe": {"epochs": 20, "start": "random"}, "ran": ran | {"lr": best * 1e-3}}
            made["settings"] = methods.find(method).defaults()
            made["test"] = {"mAP": 0.5, "P@1": 0.5}
            result_lines.append(tmp_path / "equal-coarse.jsonl", made)
    assert main(["claims", str(tmp_path), "--paper", "hsieh"]) == 0
    assert (
        "start random; head mlp; features fixed; optimizer adamw; epochs 20; batch size 64; "
        "learning rate 0.012 / 0.006; best epoch 60 % / 30 %; baseline above scikit-learn none"
    ) in capsys.readouterr().out


def test_a_folder_without_results_is_an_error(tmp_path, capsys):
    assert main(["claims", str(tmp_path / "nowhere")]) == 2
    assert "there are no result lines" in capsys.readouterr().err


def test_the_old_command_says_where_it_went():
    with pytest.raises(SettingError, match="python -m evidence claims"):
        CliRunner().invoke(app, ["claims", "results", "--json"], catch_exceptions=False)
