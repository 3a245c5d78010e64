"""A model that begins where another ended, though the labels have changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from partly import Classifier, Labels, Ledger
from partly.data.formats import ledger_db
from partly.engine import match_labels
from partly.errors import SettingError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5)).astype(np.float32)
OLD = ("Animal", "stone", "sand")
NEW = ("Animal", "Rock", "Cat", "new")  # stone and sand were merged, Cat is a part of Animal


def labels(names: tuple[str, ...]) -> Labels:
    return Labels.from_full((X[:, : len(names)] > 0).astype(int), names=names)


def model(folder: Path | None = None, **how: Any) -> Classifier:
    settings = {"method": "bce", "head": "linear", "head_settings": {"solve": False}, "epochs": 2, "progress": False}
    return Classifier(**{**settings, "device": "cpu", "run_dir": folder, **how})


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "before"
    model(folder).fit(X, labels(OLD))
    return folder


def head(fitted: Classifier) -> torch.Tensor:
    return fitted.fitted_.method.get_parameter("network.head.weight").detach()


def test_labels_that_stay_keep_their_weights_and_new_ones_start_warm(before: Path) -> None:
    """With a learning rate of almost nothing the model is what it starts from."""
    old = head(Classifier.load(before))
    heirs = {"Rock": ["stone", "sand"]}
    still = {"lr": 1e-12, "weight_decay": 0.0, "hierarchy": {"Cat": "Animal"}}
    known = labels(NEW).with_entries(list(range(40)), [2] * 40, [0] * 40)
    found = head(model(**still).fit(X, known, start_from=before, label_sources=heirs))
    torch.testing.assert_close(found[0], old[0])
    torch.testing.assert_close(found[1], (old[1] + old[2]) / 2)
    torch.testing.assert_close(found[2], old[0])
    fresh = head(model(**still).fit(X, known))
    torch.testing.assert_close(found[3], fresh[3])
    assert not torch.allclose(found[0], fresh[0])


def test_solved_starts_are_carried_over_too(tmp_path: Path) -> None:
    solved = {"method": "em", "head_settings": {}}
    old = model(tmp_path / "run", **solved).fit(X, labels(OLD))
    new = model(**solved, lr=1e-12, weight_decay=0.0).fit(X, labels(NEW), start_from=tmp_path / "run")
    fresh = model(**solved).fit(X, labels(NEW))
    first, second, third = (one.fitted_.method.get_parameter("network.head.start.weight") for one in (old, new, fresh))
    torch.testing.assert_close(second[0], first[0])
    torch.testing.assert_close(second[1:], third[1:])


def test_kernel_features_of_other_items_are_refused(tmp_path: Path) -> None:
    """Scores of a start on kernel features mean nothing with the landmarks of other items."""
    kernel = {"method": "em", "head": "auto", "head_settings": {}, "epochs": 1}
    model(tmp_path / "run", **kernel).fit(X, labels(OLD))
    same = model(**kernel, lr=1e-12).fit(X, labels(OLD), start_from=tmp_path / "run")
    old = Classifier.load(tmp_path / "run")
    np.testing.assert_allclose(same.decision_function(X), old.decision_function(X), atol=1e-5)
    for items in (X[:30], X[::-1].copy() + 1):
        with pytest.raises(SettingError, match="starts at a baseline that is solved on kernel features"):
            model(**kernel).fit(items, labels(OLD)[: len(items)], start_from=tmp_path / "run")


def test_who_starts_from_whom() -> None:
    assert match_labels(NEW, OLD) == [(0,), (), (), ()]
    assert match_labels(NEW, OLD, {"Rock": ["stone", "sand", "gone"], "Cat": []}) == [(0,), (1, 2), (), ()]


def test_a_ledger_knows_who_became_what(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path / "labels.db", names=OLD)
    ledger.split("Animal", ["Cat"])
    ledger.merge(["stone", "sand"], "Rock")
    ledger.rename("Animal", "Beast")
    assert ledger_db.label_sources(tmp_path / "labels.db", OLD) == {
        "Beast": ["Animal"],
        "Cat": ["Animal"],
        "Rock": ["stone", "sand"],
    }


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"head_settings": {}}, "these differ\n  head_settings"),
        ({"head": "mlp"}, "these differ\n  head:"),
        ({"method": "assume-negative"}, "method: 'bce' there, 'assume-negative' now"),
    ],
)
def test_another_kind_of_model_is_refused(before: Path, how: dict[str, Any], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        model(**how).fit(X, labels(NEW), start_from=before)


def test_what_is_solved_starts_nowhere(tmp_path: Path) -> None:
    solved = {"head_settings": {}, "epochs": None}
    model(tmp_path / "run", **solved).fit(X, labels(OLD))
    with pytest.raises(SettingError, match="is solved, and where it starts makes no difference"):
        model(**solved).fit(X, labels(NEW), start_from=tmp_path / "run")


def test_labels_that_share_weights_are_refused(tmp_path: Path) -> None:
    shared = {"head": "gnn", "head_settings": {}, "epochs": 1}
    model(tmp_path / "run", **shared).fit(X, labels(OLD))
    with pytest.raises(SettingError, match="share weights"):
        model(**shared).fit(X, labels(NEW), start_from=tmp_path / "run")
