"""`partly evaluate` at one threshold, and at those that a run has chosen."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.special import expit
from typer.testing import CliRunner

from partly import Classifier, Labels, metrics
from partly.cli.evaluate import evaluate_files
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
    paths = [tmp_path / "scores.csv", tmp_path / "turned.csv"]
    found = evaluate_files(paths, run=tmp_path / "auto").models[0].values
    assert found["OF1"] == metrics.evaluate(p, truth, model.thresholds_)["OF1"]
    assert len(set(model.thresholds_.tolist())) > 1
    Classifier("bce", "linear", epochs=1, progress=False).fit(x, truth).save(tmp_path / "bce")
    with pytest.raises(SettingError, match="bce chooses no thresholds"):
        evaluate_files(paths, run=tmp_path / "bce")


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
    for result in (
        evaluate_files([Path("scores.parquet"), Path("labels.npz")]),
        evaluate_files([Path("scores.parquet")], Path("labels.npz")),
        evaluate_files([Path("run"), Path("x.npy")], Path("labels.npz")),
        evaluate_files([Path("run"), Path("x.npy")], Path("turned.csv")),
        evaluate_files([Path("scores.parquet"), Path("turned.csv")]),
    ):
        found = result.models[0].values
        assert {key: found[key] for key in wanted} == pytest.approx(wanted, nan_ok=True)
    done = CliRunner().invoke(app, ["evaluate", "run", "x.npy", "--labels", "labels.npz", "--json"])
    assert json.loads(done.stdout)["mAP"] == pytest.approx(wanted["mAP"])
    assert "run was trained on these items" in json.loads(done.stdout)["warnings"][0]
    np.save("other.npy", x + 0.1)
    done = CliRunner().invoke(app, ["evaluate", "run", "other.npy", "--labels", "labels.npz", "--json"])
    assert "trained on" not in str(json.loads(done.stdout)["warnings"])
    with pytest.raises(SettingError, match="give the labels, too"):
        evaluate_files([Path("scores.parquet")])
    with pytest.raises(SettingError, match="give the data that the run predicts"):
        evaluate_files([Path("run")], Path("labels.npz"))
    with pytest.raises(DataError, match="has no labels"):
        evaluate_files([Path("run"), Path("x.npy")])


# -------------------------------------------------------------------- scores of other programs


@pytest.fixture
def foreign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[np.ndarray, Labels, np.ndarray]:
    """Two models in different files, partly known labels in another order, groups of the items, and an audit."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    y = rng.random((240, 3)) < 0.3
    ids, names = [f"im{i}.jpg" for i in range(240)], ["a", "b", "c"]
    scores = np.stack([expit(rng.normal(size=y.shape) + s * y - 1) for s in (3.0, 1.0)]).astype(np.float32)
    known = rng.random(y.shape) < 0.5
    truth = Labels.from_ternary(np.where(known, np.where(y, 1, -1), 0), names=names, ids=ids)
    write_labels(truth, "truth.csv")
    order = rng.permutation(240)
    write_scores("good.parquet", scores[0][order], [ids[i] for i in order], names)
    long = pd.DataFrame(scores[1], pd.Index(ids, name="item"), names).stack().reset_index()
    long.set_axis(["item", "label", "score"], axis=1).sample(frac=1, random_state=0).to_csv("poor.csv", index=False)
    pd.DataFrame({"item": ids[::-1], "site": ["n", "s"] * 120}).to_csv("items.csv", index=False)
    places = rng.permutation(np.argwhere(~known))[:100]
    answers = [[ids[i], names[j], int(y[i, j])] for i, j in places]
    pd.DataFrame(answers, columns=["item", "label", "value"]).to_csv("audit.csv", index=False)
    return scores, truth, y


def run_json(*words: str) -> dict:
    done = CliRunner().invoke(app, ["evaluate", *words, "--json"], catch_exceptions=False)
    return json.loads(done.stdout)


