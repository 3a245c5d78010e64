"""`partly query` and `partly refine`, called as a user calls them."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from partly import Classifier, Labels, Ledger
from partly.active import Loop
from partly.cli.main import app
from partly.data import read_labels, write_labels
from partly.data.hierarchy_table import read_hierarchy
from partly.errors import DataError, SettingError, Stopped

TRAINING = ["--method", "bce", "--head", "linear", "--epochs", "2", "--device", "cpu"]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Features, labels of which half are known, the truth, a hierarchy, and an .npz of two parts."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3)).astype(np.float32)
    y = (x @ rng.normal(size=(3, 3)) > 0).astype(int)
    y[:, 0] = y[:, 1] | y[:, 2]
    known = np.where(rng.random(y.shape) < 0.4, y * 2 - 1, 0)
    ids, names = [f"i{n}" for n in range(30)], ["animal", "cat", "dog"]
    write_labels(Labels.from_ternary(known, names=names, ids=ids), "labels.csv")
    write_labels(Labels.from_full(y, names=names, ids=ids), "truth.csv")
    Path("features.csv").write_text(
        "\n".join(["item,a,b,c", *(f"{i},{','.join(map(str, row))}" for i, row in zip(ids, x, strict=True))])
    )
    Path("parents.csv").write_text("child,parent\ncat,animal\ndog,animal\n")
    parts = {"features_train": x[:20], "labels_train": y[:20], "features_test": x[20:], "labels_test": y[20:]}
    np.savez("data.npz", **parts, names=np.array(names), parents=np.array(["", "animal", "animal"]))
    return tmp_path


def partly(*words: str) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def fill(path: Path, truth: str = "truth.csv") -> int:
    """Answer what is asked as the truth says; how many answers."""
    with open(truth, newline="") as file:
        right = {row["item"]: row for row in csv.DictReader(file)}
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(row | {"answer": right[row["item"]][row["label"]]} for row in rows)
    return len(rows)


def test_people_answer_round_after_round(here: Path) -> None:
    command = ["refine", "features.csv", "--labels", "labels.csv", "--hierarchy", "parents.csv", "--run", "run"]
    command += [*TRAINING, "--query", "uncertainty", "-n", "25"]
    said, asked = partly(*command), 0
    for number in range(1, 20):
        questions = here / "run" / f"questions-{number - 1:03d}.csv"
        if "Nothing is left to ask" in said:
            break
        asked += fill(questions)
        answered = questions.read_bytes()
        if number == 1:  # somebody forgets --answers: nothing changes, least of all the answers
            assert partly(*command).splitlines() == said.splitlines()[-4:]
        assert questions.read_bytes() == answered
        said = partly(*command, "--answers", str(questions))
        assert f"round {number}: {asked} answers" in said
    page = (here / "run" / "report.html").read_text("utf-8")
    assert "Nothing is left to ask." in page
    assert f'<td class="number">{number - 1}</td><td class="number">{asked}</td>' in page
    followed = int(re.search(r"(\d+) implied entries", said).group(1))
    first = read_hierarchy("parents.csv").deduce(read_labels("labels.csv")).summary()["unknown"]
    assert followed > 0
    assert asked + followed == first < read_labels("labels.csv").summary()["unknown"]


def test_a_simulation_beside_random_questions(here: Path) -> None:
    command = ["refine", "data.npz", "--scenario", "coarse-only:0.1", "--run", "run", *TRAINING]
    command += ["--query", "uncertainty", "-n", "4", "--rounds", "1", "--shadow"]
    said = partly(*command)
    for arm in ("uncertainty", "random"):
        assert [f"{arm}, round {n}: {4 * n} answers" in said for n in range(2)] == [True] * 2
        assert re.search(rf"{arm}: P@1 [0-9.]+, mean over the rounds", said)
    assert "best score of random questions" in said
    picture = (here / "run" / "progress.svg").read_bytes()
    assert all(word in picture for word in (b"<svg", b"uncertainty", b"random", b"all yes", b"coin flip"))
    page = (here / "run" / "report.html").read_text("utf-8")
    assert all(words in page for words in ("mean over the rounds", "F1 on unknown entries", "random", "coin flip"))
    assert partly(*command).splitlines()[-4:] == said.splitlines()[-4:]  # all there already
    out = here / "q.csv"
    partly("simulate", "data.npz", "--scenario", "coarse-only:0.1", "--out", "observed.csv")
    partly(
        "query", "run", "data.npz", "--labels", "observed.csv", "--out", str(out), "-n", "5", "--query", "look-ahead"
    )
    rows = list(csv.reader(out.read_text().splitlines()))
    assert rows[0] == ["item", "label", "score", "entropy", "divergence", "answer"]
    assert len(rows) == 6
    scores = [float(row[2]) for row in rows[1:]]
    assert scores == sorted(scores, reverse=True)


def test_no_questions_are_no_query(here: Path) -> None:
    partly("train", "features.csv", "--labels", "labels.csv", "--run", "run", *TRAINING)
    with pytest.raises(SettingError, match="0 questions: ask for 1 or more"):
        partly("query", "run", "features.csv", "--labels", "labels.csv", "--out", "q.csv", "-n", "0")


def test_what_does_not_go_together(here: Path) -> None:
    with pytest.raises(SettingError, match="are for simulations"):
        partly("refine", "features.csv", "--labels", "labels.csv", "--run", "run", "--shadow")
    with pytest.raises(SettingError, match="leave out --answers"):
        partly("refine", "data.npz", "--scenario", "coarse-only:0.1", "--run", "run", "--answers", "labels.csv")
    x, known = np.zeros((2, 3)), Labels.from_full([[1, 0, 1]] * 2, names=["animal", "cat", "dog"])
    Classifier("bce", head="linear", epochs=1, progress=False).fit(x, known).save("run")
    Path("other.csv").write_text("item,cat,animal,dog\ni0,1,1,\n")
    with pytest.raises(SettingError, match=r"trained on other labels(?s:.*)in this order:\n  animal\n  cat"):
        partly("query", "run", "features.csv", "--labels", "other.csv", "--out", "q.csv")
    Path("more.csv").write_text("item,animal,cat,dog,boat\ni0,1,1,,\n")
    with pytest.raises(SettingError, match=r"before these labels were added\n  'boat'\nTrain again"):
        partly("query", "run", "features.csv", "--labels", "more.csv", "--out", "q.csv")


def test_random_questions_need_no_shadow(here: Path) -> None:
    command = ["refine", "data.npz", "--scenario", "coarse-only:0.1", "--run", "run", *TRAINING]
    partly(*command, "--query", "random", "--rounds", "1", "--shadow")
    assert (here / "run" / "run.json").exists()
    assert not (here / "run" / "random").exists()


def test_ctrl_c_between_two_trainings(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pressed(loop: Loop) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Loop, "ask", pressed)
    with pytest.raises(Stopped, match="finished rounds are in run"):
        partly("refine", "features.csv", "--labels", "labels.csv", "--run", "run", *TRAINING)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("child,above\ncat,animal\n", "needs the columns child and parent; found child, above"),
        ("child,parent\ncat,animal\nanimal,cat\n", r"p.csv: .*(?s:.*)cat -> animal -> cat"),
    ],
)
def test_a_hierarchy_that_cannot_be(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "p.csv"
    path.write_text(text)
    with pytest.raises(DataError, match=message):
        read_hierarchy(path)


@pytest.mark.parametrize("option", [["--rounds", "10"], ["--shadow"]])
def test_options_of_a_simulation_are_refused_before_anything_is_written(here: Path, option: list[str]) -> None:
    """10 is the default, and refused all the same: the option has no meaning with people."""
    Ledger.create("labels.db", names=["animal", "cat", "dog"]).append(["i0"], ["cat"], [1], author="anna")
    command = ["refine", "features.csv", "--labels", "labels.db", "--run", "run", *TRAINING, *option]
    with pytest.raises(SettingError, match="for simulations"):
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert not Path("run").exists()


@pytest.mark.parametrize(
    "option", [["--method", "nothing"], ["--query", "nothing"], ["-n", "0"], ["--head", "nothing"]]
)
def test_wrong_options_are_refused_before_the_ledger_is_recorded(here: Path, option: list[str]) -> None:
    Ledger.create("labels.db", names=["animal", "cat", "dog"]).append(["i0"], ["cat"], [1], author="anna")
    command = ["refine", "features.csv", "--labels", "labels.db", "--run", "run", *TRAINING, *option]
    with pytest.raises(SettingError):
        CliRunner().invoke(app, command, catch_exceptions=False)
    assert not Path("run/ledger.json").exists()
