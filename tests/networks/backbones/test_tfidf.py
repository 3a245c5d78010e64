"""TF-IDF in its main directions: against scikit-learn by hand, saved without pickle, refused where it is damaged."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.feature_extraction.text import TfidfVectorizer

from partly import Classifier
from partly.data import read
from partly.engine import make_features
from partly.errors import CheckpointError, DataError
from partly.items import PrecomputedFeatures, texts
from partly.networks import backbones
from partly.networks.backbones import tfidf
from partly.networks.lazy_features import lazy_features

THINGS = ("red cat", "blue car", "old dog")
SAID = [f"{THINGS[i % 3]} {'xyzw'[i % 4]} number {i}" for i in range(24)]
ABOUT = np.array([[name in text for name in ("cat", "car")] for text in SAID]).astype(int)


def by_hand(train: list[str], said: list[str]) -> np.ndarray:
    """TF-IDF [N, V] of words and pairs, by scikit-learn alone."""
    vectorizer = TfidfVectorizer(token_pattern=r"\b\w+\b", ngram_range=(1, 2), sublinear_tf=True, min_df=2)
    vectorizer.fit(train)
    return vectorizer.transform(said).toarray()


def made(width: int = 512, said: list[str] = SAID) -> tfidf.TfIdf:
    backbone = backbones.find("tfidf").make((1,), width=width)
    backbone.fit(texts(said))
    return backbone


def features(backbone: torch.nn.Module, said: list[str]) -> np.ndarray:
    with torch.inference_mode():
        return backbone(texts(said).take(slice(None))).double().numpy()


def test_all_directions_keep_all_products() -> None:
    """As many directions as texts: features are TF-IDF in other axes, so that products of training texts stay."""
    expected = by_hand(SAID, SAID)
    expected = expected @ expected.T  # of length 1 already
    found = features(made(), SAID)
    np.testing.assert_allclose(found @ found.T, expected, atol=5e-3)  # directions are float16


@pytest.mark.parametrize("exact", [True, False])
def test_few_directions_are_those_of_the_largest_singular_values(exact: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tfidf, "EXACT_TEXTS", 1000 if exact else 1)
    x = by_hand(SAID, SAID)
    left, values, _ = np.linalg.svd(x)
    expected = left[:, :3] * values[:3]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    found = features(made(3), SAID)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=5e-3)  # in axes that may be turned


def test_unknown_words_and_few_texts_are_no_reason_to_fail() -> None:
    backbone = made(said=["one two", "three four"])  # no word is in both
    assert backbone.width == 2
    assert features(backbone, ["something else"]).tolist() == [[0.0, 0.0]]
    with pytest.raises(DataError, match="not a single word"):
        made(said=["...", "!?"])


def test_words_are_those_of_the_training_texts(tmp_path: Path) -> None:
    """Of validation texts too: a model is never fitted to others."""
    how = {"head": "linear", "backbone": "tfidf", "progress": False}
    model = Classifier("bce", run_dir=tmp_path / "run", **how)
    model.fit(SAID[:18], ABOUT[:18], validation=(SAID[18:], ABOUT[18:]))
    origin = model.fitted_.method.task.items.origin
    assert origin is not None
    words = bytes(origin.fitted["words"].numpy()).decode().split("\n")
    assert {"cat", "red cat"} <= set(words)
    assert not {"18", "number 18"} & set(words)
    assert origin.shares_scale
    expected = model.predict_proba(SAID[18:])
    loaded = Classifier.load(tmp_path / "run")
    np.testing.assert_array_equal(loaded.predict_proba(SAID[18:]), expected)
    loaded.save(tmp_path / "again")
    np.testing.assert_array_equal(Classifier.load(tmp_path / "again").predict_proba(SAID[18:]), expected)


def test_a_folder_of_features_carries_its_words(tmp_path: Path) -> None:
    ids = [str(i) for i in range(len(SAID))]
    make_features(texts(SAID), ids, tmp_path / "features", "tfidf")
    items = read(tmp_path / "features").items
    assert isinstance(items, PrecomputedFeatures)
    model = Classifier("bce", head="linear", progress=False).fit(items, ABOUT)
    np.testing.assert_allclose(model.predict_proba(SAID), model.predict_proba(items), atol=1e-6)
    file = tmp_path / "features" / "fitted.safetensors"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(DataError, match=r"fitted.safetensors: missing or damaged"):
        read(tmp_path / "features")


def test_one_scale_for_all_directions() -> None:
    """The first directions say more than the last ones: they are not blown up to the same size."""
    items = lazy_features(texts(SAID), "tfidf", {})
    from partly.engine.feature_cache import load_or_compute

    found = load_or_compute(items).statistics
    each = items.take(slice(None)).double().std(dim=0, correction=0)
    assert torch.allclose(found.scale, each, rtol=1e-4)
    assert torch.allclose(found.keeping_size.scale, each.square().mean().sqrt().expand(len(each)), rtol=1e-4)
    assert each.max() > 2 * each.min()


def test_what_does_not_fit_together_is_refused() -> None:
    backbone = made()
    with pytest.raises(CheckpointError, match="do not fit together"):
        backbone.load_fitted_state(backbone.fitted_state() | {"idf": torch.zeros(3)})
    wrong = dict(backbone.fitted_state())
    wrong["words"] = wrong["words"][:-30]
    backbone.load_fitted_state(wrong)
    with pytest.raises(CheckpointError, match=r"words for \d+ weights"):
        features(backbone, ["a"])