def test_two_files_are_compared_by_pairs(foreign: tuple) -> None:
    scores, truth, _ = foreign
    found = run_json("good.parquet", "poor.csv", "--labels", "truth.csv", "--confidence", "0.9")
    for name, s in zip(("good.parquet", "poor.csv"), scores, strict=True):
        assert found["models"][name]["mAP"] == pytest.approx(metrics.evaluate(s, truth)["mAP"])
        expected = metrics.evaluate(s, truth, confidence=0.9)["intervals"]["OF1"]
        assert found["models"][name]["intervals"]["OF1"] == pytest.approx(expected)
    measured = {name: metrics.measure(s, truth, influence=True) for name, s in zip("ab", scores, strict=True)}
    expected = metrics.compare(measured, ["mAP"], 0.9)[0]
    (row,) = (row for row in found["comparisons"] if row["metric"] == "mAP")
    assert [row[key] for key in ("difference", "low", "high")] == pytest.approx(
        [expected[key] for key in ("difference", "low", "high")], rel=1e-5
    )
    done = CliRunner().invoke(app, ["evaluate", "good.parquet", "poor.csv", "--labels", "truth.csv"])
    assert "good.parquet is better than poor.csv: mAP" in done.output


def test_metrics_are_chosen(foreign: tuple) -> None:
    scores, truth, _ = foreign
    command = ["evaluate", "good.parquet", "poor.csv", "--labels", "truth.csv", "--metric", "log_loss"]
    done = CliRunner().invoke(app, [*command, "--metric", "f1_macro", "-o", "x.md", "-o", "x.html"])
    assert done.exit_code == 0, done.output
    loss = [metrics.evaluate(s, truth)["log_loss"] for s in scores]
    assert loss[0] < loss[1]  # the first model is better, because a loss is better if it is lower
    assert f"good.parquet is better than poor.csv: log loss {loss[1] - loss[0]:.3f} lower" in done.output
    assert "Holm-adjusted for 2 tests" in done.output
    assert "| macro F1 |" in Path("x.md").read_text()
    assert "AUROC" not in Path("x.md").read_text()
    with pytest.raises(SettingError, match=r"no metric 'nDCG@33'\. Did you mean 'nDCG@3'"):
        run_json("good.parquet", "truth.csv", "--metric", "nDCG@33")


def test_each_label_is_in_the_json(foreign: tuple) -> None:
    scores, truth, _ = foreign
    found = run_json("good.parquet", "truth.csv")["by_label"]
    measured = metrics.measure(scores[0], truth, influence=True)
    assert list(found) == list(truth.names)
    ends = metrics.label_intervals(measured, 0.95)
    for j, row in enumerate(found.values()):
        for name in ("AP", "AUROC", "precision", "recall", "F1", "log_loss", "brier", "ECE", "yes", "no"):
            assert row[name] == pytest.approx(measured.by_label[name][j], rel=1e-5), name
        assert row["intervals"]["F1"] == pytest.approx(ends["F1"][j].tolist(), rel=1e-5)


def test_parts_are_scored_and_every_output_is_written(foreign: tuple) -> None:
    scores, truth, _ = foreign
    outputs = [f"out.{suffix}" for suffix in ("html", "md", "tex", "csv", "json")]
    options = [word for path in outputs for word in ("-o", path)]
    found = run_json(
        *("good.parquet", "truth.csv", "--by", "frequency", "--by", "site", "--groups", "items.csv"), *options
    )
    assert list(found["by"]) == ["frequency", "site"]
    south = np.array([int(i) % 2 == 0 for i in range(240)])  # the table is reversed
    expected = metrics.evaluate(scores[0][south], truth[south])["mAP"]
    assert found["by"]["site"]["site s"]["values"]["mAP"] == pytest.approx(expected)
    assert all(Path(path).stat().st_size > 500 for path in outputs)
    assert json.loads(Path("out.json").read_text())["mAP"] == found["mAP"]
    with pytest.raises(SettingError, match="written as"):
        run_json("good.parquet", "truth.csv", "-o", "out.pdf")
    with pytest.raises(DataError, match="no column 'sit' to group items by"):
        run_json("good.parquet", "truth.csv", "--by", "sit", "--groups", "items.csv")


