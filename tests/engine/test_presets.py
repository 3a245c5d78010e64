"""How the papers trained: every number against the page where it is printed, and what wins over what."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from partly import Classifier, methods, networks
from partly.config import ResolvedConfig, TrainConfig
from partly.engine import presets, resolve_config
from partly.errors import SettingError
from partly.items import as_items
from partly.optim.optimizers import OPTIMIZERS

ROWS = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
PICTURES = np.random.default_rng(0).integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
Y = np.where(np.random.default_rng(1).random((40, 3)) < 0.5, 1.0, np.nan)

# Typed in again from the papers, apart from the files.
PRINTED: dict[str, dict[str, Any]] = {
    # Supplement A.2: SGD, 20 epochs, batches of 16, 0.01 divided by 10 after 10 epochs, 448 x 448, only the flip.
    "durand2019": {"optimizer": "sgd", "lr": 0.01, "epochs": 20, "batch_size": 16, "size": 448, "method": "curriculum"},
    # The authors' code for VOC: Adam at 1e-5 without decay, 10 epochs, batches of 8, 448 x 448, a linear layer.
    "zhou2022": {"optimizer": "adam", "lr": 1e-5, "epochs": 10, "batch_size": 8, "size": 448, "head": "linear"},
    # Implementation details: Adam, decay 1e-4, batches of 120, 100 epochs, 4e-5, cosine to 0, 224 x 224.
    "lyu2025": {"optimizer": "adam", "lr": 4e-5, "epochs": 100, "batch_size": 120, "size": 224, "method": "cls"},
    # Section 4.3, CUB: RMSProp at 0.01, times 0.8 whenever validation degrades, 3 epochs, batches of 32.
    "huynh2020": {"optimizer": "rmsprop", "lr": 0.01, "epochs": 3, "batch_size": 32, "method": "imcl"},
    # Section 4.1: two hidden layers of 512; nothing is said of how they are trained.
    "hsieh2021": {"method": "refine", "head": "mlp"},
}


def prepared(recipe: str, x: np.ndarray = ROWS, **asked: Any) -> tuple[ResolvedConfig, str]:
    model = Classifier(recipe=recipe, **asked)
    plan = model.resolve(x, Y[: len(x)])
    return plan.config, plan.reason


@pytest.mark.parametrize("name", PRINTED)
def test_a_preset_is_what_the_paper_prints(name: str) -> None:
    assert set(presets.discover()) == set(PRINTED)
    said = presets.find(name).values
    flat = {**said, **said.get("backbone_settings", {})}
    assert {key: flat[key] for key in PRINTED[name]} == PRINTED[name]
    assert ("size" in flat) == ("size" in PRINTED[name])
    assert ("lr" in flat) == ("lr" in PRINTED[name])


def test_schedules_are_what_the_papers_print() -> None:
    def schedule(name: str) -> tuple[Any, Any]:
        said = presets.find(name).values
        return said.get("schedule"), said.get("schedule_settings")

    assert schedule("durand2019") == ("step", {"gamma": 0.1, "at": [10]})
    assert schedule("zhou2022") == ("constant", None)
    assert schedule("lyu2025") == ("cosine", {"warmup": 0.0})
    assert schedule("huynh2020") == ("plateau", {"gamma": 0.8, "patience": 0})
    assert schedule("hsieh2021") == (None, None)
    assert presets.find("zhou2022").values["method"] == "em-apl"
    decays = {name: preset.values.get("weight_decay") for name, preset in presets.discover().items()}
    assert {name: decay for name, decay in decays.items() if decay is not None} == {"zhou2022": 0.0, "lyu2025": 1e-4}
    said = presets.find("durand2019").values
    assert (said["head"], said["head_settings"]) == ("weldon", {"k_max": 0.1, "k_min": 0.1})


@pytest.mark.parametrize("name", PRINTED)
def test_every_value_has_its_source_and_its_field(name: str) -> None:
    preset = presets.find(name)
    assert set(preset.values) <= {one.name for one in fields(TrainConfig)}
    flat = {
        key
        for outer, value in preset.values.items()
        for key in ([f"{outer}.{inner}" for inner in value] if isinstance(value, dict) else [outer])
    }
    assert flat == set(preset.sources)
    assert all(preset.sources.values())
    assert preset.paper.rstrip(".")[-4:] == name[-4:]
    assert preset.values["method"] in methods.discover()
    assert preset.values.get("optimizer", "adamw") in OPTIMIZERS


def test_what_is_left_open_is_the_papers_and_the_rest_as_always() -> None:
    recipe, reason = prepared("lyu2025")
    assert (recipe.method, recipe.optimizer, recipe.lr, recipe.weight_decay) == ("cls", "adam", 4e-5, 1e-4)
    assert (recipe.epochs, recipe.batch_size, recipe.schedule) == (100, 120, "cosine")
    assert (recipe.schedule_settings, recipe.recipe) == ({"warmup": 0.0}, "lyu2025")
    assert recipe.backbone_settings == {}  # features have none
    assert reason == "recipe lyu2025, as requested"
    recipe, reason = prepared("durand2019")
    assert recipe.weight_decay == 1e-4  # ours, for SGD
    assert reason.startswith("recipe durand2019, which does not say: weight_decay")
    recipe, reason = prepared("hsieh2021")
    assert (recipe.method, recipe.head, recipe.optimizer) == ("refine", "mlp", "adamw")
    assert "does not say: optimizer, lr, weight_decay, epochs, batch_size, schedule" in reason


def test_what_is_asked_for_wins() -> None:
    recipe, _ = prepared("durand2019", method="bce", optimizer="adamw", lr=0.5, epochs=3, schedule="cosine")
    assert (recipe.method, recipe.optimizer, recipe.lr, recipe.epochs) == ("bce", "adamw", 0.5, 3)
    assert (recipe.schedule, recipe.schedule_settings) == ("cosine", {"warmup": 0.05})
    assert recipe.batch_size == 16  # the paper's still
    recipe, _ = prepared("durand2019", schedule_settings={"at": [2]})
    assert recipe.schedule_settings == {"gamma": 0.1, "at": [2], "every": None}
    recipe, _ = prepared("hsieh2021", head="linear")
    assert (recipe.method, recipe.head) == ("refine", "linear")


def test_pictures_are_shown_as_the_paper_says() -> None:
    recipe, _ = prepared("durand2019", PICTURES)
    assert (recipe.backbone, recipe.backbone_settings["size"], recipe.head) == ("small-conv", 448, "weldon")
    assert recipe.augment is None  # of pictures in memory nothing can be
    recipe, _ = prepared("durand2019", PICTURES, backbone_settings={"size": 16})
    assert (recipe.backbone_settings["size"], recipe.head_settings) == (16, {"k_max": 0.1, "k_min": 0.1})


def test_the_map_of_each_label_is_pooled_as_in_the_paper() -> None:
    """A linear map of pooled features is another network."""
    recipe, _ = prepared("durand2019", PICTURES, backbone_settings={"size": 64})
    given = (recipe.head, recipe.head_settings, recipe.backbone, recipe.backbone_settings)
    network = networks.build(as_items(PICTURES), 3, *given).eval()
    features = network.features(torch.rand(2, 3, 64, 64))
    maps = network.head.maps(features)
    assert maps.shape[:2] == (2, 3)
    assert maps.shape[2] > 1
    torch.testing.assert_close(network.head(features), networks.weldon(maps, 0.1, 0.1))


def test_what_is_no_recipe_is_refused() -> None:
    with pytest.raises(SettingError, match=r"There is no recipe 'zhou2023'\. Did you mean 'zhou2022'\?"):
        prepared("zhou2023")


@pytest.mark.filterwarnings("ignore::partly.errors.LearnedNothingWarning")
def test_a_model_that_was_trained_by_a_recipe_is_saved_and_loaded(tmp_path: Any) -> None:
    model = Classifier(recipe="zhou2022", lr=0.01, epochs=2, progress=False).fit(ROWS, Y)
    model.save(tmp_path / "model")
    again = Classifier.load(tmp_path / "model")
    assert (again.recipe, again.optimizer, again.lr) == ("zhou2022", "adam", 0.01)
    assert (again.predict_proba(ROWS) == model.predict_proba(ROWS)).all()
    plan = model.resolve(ROWS, Y)
    config = resolve_config(TrainConfig.from_params(again.get_params()), plan.items, plan.labels)[0]
    assert config.to_json() == model.fitted_.config.to_json()
