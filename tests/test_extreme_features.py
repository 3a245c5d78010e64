"""Features that float32 cannot hold, through every door: offsets, scales and single items change nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.testing import CliRunner

import partly
from partly import Classifier, Labels, PerLabel, engine, networks
from partly.cli.main import app
from partly.items import map_npy
from plans import fit_config

Array = np.ndarray[Any, Any]
FAR = 2.0**23  # float32 knows no halves there
RNG = np.random.default_rng(0)
X = RNG.integers(-512, 512, size=(120, 5)) / 256  # exact in float64, whatever is added here
TRUTH = X[:, :3] > 0.1
Y = np.where(RNG.random(TRUTH.shape) < 0.7, TRUTH, np.nan)

pytestmark = pytest.mark.filterwarnings("ignore:.*(far from 0|extreme items dominate)")


def auc(scores: Array) -> float:
    return float(np.mean([roc_auc_score(TRUTH[:, j], scores[:, j]) for j in range(3)]))


def model(**more: Any) -> Classifier:
    return Classifier(**{"method": "bce", "head": "linear", "progress": False, **more})


@pytest.mark.parametrize("method", partly.methods())
def test_an_offset_changes_no_method(method: str) -> None:
    near, far = (model(method=method, head="auto", epochs=2).fit(x, Y).predict_proba(x) for x in (X, X + FAR))
    # The last bit of a standardized feature can move an item to the other side of a split of a tree.
    np.testing.assert_allclose(far, near, atol=0.02 if method == "auto" else 1e-4)


@pytest.mark.parametrize("head", networks.heads())
def test_an_offset_changes_no_head(head: str) -> None:
    if head in ("c-tran", "weldon"):
        pytest.skip(f"{head} is for pictures")
    near, far = (model(method="bce", head=head, epochs=2).fit(x, Y).predict_proba(x) for x in (X, X + FAR))
    np.testing.assert_allclose(far, near, atol=1e-4)


def extremes() -> dict[str, Array]:
    one = X.copy()
    one[7, 0] = 1e20
    return {
        "1e6": X + 1e6,
        "1e7": X + 1e7,
        "timestamps": 1.7e9 + 60 * X,
        "whole timestamps": (1_700_000_000 + 256 * X).astype(np.int64),
        "one item": one,
        "tiny": X * 1e-20,
        "tinier than float32": X * 1e-60,
        "huge": X * 4e36,
    }


@pytest.mark.parametrize("case", extremes())
@pytest.mark.parametrize("head", ["linear", "kernel", "mlp"])
def test_what_is_learned_does_not_depend_on_units(case: str, head: str) -> None:
    usual = auc(model(head=head).fit(X, Y).predict_proba(X))
    x = extremes()[case]
    assert auc(model(head=head).fit(x, Y).predict_proba(x)) > usual - 0.003


def test_as_good_as_scikit_learn_beside_one_huge_item() -> None:
    x = extremes()["1e7"]
    known = ~np.isnan(Y[:, 0])
    yardstick = make_pipeline(StandardScaler(), LogisticRegression()).fit(x[known], Y[known, 0])
    ours = model().fit(x, Y).predict_proba(x)[:, 0]
    assert roc_auc_score(TRUTH[:, 0], ours) > roc_auc_score(TRUTH[:, 0], yardstick.predict_proba(x)[:, 1]) - 0.003


def test_a_fit_warns_once_and_a_prediction_never(recwarn: pytest.WarningsRecorder) -> None:
    with pytest.warns(UserWarning, match="far from 0") as told:
        fitted = model(folds=3).fit(pd.DataFrame(X + np.array([0, 0, 0, 0, 1e7]), columns=list("abcde")), Y)
    assert len(told) == 1
    assert "'e': mean 1e+07" in str(told[0].message)
    recwarn.clear()
    fitted.predict_proba(X + np.array([0, 0, 0, 0, 1e7]))
    assert not [one for one in recwarn if "far from" in str(one.message)]


def test_validation_items_and_single_items_are_seen_alike() -> None:
    fitted = model(method="em", epochs=3).fit(X + FAR, Y, validation=(X[:40] + FAR, Y[:40]))
    usual = model(method="em", epochs=3).fit(X, Y, validation=(X[:40], Y[:40]))
    assert fitted.history_[0]["validation_mAP"] == pytest.approx(usual.history_[0]["validation_mAP"])
    whole = fitted.predict_proba(X + FAR)
    np.testing.assert_allclose(fitted.predict_proba(X[3:4] + FAR), whole[3:4], atol=1e-6)


def test_saved_and_loaded(tmp_path: Path) -> None:
    fitted = model().fit(extremes()["timestamps"], Y)
    fitted.save(tmp_path / "m")
    loaded = Classifier.load(tmp_path / "m")
    np.testing.assert_array_equal(
        loaded.predict_proba(extremes()["timestamps"]), fitted.predict_proba(extremes()["timestamps"])
    )
    said = json.loads((tmp_path / "m" / "run.json").read_text())
    assert [row[0] for row in said["data"]["conditioning"]] == [0, 1, 2, 3, 4]


def test_explanations_are_of_the_same_features() -> None:
    far = model().fit(X + FAR, Y)
    near = model().fit(X, Y)
    here, there = (m.explain(x, Y, 5, m.label_names_[1]) for m, x in ((far, X + FAR), (near, X)))
    assert [one["feature"] for one in here["features"]] == [one["feature"] for one in there["features"]]
    assert [one["adds"] for one in here["features"]] == pytest.approx([o["adds"] for o in there["features"]], abs=1e-3)
    assert [one["item"] for one in here["neighbours"]] == [one["item"] for one in there["neighbours"]]


def test_a_model_that_starts_from_another_takes_its_units(tmp_path: Path) -> None:
    how = {"method": "em", "epochs": 3, "head_settings": {"solve": False}}
    results = []
    for shift in (0.0, FAR):
        first, second = tmp_path / f"first {shift}", tmp_path / f"second {shift}"
        model(**how, run_dir=first).fit(X[:60] + shift, Y[:60])
        made = model(**how, run_dir=second).fit(X + 0.5 + shift, Y, start_from=first)
        results.append(made.predict_proba(X + 0.5 + shift))
    np.testing.assert_allclose(results[1], results[0], atol=1e-3)


def test_per_label_keeps_the_digits(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X + FAR)
    estimator = make_pipeline(StandardScaler(), LogisticRegression())
    wanted = PerLabel(estimator, progress=False).fit(X + FAR, Y).predict_proba(X + FAR)
    mapped = map_npy(tmp_path / "x.npy")
    np.testing.assert_allclose(PerLabel(estimator, progress=False).fit(mapped, Y).predict_proba(mapped), wanted)


# ---------------------------------------------------------------- files


def write_items(kind: str, path: Path) -> Path:
    ids, names = [f"i{k}" for k in range(len(X))], list("abcde")
    path = path / f"items.{kind}"
    if kind == "npy":
        np.save(path, X + FAR)
    elif kind == "npz":
        np.savez(path, features=X + FAR, ids=np.array(ids))
    else:
        table = pd.DataFrame(X + FAR, columns=names)
        table.insert(0, "item", ids)
        table.to_csv(path, index=False) if kind == "csv" else table.to_parquet(path)
    return path


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "parquet"])
def test_files_from_train_to_predict(kind: str, tmp_path: Path) -> None:
    found = []
    path = write_items(kind, tmp_path)
    ids = [str(k) if kind == "npy" else f"i{k}" for k in range(len(X))]
    labels = pd.DataFrame(Y, columns=list("xyz"))
    labels.insert(0, "item", ids)
    labels.to_csv(tmp_path / "labels.csv", index=False)
    folder, out = tmp_path / "run", tmp_path / "out.csv"
    how = ["--method", "bce", "--head", "linear", "--hold-out", "0.2"]
    for command in (
        ["train", str(path), "--labels", str(tmp_path / "labels.csv"), "--run", str(folder), *how],
        ["predict", str(folder), str(path), "--out", str(out)],
        ["verify", str(folder)],
    ):
        done = CliRunner().invoke(app, command)
        assert done.exit_code == 0, done.output
        found.append(done.output)
    scores = pd.read_csv(out, dtype={"item": str}).set_index("item").loc[ids].to_numpy()
    assert auc(scores) > 0.97


def test_a_mapped_file_is_never_held_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of the array is a few rows at a time."""
    from partly.items import Arrays, arrays

    np.save(tmp_path / "x.npy", X + FAR)
    monkeypatch.setattr(arrays, "BLOCK", 50)
    most: list[int] = []
    part = Arrays._part

    def counted(self: Arrays, index: Any) -> Array:
        read = part(self, index)
        most.append(len(read))
        return read

    monkeypatch.setattr(Arrays, "_part", counted)
    fit_config(
        engine.make_config("em", "linear", epochs=1, batch_size=16), map_npy(tmp_path / "x.npy"), Labels.from_nan(Y)
    )
    assert max(most) <= 16


