"""Thresholds and calibrated probabilities through `Classifier`: cross-fitted, saved, used everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import partly
from partly import Classifier, Labels, export, metrics
from partly.calibration import fit_calibration
from partly.cli.evaluate import evaluate_files
from partly.cli.predict import predict_items
from partly.data import read_scores, write_labels
from partly.data.formats.feature_table import write_numbers
from partly.errors import CheckpointError, SettingError

N, NAMES = 300, ("a", "b", "c")


def x_of(seed: int = 0, count: int = N) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 5)).astype(np.float32)


def y_of(seed: int = 0, count: int = N, share: float = 0.7) -> Labels:
    rng = np.random.default_rng(seed + 100)
    yes = x_of(seed, count)[:, :3] + rng.normal(size=(count, 3)) > (0.5, 1.0, 0.0)
    return Labels.from_nan(np.where(rng.random(yes.shape) < share, yes, np.nan), names=NAMES)


def model(**more: Any) -> Classifier:
    return Classifier(**({"method": "bce", "head": "linear", "progress": False} | more))


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Classifier, Path]:
    folder = tmp_path_factory.mktemp("run") / "run"
    return model(calibrate="isotonic", thresholds="f1", run_dir=folder).fit(x_of(), y_of()), folder


def test_it_is_found_on_out_of_fold_scores(both: tuple[Classifier, Path]) -> None:
    fitted, _ = both
    plain = model().fit(x_of(), y_of())
    expected = fit_calibration(plain.out_of_fold_, y_of(), "isotonic", "f1")
    assert fitted.calibration_ == expected
    np.testing.assert_allclose(fitted.thresholds_, expected.thresholds, atol=1e-7)
    new = x_of(1)
    np.testing.assert_allclose(fitted.predict_proba(new), expit(expected(plain.decision_function(new))), atol=1e-6)
    assert (fitted.predict(new) == (fitted.predict_proba(new) >= fitted.thresholds_)).mean() > 0.999
    assert (fitted.predict(new) != plain.predict(new)).any()


def test_a_method_without_such_scores_is_fitted_in_folds() -> None:
    how: dict[str, Any] = {"head": "mlp", "epochs": 2, "head_settings": {"hidden": 4, "solve": False}}
    fitted = model(thresholds="share", folds=2, **how).fit(x_of(), y_of())
    plain = model(folds=2, **how).fit(x_of(), y_of())
    assert fitted.calibration_ == fit_calibration(plain.out_of_fold_, y_of(), None, "share")


def test_it_is_saved_and_read_and_found_anew_without_training(both: tuple[Classifier, Path], tmp_path: Path) -> None:
    fitted, folder = both
    fitted.save(tmp_path / "saved")
    new = x_of(1)
    for path in (folder, tmp_path / "saved"):
        loaded = Classifier.load(path)
        assert (loaded.calibrate, loaded.thresholds) == ("isotonic", "f1")
        assert loaded.calibration_ == fitted.calibration_
        np.testing.assert_array_equal(loaded.predict_proba(new), fitted.predict_proba(new))
    checkpoints = {path.name: path.read_bytes() for path in folder.glob("checkpoint-*")}
    again = model(thresholds="recall:0.9", run_dir=folder).fit(x_of(), y_of())
    assert again.calibration_.goal == "recall:0.9"
    assert {path.name: path.read_bytes() for path in folder.glob("checkpoint-*")} == checkpoints
    assert Classifier.load(folder).thresholds_.tolist() == again.thresholds_.tolist()
    assert model(run_dir=folder).fit(x_of(), y_of()).calibration_ is None
    assert Classifier.load(folder).calibration_ is None
    damaged = tmp_path / "saved" / "calibration.json"
    damaged.write_text(damaged.read_text().replace("isotonic", "isotoniC"))
    with pytest.raises(CheckpointError, match="damaged or edited"):
        Classifier.load(tmp_path / "saved")


def test_commands_use_it(both: tuple[Classifier, Path], tmp_path: Path) -> None:
    fitted, _ = both
    fitted.save(tmp_path / "run")
    new, truth = x_of(1), y_of(1).with_ids(f"i{k}" for k in range(N))
    write_numbers(tmp_path / "x.csv", truth.ids, [f"f{j}" for j in range(5)], [new])
    write_labels(truth, tmp_path / "y.csv")
    for name, calls in (("p.csv", False), ("calls.csv", True)):
        predict_items(tmp_path / "run", str(tmp_path / "x.csv"), tmp_path / name, calls=calls)
    np.testing.assert_allclose(read_scores(tmp_path / "p.csv").values, fitted.predict_proba(new), atol=1e-5)
    assert (read_scores(tmp_path / "calls.csv").values == fitted.predict(new)).mean() > 0.999
    found = evaluate_files([tmp_path / "p.csv", tmp_path / "y.csv"], run=tmp_path / "run").models[0].values
    assert found["OF1"] == pytest.approx(metrics.evaluate(fitted.predict_proba(new), truth, fitted.thresholds_)["OF1"])


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_an_exported_file_has_it(method: str, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    fitted = model(calibrate=method, thresholds="f1").fit(x_of(), y_of())
    export.to_onnx(fitted, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    p = session.run(["probabilities"], {"features": x_of(1)})[0]
    np.testing.assert_allclose(p, fitted.predict_proba(x_of(1)), atol=1e-4)
    about = session.get_modelmeta().custom_metadata_map
    np.testing.assert_allclose(json.loads(about["thresholds"]), fitted.thresholds_, atol=1e-6)


def test_from_items_that_the_model_has_not_seen() -> None:
    plain = model().fit(x_of(), y_of())
    made = partly.calibrate(plain, x_of(1), y_of(1), method="platt", thresholds="f1")
    assert made.calibration_ == fit_calibration(plain.decision_function(x_of(1)), y_of(1), "platt", "f1")
    assert plain.calibration_ is None
    assert plain.thresholds_.tolist() == [0.5] * 3
    twice = partly.calibrate(made, x_of(1), y_of(1), method="platt", thresholds="f1")
    assert twice.calibration_ == made.calibration_
    with pytest.raises(SettingError, match="give a method"):
        partly.calibrate(plain, x_of(1), y_of(1))


@pytest.mark.parametrize(
    "wrong", [{"calibrate": "plat"}, {"thresholds": "precision"}, {"thresholds": "f1", "folds": 1}]
)
def test_what_cannot_be_is_refused_before_anything_is_trained(wrong: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(SettingError):
        model(run_dir=tmp_path / "run", **wrong).fit(x_of(), y_of())
    assert not (tmp_path / "run").exists()
