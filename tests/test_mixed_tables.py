"""Tables as people have them (gaps, categories, dates, durations, booleans), from files and frames to every result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import KFold
from typer.testing import CliRunner

import partly
from partly import Classifier, Labels, PerLabel
from partly.cli.main import app
from partly.errors import CheckpointError, DataError, SettingError
from resealed import change_description

N = 200
NAMES = ["southern", "old", "late"]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    made = pd.DataFrame(
        {
            "city": rng.choice(["Rome", "Oslo", "Lima"], N).astype(object),
            "age": rng.normal(40, 10, N).round(3),
            "member": rng.random(N) < 0.5,
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), "D"),
            "stay": pd.to_timedelta(rng.integers(1, 100, N), "h"),
            "size": pd.Categorical(rng.choice(["s", "m"], N)),
        },
        index=pd.Index([f"i{k}" for k in range(N)], name="item"),
    )
    return made


def truth() -> np.ndarray[Any, Any]:
    x = table()
    late = (x["joined"] > pd.Timestamp("2021-03-01")) & x["member"]
    return np.stack([x["city"] != "Oslo", x["age"] > 40, late], axis=1)


def with_gaps() -> pd.DataFrame:
    x = table()
    x.iloc[::7, 1] = np.nan
    x.iloc[3::20, 0] = None
    x.iloc[5::20, 3] = pd.NaT
    return x


def known() -> Labels:
    hidden = np.random.default_rng(1).random((N, 3)) < 0.3
    return Labels.from_nan(np.where(hidden, np.nan, truth()), names=NAMES, ids=list(table().index))


def model(**more: Any) -> Classifier:
    return Classifier(**{"method": "bce", "head": "linear", "progress": False, **more})


def auc(scores: np.ndarray[Any, Any]) -> float:
    return float(np.mean([roc_auc_score(truth()[:, j], scores[:, j]) for j in range(3)]))


# ---------------------------------------------------------------- from files, on the command line


def run(*command: object) -> str:
    done = CliRunner().invoke(app, list(map(str, command)))
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_train_predict_evaluate_export(suffix: str, tmp_path: Path) -> None:
    x = with_gaps().reset_index()
    path, labels, folder, out = (tmp_path / name for name in (f"x.{suffix}", "labels.csv", "run", "scores.csv"))
    x.to_csv(path, index=False) if suffix == "csv" else x.to_parquet(path, index=False)
    partly.write(known(), labels)
    partly.write(Labels.from_full(truth(), names=NAMES, ids=list(table().index)), tmp_path / "truth.csv")
    train = ["train", path, "--labels", labels, "--run", folder, "--method", "bce", "--head", "linear"]
    run(*train)
    run("verify", folder)
    run("predict", folder, path, "--out", out)
    assert auc(pd.read_csv(out).set_index("item").loc[list(table().index)].to_numpy()) > 0.95
    scored = json.loads(run("evaluate", out, tmp_path / "truth.csv", "--json"))
    assert scored["mAP"] > 0.9
    said = json.loads((folder / "run.json").read_text())
    assert [one["kind"] for one in said["data"]["encoding"]["columns"]] == [
        "category", "number", "number", "date", "duration", "category"
    ]  # fmt: skip
    refused = CliRunner().invoke(app, ["export", str(folder), "--onnx", str(tmp_path / "m.onnx")])
    assert refused.exit_code != 0
    x.loc[3, "age"] = 1000.0
    x.to_csv(path, index=False) if suffix == "csv" else x.to_parquet(path, index=False)
    again = CliRunner().invoke(app, list(map(str, train)))
    assert again.exit_code != 0  # other data, another run


def test_no_encode_names_the_columns(tmp_path: Path) -> None:
    with_gaps().reset_index().to_csv(tmp_path / "x.csv", index=False)
    partly.write(known(), tmp_path / "labels.csv")
    how = ["--labels", str(tmp_path / "labels.csv"), "--run", str(tmp_path / "run"), "--no-encode"]
    done = CliRunner().invoke(app, ["train", str(tmp_path / "x.csv"), *how])
    assert done.exit_code != 0
    told = str(done.exception or "") + done.output
    for words in ("'city': category, ", "'age':", "'joined': date", "'stay': duration"):
        assert words in told
    assert not (tmp_path / "run" / "run.json").exists()


def test_what_is_held_out_does_not_decide_the_encoding(tmp_path: Path) -> None:
    """A category that only held-out items have is unseen."""
    x = with_gaps().reset_index()
    partly.write(known(), tmp_path / "labels.csv")
    _, hold = partly.data.split_holdout(N, 0.2, 0)
    x.loc[hold, "city"] = "Quito"
    x.to_csv(tmp_path / "x.csv", index=False)
    how = ["--method", "bce", "--head", "linear", "--hold-out", "0.2", "--no-refit"]
    run("train", tmp_path / "x.csv", "--labels", tmp_path / "labels.csv", "--run", tmp_path / "run", *how)
    said = json.loads((tmp_path / "run" / "run.json").read_text())
    assert said["data"]["encoding"]["columns"][0]["categories"] == ["Lima", "Oslo", "Rome"]


# ---------------------------------------------------------------- frames


def test_frames_of_pandas_and_polars_give_the_same_bits() -> None:
    x = with_gaps()
    wanted = model().fit(x, known()).predict_proba(x)
    assert auc(wanted) > 0.95
    other = pl.from_pandas(x)
    np.testing.assert_array_equal(model().fit(other, known()).predict_proba(other), wanted)
    numbers = pl.DataFrame(np.random.default_rng(0).normal(size=(N, 3)), schema=["a", "b", "c"])
    fitted = model().fit(numbers, known())
    assert list(fitted.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(fitted.predict_proba(numbers[["c", "a", "b"]]), fitted.predict_proba(numbers))
    fitted = PerLabel(LogisticRegression(), progress=False).fit(numbers, known())
    assert fitted.predict_proba(numbers).shape == (N, 3)


@pytest.mark.parametrize("column", ["joined", "stay", "size", "city"])
def test_no_column_ends_in_a_raw_error(column: str) -> None:
    """Datetimes, durations and categories of pandas used to."""
    x = table()[["age", column]]
    assert model().fit(x, known()).predict(x).shape == (N, 3)
    with pytest.raises(DataError, match=f"'{column}': "):
        model(encode=False).fit(x, known())
    with pytest.raises(DataError, match=f"'{column}'"):
        model().fit(x[["age"]], known()).predict(x)


def test_saved_loaded_and_applied_by_name(tmp_path: Path) -> None:
    x = with_gaps()
    fitted = model().fit(x, known())
    fitted.save(tmp_path / "m")
    loaded = Classifier.load(tmp_path / "m")
    assert list(loaded.feature_names_in_) == list(x.columns)
    np.testing.assert_array_equal(loaded.predict_proba(x[x.columns[::-1]]), fitted.predict_proba(x))
    one = x.iloc[[7]]
    np.testing.assert_allclose(loaded.predict_proba(one), fitted.predict_proba(x)[[7]], atol=1e-6)
    unseen = loaded.predict_proba(x.assign(city="Quito"))
    np.testing.assert_array_equal(unseen, loaded.predict_proba(x.assign(city="Kyiv")))
    with pytest.raises(DataError, match="'age': category here, number in training"):
        loaded.predict(x.assign(age="old"))
    with pytest.raises(DataError, match="missing, 1:\n  'age'"):
        loaded.predict(x.drop(columns="age"))
    with pytest.raises(CheckpointError, match="holds another run"):
        model(run_dir=tmp_path / "m").fit(x.assign(age=1.0), known())


def test_forged_encodings_are_refused(tmp_path: Path) -> None:
    model().fit(with_gaps(), known()).save(tmp_path / "m")

    def forge(said: dict[str, Any]) -> None:
        said["data"]["encoding"]["columns"][0]["categories"] = ["Rome"]

    change_description(tmp_path / "m", forge)
    with pytest.raises(CheckpointError, match=r"data\.encoding"):
        Classifier.load(tmp_path / "m")


def test_arrays_with_gaps_and_validation_and_folds() -> None:
    x = np.random.default_rng(0).normal(size=(N, 4))
    labels = Labels.from_full(x[:, :3] > 0, names=NAMES)
    x[::9, 3] = np.nan
    fitted = model(folds=3).fit(x, labels, validation=(x[:50], labels[:50]))
    assert fitted.predict_proba(x).shape == (N, 3)
    assert fitted.n_features_in_ == 4
    for learn, rest in KFold(3).split(x):
        assert model().fit(x[learn], labels[learn]).score(x[rest], labels[rest]) > 0.95


@pytest.mark.parametrize("method", ["auto", "em", "role", "per-label", "imcl"])
def test_methods_of_every_kind_take_mixed_tables(method: str) -> None:
    x = with_gaps()
    fitted = model(method=method, head="auto", epochs=2).fit(x, known())
    assert np.isfinite(fitted.predict_proba(x)).all()


def test_explanations_name_encoded_features() -> None:
    told = model().fit(with_gaps(), known()).explain(with_gaps(), known(), 2, "southern")
    assert told["features"][0]["feature"].startswith("city=")


def test_questions_can_be_asked_about_them(tmp_path: Path) -> None:
    with_gaps().reset_index().to_csv(tmp_path / "x.csv", index=False)
    partly.write(known(), tmp_path / "labels.csv")
    how = ["--labels", tmp_path / "labels.csv"]
    run("train", tmp_path / "x.csv", *how, "--run", tmp_path / "run", "--method", "bce", "--head", "linear")
    more = ["--query", "diverse", "-n", 3, "--out", tmp_path / "questions.csv"]
    run("query", tmp_path / "run", tmp_path / "x.csv", *how, *more)
    assert len(pd.read_csv(tmp_path / "questions.csv")) == 3


def test_per_label_leaves_tables_to_its_estimator(tmp_path: Path) -> None:
    with_gaps().reset_index().to_csv(tmp_path / "x.csv", index=False)
    with pytest.raises(DataError, match="'city': category"):
        PerLabel(LogisticRegression(), progress=False).fit(partly.read(tmp_path / "x.csv").items, known())


# ---------------------------------------------------------------- ONNX


def days(x: pd.DataFrame) -> np.ndarray[Any, Any]:
    """What a graph takes of these columns."""
    joined = (x["joined"] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    return np.stack([x["age"], x["member"].astype(float), joined, x["stay"] / pd.Timedelta(days=1)], axis=1)


def test_a_graph_fills_in_what_is_missing(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    x = with_gaps()[["age", "member", "joined", "stay"]]
    fitted = model().fit(x, known())
    partly.export.to_onnx(fitted, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (found,) = session.run(["probabilities"], {"features": days(x)})
    np.testing.assert_allclose(found, fitted.predict_proba(x), atol=1e-5)
    said = json.loads(session.get_modelmeta().custom_metadata_map["preparation"])
    assert said["features"] == ["age", "member", "joined", "stay"]
    assert "NaN where missing" in said["input"]


def test_categories_are_refused_with_what_to_do_and_that_works(tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    x = with_gaps()[["age", "city"]]
    with pytest.raises(SettingError, match=r"'city'.*pandas\.get_dummies\(X, columns=\['city'\], dtype=float\)"):
        partly.export.to_onnx(model().fit(x, known()), tmp_path / "m.onnx")
    X = pd.get_dummies(x, columns=["city"], dtype=float)
    fitted = model().fit(X, known())
    partly.export.to_onnx(fitted, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (found,) = session.run(["probabilities"], {"features": X.to_numpy()})
    np.testing.assert_allclose(found, fitted.predict_proba(X), atol=1e-5)
