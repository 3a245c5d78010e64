"""One pipeline: on the way from a command to a model, every derived fact is computed once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from partly import networks
from partly.cli.main import app
from partly.engine import ResolvedConfig, TrainConfig, feature_cache, make_config, pipeline, resolve
from partly.errors import LabelError, SettingError
from partly.items import as_items
from partly.labels import Hierarchy, Labels

STEPS = ("precompute", "hierarchy", "resize", "memory")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4)).astype(np.float32)
Y = Labels.from_nan(np.where(RNG.random((40, 3)) < 0.6, X[:, :3] > 0, np.nan))


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each expensive step is done."""
    count: Counter[str] = Counter()
    places = [
        (feature_cache, "load_or_compute", "precompute"),
        (Hierarchy, "deduce", "hierarchy"),
        (networks, "resize_to_backbone", "resize"),
        (pipeline, "estimate_memory", "memory"),
    ]
    for place, name, step in places:
        original = getattr(place, name)

        def counted(*args: Any, _original: Any = original, _step: str = step, **named: Any) -> Any:
            count[_step] += 1
            return _original(*args, **named)

        monkeypatch.setattr(place, name, counted)
    return count


def train(folder: Path, data: str, *words: str) -> None:
    labels = ["--labels", str(folder / "labels.csv"), "--run", str(folder / "run"), "--seed", "1"]
    result = CliRunner().invoke(app, ["train", str(folder / data), *labels, *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def write_table(folder: Path) -> None:
    rows = [f"i{k}," + ",".join(f"{value:.4f}" for value in row) for k, row in enumerate(X)]
    (folder / "items.csv").write_text("item,f,g,h,i\n" + "\n".join(rows) + "\n")
    known = ["" if value != value else str(int(value)) for value in Y.to_nan()[:, 0]]
    labels = [f"i{k},{value},{'1' if value == '1' else ''}" for k, value in enumerate(known)]
    (folder / "labels.csv").write_text("item,cat,animal\n" + "\n".join(labels) + "\n")
    (folder / "parents.csv").write_text("child,parent\ncat,animal\n")


def write_images(folder: Path) -> None:
    (folder / "images").mkdir()
    for k in range(24):
        pixels = RNG.integers(0, 255, (20, 20, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / "images" / f"{k}.png")
    (folder / "labels.csv").write_text("item,a,b\n" + "".join(f"{k}.png,{k % 2},{k // 2 % 2}\n" for k in range(24)))


@pytest.mark.parametrize(("words", "memory"), [(["--no-refit"], 1), (["--hold-out", "0"], 1), ([], 2)])
def test_training_on_features_computes_each_fact_once(
    tmp_path: Path, calls: Counter[str], words: list[str], memory: int
) -> None:
    """A refit is a second plan, on other items."""
    write_table(tmp_path)
    options = ["--method", "em", "--epochs", "2", "--hierarchy", str(tmp_path / "parents.csv")]
    train(tmp_path, "items.csv", *options, *words)
    assert [calls[step] for step in STEPS] == [0, 1, memory, memory]


@pytest.mark.parametrize("frozen", [True, False])
def test_training_on_images_computes_each_fact_once(tmp_path: Path, calls: Counter[str], frozen: bool) -> None:
    write_images(tmp_path)
    options = ["--method", "bce", "--head", "mlp", "--epochs", "1", "--backbone", "small-conv", "--no-refit"]
    train(tmp_path, "images", *options, *(["--freeze", "--no-augment"] if frozen else []))
    assert [calls[step] for step in STEPS] == [int(frozen), 0, 1, 1]


def test_a_plan_leaves_nothing_open() -> None:
    config = TrainConfig("em", folds=3, device="cpu")
    plan = resolve(config, (as_items(X), Y), (as_items(X[:9]), Y[:9]))
    assert isinstance(plan.config, ResolvedConfig)
    assert None not in (plan.config.epochs, plan.config.batch_size, plan.config.lr, plan.config.optimizer)
    assert plan.config.settings.keys() == make_config("em").settings.keys()
    assert (plan.config.folds, plan.config.device) == (3, "cpu")
    assert plan.validation is not None
    assert plan.memory.total() > 0
    assert plan.reason == "as requested"


def test_a_resolved_configuration_is_kept() -> None:
    config = make_config("bce", "linear", epochs=7, lr=0.25)
    plan = resolve(config, (as_items(X), Y), reason="as before")
    assert (plan.config, plan.reason) == (config, "as before")


def test_the_hierarchy_is_applied_to_training_and_validation() -> None:
    labels = Labels.from_entries(["a", "b"], ["cat", "cat"], [1, 1], names=["cat", "animal"])
    config = TrainConfig("bce", hierarchy={"cat": "animal"})
    plan = resolve(config, (as_items(X[:2]), labels), (as_items(X[:2]), labels))
    assert plan.validation is not None
    for part in (plan.labels, plan.validation.labels):
        assert (part.rows(slice(None)) == 1).all()


def test_nothing_known_is_refused() -> None:
    with pytest.raises(LabelError, match="none is known"):
        resolve(TrainConfig("bce"), (as_items(X), Labels.from_nan(np.full((40, 3), np.nan))))
    with pytest.raises(SettingError, match="folds = 1 "):
        resolve(TrainConfig("bce", folds=1), (as_items(X), Y))
