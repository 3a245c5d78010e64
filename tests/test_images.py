"""Learning from pictures in files and from texts, end to end: sizes, augmentation, going on after a stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import partly
from images.making import encoded, folder_of, noise
from partly import Classifier, Labels, engine
from partly.data import Dataset, read
from partly.engine import build_method, feature_cache, make_config
from partly.errors import DataError, SettingError
from partly.images.augmentation import NO_AUGMENTATION, Augmentation
from partly.items import ImageFiles, features, texts
from partly.networks import backbones
from plans import fit_config

COUNT = 24
RECIPE = make_config("bce", "linear", epochs=2, batch_size=10, lr=0.01, backbone="small-conv", augment={"crop": 0.5})


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("pictures")
    folder_of(folder, {f"{i:02d}.png": encoded(noise(30 + i, 40 - i // 2, i)) for i in range(COUNT)})
    z = np.random.default_rng(0).integers(-1, 2, (COUNT, 3)).astype(np.int8)
    items = read(folder, size=16).items
    return Dataset(items, Labels.from_ternary(z, ids=[f"{i:02d}.png" for i in range(COUNT)]))


def weights(fitted: engine.FittedModel) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in fitted.method.state_dict().items()}


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def test_the_number_of_processes_changes_nothing(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for workers in ("0", "1", "3"):
        monkeypatch.setenv("PARTLY_WORKERS", workers)
        found.append(weights(fit_config(RECIPE, data.items, data.labels)))
    assert same(found[0], found[1])
    assert same(found[0], found[2])
    plain = fit_config(make_config(**{**vars(RECIPE), "augment": None}), data.items, data.labels)
    assert not same(found[0], weights(plain))


class Broken(Exception):
    pass


@pytest.mark.parametrize("steps", [1, 2, 4, 5])
def test_a_run_that_goes_on_is_the_unbroken_one(data: Dataset, tmp_path: Path, steps: int) -> None:
    left = iter(range(steps))

    def watch(clock: Any, logs: Any) -> None:
        if next(left, None) is None:
            raise Broken

    how: dict[str, Any] = {"folder": tmp_path / "run", "save_seconds": 0}
    with pytest.raises(Broken):
        fit_config(RECIPE, data.items, data.labels, callback=watch, **how)
    resumed = fit_config(RECIPE, data.items, data.labels, **how)
    whole = fit_config(RECIPE, data.items, data.labels)
    assert same(weights(resumed), weights(whole))


def test_the_best_epoch_is_chosen_without_augmentation(data: Dataset) -> None:
    part = (data.items[:8], data.labels[:8])
    how: dict[str, Any] = {"epochs": 1, "progress": False, "backbone": "small-conv"}
    model = Classifier("bce", "linear", **how).fit(data.items[8:], data.labels[8:], validation=part)
    assert "validation_mAP" in model.history_[0]
    first, second = (model.predict_proba(data.items[:8]) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_pictures_are_augmented_unless_somebody_says_no(data: Dataset) -> None:
    for asked, expected in (
        (None, vars(Augmentation())),
        (True, vars(Augmentation())),
        (False, vars(NO_AUGMENTATION)),
        ({"flip": 0.0}, vars(Augmentation(flip=0.0))),
    ):
        plan = Classifier("bce", backbone="small-conv", augment=asked).resolve(data.items, data.labels)
        x, recipe = plan.items, plan.config
        assert recipe.augment == expected
        assert isinstance(x, ImageFiles)
        assert x.augmentation == Augmentation(**expected)
    recipe = Classifier("bce").resolve(np.eye(COUNT), data.labels).config
    assert recipe.augment is None
    with pytest.raises(SettingError, match="only images in files can be augmented"):
        Classifier("bce", augment=True).resolve(np.eye(COUNT), data.labels)
    for wrong in ({"flop": 1.0}, {"crop": 0.0}, "yes"):
        with pytest.raises(SettingError, match=r"augment|crop"):
            Classifier("bce", augment=wrong).resolve(data.items, data.labels)


def test_a_saved_model_takes_pictures_of_any_size(data: Dataset, tmp_path: Path) -> None:
    model = Classifier("bce", "linear", epochs=1, progress=False, backbone="small-conv").fit(data.items, data.labels)
    model.save(tmp_path / "model")
    loaded = Classifier.load(tmp_path / "model")
    other = ImageFiles(data.items.source)  # type: ignore[attr-defined]
    assert other.shape == (3, 128, 128)
    np.testing.assert_array_equal(loaded.predict_proba(other), model.predict_proba(data.items))
    np.testing.assert_array_equal(loaded.fitted_.predict(other), model.predict_proba(data.items))
    array = data.items.take(slice(None)).permute(0, 2, 3, 1).numpy()
    np.testing.assert_array_equal(loaded.predict_proba(array), model.predict_proba(data.items))
    with pytest.raises(DataError, match="trained on pictures"):
        loaded.predict_proba(features(np.eye(3)))


class Wanting(torch.nn.Module):
    """A backbone that says at which size it looks at pictures."""

    size, width, normalizes = 24, 3, True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[1:] == (3, 24, 24)
        return x.mean(dim=(2, 3))


def test_pictures_come_at_the_size_that_a_backbone_wants(data: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    found = backbones.find("small-conv")
    monkeypatch.setattr(backbones, "find", lambda name: _with(found, lambda shape, **_: Wanting()))
    other = ImageFiles(data.items.source)  # type: ignore[attr-defined]
    model = Classifier("bce", "linear", epochs=1, progress=False, backbone="small-conv").fit(other, data.labels)
    assert model.fitted_.method.task.items.shape == (3, 24, 24)
    assert model.predict_proba(other).shape == (COUNT, 3)
    expected = other.resize(24).take(slice(None)).float().mean(dim=(2, 3))
    np.testing.assert_allclose(model.fitted_.method.network.features[:2](other.resize(24).take(slice(None))), expected)


def _with(info: Any, make: Any) -> Any:
    changed = object.__new__(type(info))
    changed.__dict__.update(vars(info) | {"make": make})
    return changed


def test_every_query_asks_about_pictures(data: Dataset) -> None:
    model = Classifier("bce", "linear", epochs=1, progress=False).fit(data.items, data.labels)
    seen = model.fitted_.prepare_items(ImageFiles(data.items.source))  # type: ignore[attr-defined]
    other = feature_cache.load_or_compute(seen)
    for query in partly.queries():
        from partly.active.selection import select_questions
        from partly.clock import Clock

        questions = select_questions(query, model.fitted_.method, other, data.labels, 5, Clock(0))
        entries = set(zip(questions.rows.tolist(), questions.columns.tolist(), strict=True))
        assert len(entries) == 5, query
        assert not [entry for entry in entries if data.labels.ternary()[entry]], f"{query} asks about known entries"


def test_texts_are_learned_from() -> None:
    rng = np.random.default_rng(0)
    about = rng.random((200, 2)) < 0.5
    words = [["red", "blue"], ["cat", "dog"]]
    said = [f"A {words[0][int(a)]} {words[1][int(b)]}, no. {i}." for i, (a, b) in enumerate(about)]
    model = Classifier("bce", "linear", epochs=10, lr=0.05, progress=False).fit(texts(said), about.astype(float))
    assert model.score(texts(["a red cat", "the blue dog", "red dog"]), np.array([[0, 0], [1, 1], [0, 1.0]])) == 1.0
    for name in ("leml", "per-label", "auto"):
        with pytest.raises(SettingError, match="not from texts"):
            build_method(make_config(name, "mlp"), texts(said), 2)