# ---------------------------------------------------------------- ONNX


@pytest.mark.parametrize("case", ["timestamps", "one item", "tiny"])
def test_an_exported_graph_takes_float64_where_float32_would_not_do(case: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    x = extremes()[case]
    fitted = model().fit(x, Y)
    partly.export.to_onnx(fitted, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert [part.type for part in session.get_inputs()] == ["tensor(double)"]
    (found,) = session.run(["probabilities"], {"features": x})
    np.testing.assert_allclose(found, fitted.predict_proba(x), atol=1e-5)
    said = json.loads(session.get_modelmeta().custom_metadata_map["preparation"])
    assert said["input"].startswith("float64 ")


def test_an_exported_graph_of_ordinary_features_takes_float32(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    partly.export.to_onnx(model().fit(X, Y), tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    assert [part.type for part in session.get_inputs()] == ["tensor(float)"]


# ---------------------------------------------------------------- items to be scored that are unlike those of training


@pytest.mark.parametrize("head", ["linear", "kernel", "mlp"])
def test_one_extreme_item_among_those_to_be_scored_disturbs_no_other(head: str) -> None:
    fitted = model(head=head).fit(X, Y)
    usual = fitted.predict_proba(X)
    x = X.copy()
    x[7, 0] = 1e20
    found = fitted.predict_proba(x)
    assert np.isfinite(found).all()
    np.testing.assert_allclose(np.delete(found, 7, axis=0), np.delete(usual, 7, axis=0), atol=1e-6)