def test_all_entries_are_estimated(foreign: tuple) -> None:
    scores, _, y = foreign
    at_random = run_json("good.parquet", "truth.csv", "--mechanism", "auto")["all_entries"]
    assert at_random["mechanism"] == "at-random"
    complete = metrics.evaluate(scores[0], y)
    estimate = at_random["estimates"]["OF1"]
    assert estimate["value"] == pytest.approx(complete["OF1"], abs=0.05)
    assert estimate["lowest"] < complete["OF1"] < estimate["highest"]
    audited = run_json("good.parquet", "truth.csv", "--audited", "audit.csv")["all_entries"]
    assert audited["mechanism"] == "audit"
    assert audited["estimates"]["OP"]["value"] == pytest.approx(complete["OP"], abs=0.1)
    pd.read_csv("audit.csv").rename(columns={"value": "answer"}).to_csv("questions.csv", index=False)
    assert run_json("good.parquet", "truth.csv", "--audited", "questions.csv")["all_entries"] == audited
    with pytest.raises(SettingError, match="--prior is for estimates"):
        run_json("good.parquet", "truth.csv", "--prior", "0.3")


def test_blank_scores_of_unknown_entries_are_told_and_not_estimated_from(foreign: tuple) -> None:
    _, truth, _ = foreign
    long = pd.read_csv("poor.csv")
    z = pd.DataFrame(truth.rows(slice(None)), truth.ids, truth.names)
    long[[z.at[i, j] != 0 for i, j in zip(long["item"], long["label"], strict=True)]].to_csv("known.csv", index=False)
    found = run_json("known.csv", "truth.csv")
    assert found["mAP"] == run_json("poor.csv", "truth.csv")["mAP"]
    assert any("unknown entries have no score" in sentence for sentence in found["warnings"])
    with pytest.raises(DataError, match="entries have no score"):
        run_json("known.csv", "truth.csv", "--mechanism", "auto")


def test_scores_with_a_hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables on disk, labels with two parents; the numbers are those of the functions, in all outputs."""
    monkeypatch.chdir(tmp_path)
    Path("scores.csv").write_text("item,tabby,cat,pet\np,0.9,0.2,0.3\nq,0.4,0.8,0.1\nr,0.1,0.3,0.6\n")
    Path("truth.csv").write_text("item,tabby,cat,pet\np,1,,\nq,,1,0\nr,0,0,1\n")
    Path("parents.csv").write_text("child,parent\ntabby,cat\ntabby,pet\n")
    command = ["evaluate", "scores.csv", "truth.csv", "--hierarchy", "parents.csv"]
    done = CliRunner().invoke(app, [*command, "--json", "-o", "page.html", "-o", "all.csv"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["hierarchical"]
    truth = Labels.from_nan([[1, 1, 1], [0, 1, 0], [0, 0, 1]], names=["tabby", "cat", "pet"])  # with what follows
    scores = np.array([[0.9, 0.2, 0.3], [0.4, 0.8, 0.1], [0.1, 0.3, 0.6]])
    parents = {"tabby": ["cat", "pet"]}
    assert found["federated_mAP"] == pytest.approx(metrics.federated_average_precision(scores, truth).mean())
    assert set(found.pop("intervals")) == {"federated_mAP", "hP", "hR", "hF1", "Fmax", "Smin"}
    assert found == {"federated_mAP": found["federated_mAP"]} | metrics.hierarchical(scores, truth, parents)
    assert "With the hierarchy" in Path("page.html").read_text()
    assert "scores.csv,hierarchy,,hF1" in Path("all.csv").read_text()
    shown = CliRunner().invoke(app, command)
    assert "Fmax" in shown.output
