"""`partly complete`, called as a user calls it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from partly import Labels, Ledger, scenarios
from partly.cli.main import app
from partly.data import read_labels, write_labels
from partly.errors import PartlyError, SettingError

MODEL = ["--method", "bce", "--head", "linear", "--device", "cpu", "--no-compare"]
NAMES = ["animal", "cat", "dog"]


@pytest.fixture
def truth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Labels:
    """Features, labels of which half are known, labels of which only yes is, and a hierarchy."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 4)).astype(np.float32)
    cat, dog = (x[:, k] + 0.1 * rng.normal(size=500) > 0.3 for k in range(2))
    ids = [f"i{n}" for n in range(500)]
    whole = Labels.from_full(np.stack([cat | dog, cat, dog], axis=1).astype(int), names=NAMES, ids=ids)
    write_labels(scenarios.uniform(whole, 0.6, 0), "labels.csv")
    write_labels(scenarios.positives(whole, 0.3, 0), "yes.csv", absent="unknown")
    rows = (f"{i},{','.join(map(str, row))}" for i, row in zip(ids, x, strict=True))
    Path("features.csv").write_text("\n".join(["item,a,b,c,d", *rows]))
    Path("parents.csv").write_text("child,parent\ncat,animal\ndog,animal\n")
    return whole


def partly(*words: str) -> dict:
    done = CliRunner().invoke(app, ["complete", "features.csv", *MODEL, *words, "--json"], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_labels_go_to_a_file_and_to_a_ledger_and_back(truth: Labels) -> None:
    ledger = Ledger.create("labels.db", NAMES)
    before = read_labels("labels.csv")
    ledger.append_labels(before, author="somebody")
    words = ["--labels", "labels.csv", "--precision", "0.9", "--hierarchy", "parents.csv", "--mechanism", "at-random"]
    told = partly(*words, "--out", "done.csv", "--ledger", "labels.db", "--run", "run")
    assert told["certified"]
    assert told["questions"] is None
    done = read_labels("done.csv")
    row, column, _ = before.entries()
    z, was = (part.rows(slice(None)) for part in (done, before))
    assert (z[row, column] == was[row, column]).all()
    filled = (was == 0) & (z != 0)
    assert filled.sum() >= told["filled"] > 0  # and what follows from the hierarchy
    assert ledger.labels() == before  # a model's words count where they are asked for
    assert (ledger.labels(models=True).rows(slice(None)) != 0).sum() == (was != 0).sum() + told["filled"]
    ledger.undo(told["batch"])
    assert ledger.labels(models=True) == before
    item, label = np.argwhere(filled)[0]
    why = CliRunner().invoke(app, ["explain", "run", f"i{item}", NAMES[label], "--json"], catch_exceptions=False)
    assert json.loads(why.stdout)["neighbours"]


def test_questions_are_written_and_answers_certify(truth: Labels) -> None:
    words = ["--method", "assume-negative", "--labels", "yes.csv", "--precision", "0.8", "--out", "done.csv"]
    first = partly(*words)
    assert not first["certified"]
    assert first["out"] is None
    assert not Path("done.csv").exists()
    assert "Not certified: nothing is filled in." in first["words"]
    path = Path(first["questions"])
    lines = list(csv.DictReader(path.read_text().splitlines()))
    assert list(lines[0]) == ["item", "label", "score", "answer"]
    assert len(lines) <= 200
    z, asked, answered, second = truth.rows(slice(None)), 0, [], first
    while second["questions"]:
        lines = list(csv.DictReader(Path(second["questions"]).read_text().splitlines()))
        rows = (f"{o['item']},{o['label']},{z[int(o['item'][1:]), NAMES.index(o['label'])] == 1:d}" for o in lines)
        path = Path(f"answers-{len(answered)}.csv")
        path.write_text("\n".join(["item,label,answer", *rows]))
        answered += ["--answers", str(path)]
        asked += len(lines)
        second = partly(*words, *answered)
    assert second["certified"]
    assert Path("done.csv").exists()
    assert sum(side["asked"] for side in second["sides"].values()) == asked <= 200


def test_force_writes_and_says_so(truth: Labels) -> None:
    ledger = Ledger.create("labels.db", NAMES)
    told = partly("--labels", "yes.csv", "--method", "assume-negative", "--force", "--ledger", "labels.db")
    assert not told["certified"]
    assert told["filled"] > 0
    assert "NOT certified" in next(one for one in ledger.log() if one.number == told["batch"]).note


def test_what_cannot_be_done_is_refused_before_the_work(truth: Labels) -> None:
    with pytest.raises(SettingError, match="--format long is the format of --out"):
        partly("--labels", "labels.csv", "--form", "long")
    with pytest.raises(PartlyError, match=r"none\.db"):
        partly("--labels", "labels.csv", "--ledger", "none.db")


def test_by_folds_that_are_asked_for(truth: Labels) -> None:
    """Models of their own for held-out scores, of items from a file."""
    words = ["--labels", "labels.csv", "--precision", "0.9", "--mechanism", "at-random"]
    told = partly(*words, "--folds", "3", "--out", "done.csv")
    assert told["certified"]
    assert told["filled"] > 0


def test_what_is_left_of_each_label_is_printed(truth: Labels) -> None:
    words = ["--labels", "labels.csv", "--precision", "0.9", "--mechanism", "at-random", "--no-compare"]
    told = partly(*words)
    printed = CliRunner().invoke(app, ["complete", "features.csv", *MODEL, *words], catch_exceptions=False).stdout
    for label in told["labels"]:
        counts = [label[key] for key in ("filled_yes", "filled_no", "yes", "no", "unknown")]
        line = next(line for line in printed.splitlines() if f" {label['label']} " in line)
        assert [int(cell) for cell in line.split("│")[2:-1]] == counts
        assert label["yes"] + label["no"] + label["unknown"] == len(truth)


def test_a_dry_run_writes_nothing(truth: Labels) -> None:
    before = set(Path().iterdir())
    expected = partly("--labels", "labels.csv", "--dry-run", "--out", "done.csv")
    assert expected["yes"][0]["filled"] > 0
    assert 0.5 <= expected["proposal"] < 1
    assert set(Path().iterdir()) == before
    done = CliRunner().invoke(app, ["complete", "features.csv", *MODEL, "--labels", "labels.csv", "--dry-run"])
    assert "Proposal: --precision" in done.output


def test_the_trade_off_is_drawn_on_a_page(truth: Labels) -> None:
    expected = partly("--labels", "labels.csv", "--dry-run", "--preview", "trade-off.html")
    page = Path("trade-off.html").read_text("utf-8")
    assert expected["page"] == "trade-off.html"
    assert page.count("data:image/svg+xml") == 2
    for target in expected["yes"]:
        assert f'<td class="number">{target["filled"]:,}</td>' in page
    with pytest.raises(SettingError, match="Add --dry-run"):
        partly("--labels", "labels.csv", "--preview", "trade-off.html")
