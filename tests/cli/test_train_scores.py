"""`partly train` on tables, from files to what is printed and written: held-out scores, their truth, and the refit."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pytest
from typer.testing import CliRunner

from partly import Classifier, data, metrics
from partly.cli import main
from partly.cli.options import DataOptions
from partly.cli.train import HELD_OUT_FOLDER, train
from partly.clock import Clock
from partly.config import TrainConfig
from partly.engine import pipeline, verify
from partly.errors import CheckpointError, LearnedNothingWarning, Stopped

Floats = npt.NDArray[np.float64]
N, NAMES = 800, ["a", "b", "c", "d"]


def population() -> tuple[Floats, Floats]:
    """Features, and labels of which a tenth to a half are yes and features tell something."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 6))
    truth = x[:, :4] + rng.normal(size=(N, 4)) > np.array([1.8, 1.2, 0.7, 0.0])
    return x, truth.astype(float)


def masked(truth: Floats, kind: str) -> Floats:
    chance = {"every-yes": np.where(truth == 1, 1, 0.15), "only-yes": truth, "uniform": np.full(truth.shape, 0.4)}
    return np.where(np.random.default_rng(1).random(truth.shape) < chance[kind], truth, np.nan)


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    x, truth = population()
    pd.DataFrame(x, columns=list("pqrstu")).to_csv(tmp_path / "features.csv", index_label="item")
    for kind in ("every-yes", "only-yes", "uniform"):
        pd.DataFrame(masked(truth, kind), columns=NAMES).to_csv(tmp_path / f"{kind}.csv", index_label="item")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words: str) -> Any:
    done = CliRunner().invoke(main.app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def true_scores(run: Path) -> dict[str, float]:
    """Scores of the held-out model on the held-out items, all of whose labels are looked up."""
    x, truth = population()
    _, hold = data.split_holdout(N, 0.2, 0)
    model = Classifier.load(run / HELD_OUT_FOLDER)
    return metrics.evaluate(model.predict_proba(pd.DataFrame(x[hold], columns=list("pqrstu"))), truth[hold])


def test_scores_of_labels_that_are_missing_by_answer(tables: Path) -> None:
    done = call("train", "features.csv", "--labels", "every-yes.csv", "--run", "run")
    right, measured = true_scores(tables / "run"), json.loads(Path("run/scores.json").read_text())
    assert measured["uncorrected"]["mAP"] > right["mAP"] + 0.1
    assert measured["scores"]["mAP"] == pytest.approx(right["mAP"], abs=0.08)
    assert measured["scores"]["P@1"] is None
    assert measured["missing"]["kind"] == "by-answer"
    assert measured["missing"]["no_known"] == pytest.approx(0.15, abs=0.03)
    call("export", "run", "--model-card", "card.md")
    for text in (done.stdout, Path("run/report.html").read_text("utf-8"), Path("card.md").read_text()):
        assert "Labels are not missing at random" in text
        assert "yes and no are each known at random" in text
        assert f"{measured['scores']['mAP']:.3f}" in text
    assert f"the mAP on known entries is {measured['uncorrected']['mAP']:.3f}" in done.stdout
    guess = re.search(r"Random guessing would reach ([0-9.]+)\.", Path("run/report.html").read_text("utf-8"))
    assert guess is not None
    assert float(guess[1]) == pytest.approx(population()[1].mean(), abs=0.06)  # the share of yes among all entries


def test_own_thresholds_are_those_of_all_entries(tables: Path) -> None:
    """As good as those of labels that are missing at random, and not the lower ones that known entries ask for."""
    x, truth = population()
    _, hold = data.split_holdout(N, 0.2, 0)
    found = {}
    for kind in ("every-yes", "uniform"):
        call("train", "features.csv", "--labels", f"{kind}.csv", "--run", kind)
        model = Classifier.load(tables / kind / HELD_OUT_FOLDER)
        p = model.predict_proba(pd.DataFrame(x[hold], columns=list("pqrstu")))
        found[kind] = metrics.evaluate(p, truth[hold], model.thresholds_)["OF1"]
        best = max(metrics.evaluate(p, truth[hold], cut)["OF1"] for cut in np.linspace(0.1, 0.9, 17))
        assert found[kind] > best - 0.06


def test_evaluate_corrects_too(tables: Path) -> None:
    call("train", "features.csv", "--labels", "every-yes.csv", "--run", "run", "--no-refit", "--hold-out", "0.5")
    done = call("evaluate", "run", "features.csv", "--labels", "every-yes.csv", "--json")
    result = json.loads(done.stdout)
    assert result["warnings"][0].startswith("Labels are not missing at random")
    assert result["P@1"] is None
    assert 0 < result["mAP"] < 1


@pytest.mark.parametrize("method", ["auto", "bce"])
@pytest.mark.filterwarnings("ignore::partly.errors.LearnedNothingWarning")
def test_where_only_yes_is_known_nothing_is_claimed(tables: Path, method: str) -> None:
    done = call("train", "features.csv", "--labels", "only-yes.csv", "--run", "run", "--method", method)
    assert "mAP –   F1 macro –   F1 micro –\n" in done.stdout  # no threshold of an undefined F1
    assert done.stdout.count("No evaluation entry is known to be no") == 1
    measured = json.loads(Path("run/scores.json").read_text())["scores"]
    assert [key for key in ("mAP", "CF1", "OF1", "exact_match", "P@1") if measured[key] is not None] == []
    page = Path("run/report.html").read_text("utf-8")
    assert page.count("so every prediction of yes would count as right") == 1
    call("export", "run", "--model-card", "card.md")
    assert "mAP, F1, exact match and P@k are undefined or unreliable here." in Path("card.md").read_text()
    done = call("evaluate", "run", "features.csv", "--labels", "only-yes.csv")
    assert "–" in done.stdout


def test_a_method_that_calls_everything_yes_says_so() -> None:
    x, truth = population()
    known = masked(truth, "only-yes")
    with pytest.warns(LearnedNothingWarning, match="bce calls every entry yes.*method='auto'"):
        model = Classifier("bce", head="linear", progress=False).fit(x, known)
    assert model.predict(x).all()
    Classifier("assume-negative", head="linear", progress=False).fit(x, known)  # warns of nothing


def test_labels_that_are_missing_at_random_are_scored_as_they_are(tables: Path) -> None:
    done = call("train", "features.csv", "--labels", "uniform.csv", "--run", "run")
    assert "missing at random" not in done.output
    measured = json.loads(Path("run/scores.json").read_text())
    assert "missing" not in measured
    assert measured["scores"]["mAP"] == pytest.approx(true_scores(tables / "run")["mAP"], abs=0.1)
    assert "best epoch" not in Path("run/report.html").read_text("utf-8")  # there was one


def test_the_final_model_learns_from_all_items(tables: Path) -> None:
    words = ("train", "features.csv", "--labels", "uniform.csv", "--method", "bce", "--head", "linear")
    done = call(*words, "--run", "run")
    assert "Held out    160 of 800 items, for scoring" in done.output
    assert "Final model refitted on all 800 items. Scores are those of the model before refitting." in done.stdout
    assert "loss nan" not in done.output
    frame = pd.DataFrame(population()[0], columns=list("pqrstu"))
    final, held_out = Classifier.load("run"), Classifier.load("run/held-out")
    assert (final.fitted_.description["data"]["shape"][0], held_out.fitted_.description["data"]["shape"][0]) == (
        800,
        640,
    )
    observed = pd.read_csv("uniform.csv", index_col="item")
    by_hand = Classifier("bce", head="linear", progress=False).fit(frame, observed)
    np.testing.assert_allclose(final.predict_proba(frame), by_hand.predict_proba(frame), atol=1e-6)
    measured = json.loads(Path("run/scores.json").read_text())
    assert measured["before_refit"]
    assert measured["items"] == 160
    assert verify(Path("run"))
    call("predict", "run", "features.csv", "--out", "scores.csv")
    np.testing.assert_allclose(
        pd.read_csv("scores.csv", index_col="item").to_numpy(), final.predict_proba(frame), atol=1e-5
    )
    call(*words, "--run", "apart", "--no-refit")
    kept = Classifier.load("apart")
    assert (kept.predict_proba(frame) == held_out.predict_proba(frame)).all()
    assert not Path("apart/held-out").exists()
    with pytest.raises(CheckpointError, match="holds a run without refit"):
        CliRunner().invoke(main.app, [*words, "--run", "apart"], catch_exceptions=False)


def test_the_refit_takes_the_epochs_that_were_chosen(tables: Path) -> None:
    call(
        *["train", "features.csv", "--labels", "uniform.csv", "--method", "em", "--epochs", "4", "--run", "run"],
        *["--start", "random"],
    )
    chosen = Classifier.load("run/held-out").best_epoch_
    final = Classifier.load("run").fitted_
    assert final.config.epochs == chosen
    assert len(final.progress.history) == chosen
    call("export", "run", "--model-card", "card.md")
    card = " ".join(Path("card.md").read_text().split())
    assert "before the model was refitted on all items, which were also used to choose the best epoch" in card


def test_the_refit_stays_at_the_solved_start_where_no_step_is_better(tables: Path) -> None:
    said = call("train", "features.csv", "--labels", "uniform.csv", "--method", "em", "--epochs", "4", "--run", "run")
    assert "Start       em stays at its start, the solved bce: no step improves log-loss on held-out" in said.output
    scored, final = Classifier.load("run/held-out"), Classifier.load("run").fitted_
    assert scored.best_epoch_ == 0  # the start has the best held-out score on these tables
    assert final.config.lr_factors == ()
    assert final.method.notes["start"]["lr_factor"] == 0.0


def _signal_at(stage: int, step: int) -> Any:
    """A progress bar that sends Ctrl-C at a step of the first or of the second training."""
    stages: list[str] = []

    @contextmanager
    def progress_callback(*_: object) -> Iterator[Callable[[Clock, dict[str, float]], None]]:
        stages.append("")

        def watch(clock: Clock, _: dict[str, float]) -> None:
            if len(stages) == stage and clock.epoch * clock.steps + clock.step == step:
                signal.raise_signal(signal.SIGINT)

        yield watch

    return progress_callback


@pytest.mark.parametrize(("stage", "step"), [(1, 2), (1, 7), (2, 1), (2, 3)])
def test_a_run_that_is_stopped_goes_on_to_the_same_bits(
    tables: Path, monkeypatch: pytest.MonkeyPatch, stage: int, step: int
) -> None:
    config = TrainConfig("em", "mlp", epochs=3, batch_size=200, start="random")

    def trained(run: Path) -> None:
        train("features.csv", run, config, DataOptions(Path("uniform.csv")), say=lambda _: None)

    trained(tables / "whole")
    with monkeypatch.context() as patch:
        patch.setattr(pipeline, "progress_callback", _signal_at(stage, step))
        with pytest.raises(Stopped, match="saved in"):
            trained(tables / "run")
    trained(tables / "run")
    frame = pd.DataFrame(population()[0], columns=list("pqrstu"))
    for folder in ("", HELD_OUT_FOLDER):
        one, other = (Classifier.load(tables / run / folder).predict_proba(frame) for run in ("whole", "run"))
        assert (one == other).all()
    one, other = (json.loads((tables / run / "scores.json").read_text())["scores"] for run in ("whole", "run"))
    assert one == other
