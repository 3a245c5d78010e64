"""`partly evaluate` at one threshold, and at those that a run has chosen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

from partly import Classifier, Labels, metrics
from partly.cli.evaluate import evaluate_scores
from partly.cli.main import app
from partly.data import write_labels, write_scores
from partly.errors import DataError, SettingError


def test_thresholds_are_those_of_the_run_in_the_order_of_the_labels(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 4)).astype(np.float32)
    truth = Labels.from_full((x[:, :3] + rng.normal(size=(80, 3)) > (0.5, 1, 0)).astype(int), names=["a", "b", "c"])
    model = Classifier("auto", progress=False, budget="5x").fit(x, truth)
    model.save(tmp_path / "auto")
    p = model.predict_proba(x)
    write_scores(tmp_path / "scores.csv", p, truth.ids, truth.names)
    turned = Labels.from_ternary(truth.ternary()[:, ::-1], names=["c", "b", "a"])
    write_labels(turned, tmp_path / "turned.csv")
    found, _ = evaluate_scores(tmp_path / "scores.csv", str(tmp_path / "turned.csv"), run=tmp_path / "auto")
    assert found["OF1"] == metrics.evaluate(p, truth, model.thresholds_)["OF1"]
    assert len(set(model.thresholds_.tolist())) > 1
    Classifier("bce", "linear", epochs=1, progress=False).fit(x, truth).save(tmp_path / "bce")
    with pytest.raises(SettingError, match="bce chooses no thresholds"):
        evaluate_scores(tmp_path / "scores.csv", str(tmp_path / "turned.csv"), run=tmp_path / "bce")


@pytest.fixture
def low(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores that rank and stay below 0.5, of labels without a no, and of one of which nothing is known."""
    monkeypatch.chdir(tmp_path)
    write_scores("scores.csv", np.array([[0.2, 0.1], [0.3, 0.1]]), ["x", "y"], ["a", "b"])
    write_labels(Labels.from_ternary([[1, 0], [1, 0]], names=["a", "b"], ids=["x", "y"]), "labels.csv")


def told(*words: str) -> str:
    done = CliRunner().invoke(app, ["evaluate", "scores.csv", "labels.csv", *words], catch_exceptions=False)
    return done.output


def test_json_has_no_nan(low: None) -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    found = json.loads(told("--json"), parse_constant=refuse)
    assert found["mAP"] is None
    assert found["entries_known"] == 2


def test_a_score_of_0_says_why(low: None) -> None:
    assert "No known yes has a score of 0.5 or more: CF1 and OF1 are 0." in told()
    assert "No known yes" not in told("--threshold", "0.15")


@pytest.mark.parametrize("threshold", ["5", "-0.1", "nan"])
def test_a_threshold_is_a_probability(low: None, threshold: str) -> None:
    with pytest.raises(SettingError, match=r"threshold = .*should be from 0 to 1"):
        told("--threshold", threshold)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_run_is_evaluated_without_a_file_of_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sparse: bool
) -> None:
    """The same numbers as by way of a file, in whatever order its rows are."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)).astype(np.float32)
    z = np.where(rng.random((60, 3)) < 0.6, np.where(x[:, :3] > 0, 1, -1), 0)
    labels = Labels.from_ternary(sp.csr_array(z) if sparse else z, names=["a", "b", "c"])
    np.save("x.npy", x)
    write_labels(labels, "labels.npz")
    turned = Labels.from_ternary(labels.rows(slice(None))[:, ::-1], names=["c", "b", "a"])
    write_labels(turned, "turned.csv", form="long")
    model = Classifier("bce", "linear", epochs=1, progress=False, head_settings={"solve": False}).fit(x, labels)
    model.save("run")
    p, order = model.predict_proba(x), rng.permutation(60)
    write_scores("scores.parquet", p[order], [str(i) for i in order], labels.names)
    wanted = metrics.evaluate(p, labels)
    for found, _ in (
        evaluate_scores(Path("scores.parquet"), "labels.npz"),
        evaluate_scores(Path("run"), "x.npy", observed=Path("labels.npz")),
        evaluate_scores(Path("run"), "x.npy", observed=Path("turned.csv")),
        evaluate_scores(Path("scores.parquet"), "turned.csv"),
    ):
        assert {key: found[key] for key in wanted} == pytest.approx(wanted, nan_ok=True)
    done = CliRunner().invoke(app, ["evaluate", "run", "x.npy", "--labels", "labels.npz", "--json"])
    assert json.loads(done.stdout)["mAP"] == pytest.approx(wanted["mAP"])
    with pytest.raises(SettingError, match="holds scores"):
        evaluate_scores(Path("scores.parquet"), "labels.npz", observed=Path("labels.npz"))
    with pytest.raises(DataError, match="has no labels"):
        evaluate_scores(Path("run"), "x.npy")
