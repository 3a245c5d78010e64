"""Models of Hugging Face, each made tiny and saved by the test itself: there is no network here."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from partly import Classifier, items
from partly.errors import SettingError
from partly.networks import backbones
from partly.networks.backbones import text_model

transformers = pytest.importorskip("transformers")
WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog", "sits", "##s"]


def says(folder: Path, **more: Any) -> None:
    said = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.25, 0.5], "size": {"height": 16, "width": 16}, **more}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))


@pytest.fixture
def vit(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    sizes = {"hidden_size": 12, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 20}
    transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=16, patch_size=4)).save_pretrained(tmp_path)
    says(tmp_path)
    return tmp_path


@pytest.fixture
def resnet(tmp_path: Path) -> Path:
    config = transformers.ResNetConfig(embedding_size=4, hidden_sizes=[4, 8], depths=[1, 1], layer_type="basic")
    transformers.ResNetModel(config).save_pretrained(tmp_path)
    says(tmp_path, size={"shortest_edge": 40}, crop_size={"height": 32, "width": 32})
    return tmp_path


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    sizes = {"hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 20}
    config = transformers.BertConfig(vocab_size=len(WORDS), max_position_embeddings=16, **sizes)
    transformers.BertModel(config).save_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    transformers.BertTokenizer(str(tmp_path / "vocab.txt")).save_pretrained(tmp_path)
    return tmp_path


def test_a_transformer_by_its_own_output(vit: Path) -> None:
    made = backbones.find(f"hf:{vit}").make((3, 16, 16)).eval()
    assert (made.size, made.width, made.makes) == (16, 12, "map")
    x = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)
    mean, std = (torch.tensor(v).view(3, 1, 1) for v in ([0.5, 0.4, 0.3], [0.2, 0.25, 0.5]))
    model = transformers.ViTModel.from_pretrained(vit).eval()
    tokens = model(pixel_values=(x / 255 - mean) / std).last_hidden_state  # the class, then 4 x 4 places
    torch.testing.assert_close(made(x), tokens[:, 1:].mean(dim=1), rtol=1e-4, atol=1e-5)
    maps = made.maps(made.preprocess(x))
    for i, j in np.ndindex(4, 4):
        torch.testing.assert_close(maps[:, :, i, j], tokens[:, 1 + 4 * i + j], rtol=1e-4, atol=1e-5)
    assert made(torch.zeros(1, 3, 40, 24, dtype=torch.uint8)).shape == (1, 12)  # brought to its size


def test_stages_are_the_layers(vit: Path) -> None:
    made = backbones.find(f"hf:{vit}").make((3, 16, 16), freeze=1)
    assert len(made.stages()) == 4
    free = {name for name, p in made.named_parameters() if p.requires_grad}
    assert free == {n for n, _ in made.named_parameters() if "layer.2." in n or "layers.2." in n or _after(n)}
    assert len(free) > 4
    inside = [id(p) for stage in made.stages() for p in stage.parameters()]
    assert sorted(inside) == sorted(id(p) for p in made.parameters())


def _after(name: str) -> bool:
    return name.startswith(("model.layernorm", "model.pooler"))


def test_a_convolutional_one(resnet: Path) -> None:
    made = backbones.find(f"hf:{resnet}").make((3, 48, 48), pooling="gmp").eval()
    assert (made.size, made.width) == (32, 8)
    x = torch.randint(0, 256, (2, 3, 32, 32), dtype=torch.uint8)
    maps = made.maps(made.preprocess(x))
    assert maps.ndim == 4
    torch.testing.assert_close(made(x), maps.amax(dim=(2, 3)))


def test_pixels_that_nobody_says_how_to_normalise(vit: Path) -> None:
    (vit / "preprocessor_config.json").write_text("{}")
    with pytest.raises(SettingError, match=r"does not say how pixels are normalized\. Give the settings mean and std"):
        backbones.find(f"hf:{vit}").make((3, 16, 16))
    made = backbones.find(f"hf:{vit}").make((3, 16, 16), mean=(0.5,) * 3, std=(0.25,) * 3)
    torch.testing.assert_close(made.preprocess(torch.full((1, 3, 16, 16), 255)), torch.full((1, 3, 16, 16), 2.0))
    says(vit, do_normalize=False)
    plain = backbones.find(f"hf:{vit}").make((3, 16, 16))
    torch.testing.assert_close(plain.preprocess(torch.full((1, 3, 16, 16), 255)), torch.ones(1, 3, 16, 16))


def test_texts_are_the_mean_of_their_tokens(bert: Path) -> None:
    made = backbones.find(f"hf:{bert}").make((8,)).eval()
    texts = ["a cat sits", "dogs", ""]
    tokens = made.tokens(texts)
    assert tokens.tolist() == [[2, 5, 6, 8, 3], [2, 7, 9, 3, 0], [2, 3, 0, 0, 0]]
    model = transformers.BertModel.from_pretrained(bert).eval()
    for row, numbers in zip(made.maps(tokens), ([2, 5, 6, 8, 3], [2, 7, 9, 3], [2, 3]), strict=True):
        alone = model(input_ids=torch.tensor([numbers])).last_hidden_state[0]
        torch.testing.assert_close(row, alone.mean(dim=0), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(made.embed(texts), made.maps(tokens).detach())
    torch.testing.assert_close(made(items.texts(texts[:2]).take(slice(None))), made.maps(tokens)[:2])
    assert torch.isfinite(made.maps(torch.zeros(1, 4, dtype=torch.int64))).all()  # nothing but padding
    assert made.embed([]).shape == (0, 12)
    assert len(made.stages()) == 3
    with pytest.raises(SettingError, match="a list of texts"):
        made.tokens("a cat")
    with pytest.raises(SettingError, match="nothing to pool"):
        backbones.find(f"hf:{bert}").make((8,), pooling="gmp")
    with pytest.raises(SettingError, match=r"length = 17: should be from 1 to 16"):
        backbones.find(f"hf:{bert}").make((8,), length=17)


def test_what_does_not_fit_the_items_is_refused(vit: Path) -> None:
    with pytest.raises(SettingError, match="takes no texts"):
        backbones.find(f"hf:{vit}").make((8,))


def test_texts_of_a_length_go_together_and_come_back_in_their_order(
    bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = backbones.find(f"hf:{bert}").make((64,)).eval()
    texts = ["a cat sits", "dogs", "a cat sits a cat", "", "cat", "a cat"]
    alone = torch.cat([made.embed([text]) for text in texts])
    monkeypatch.setattr(text_model, "TEXTS_PER_PASS", 2)
    seen: list[int] = []
    means = made._means
    monkeypatch.setattr(made, "_means", lambda x: seen.append(int((x != made.padding).sum())) or means(x))
    torch.testing.assert_close(made.embed(texts), alone)
    assert seen == sorted(seen)
    assert len(seen) == 3


def test_text_models_take_no_pictures(bert: Path) -> None:
    with pytest.raises(SettingError, match=r"takes no pictures, and the items are \[3, 16, 16\]"):
        backbones.find(f"hf:{bert}").make((3, 16, 16))


def test_a_folder_without_a_model(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"it cannot be read .* Give a folder that save_pretrained wrote"):
        backbones.find(f"hf:{tmp_path}").make((3, 16, 16))


def test_without_transformers_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch, vit: Path) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(SettingError, match="pip install transformers"):
        backbones.find(f"hf:{vit}").make((3, 16, 16))


def test_from_pictures_to_a_saved_model(vit: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 256, (12, 16, 16, 3), dtype=np.uint8), rng.integers(0, 2, (12, 2))
    how = {"epochs": 2, "batch_size": 6, "progress": False, "head": "linear"}
    model = Classifier("bce", backbone=f"hf:{vit}", backbone_settings={"freeze": 1}, **how).fit(x, y)
    model.save(tmp_path / "saved")
    again = Classifier.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.predict_proba(x), model.predict_proba(x))
    assert again.backbone == f"hf:{vit}"
