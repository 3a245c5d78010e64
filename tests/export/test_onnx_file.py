"""Exported files, run by onnxruntime beside torch: every head, every kind of method and every kind of items."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from partly import Classifier, Labels, export, items, methods, networks
from partly.engine import FittedModel, build_method, make_config
from partly.errors import DataError, SettingError
from partly.export.replacements import REPLACEMENTS
from partly.method import Method
from partly.networks.backbones import Backbone
from plans import fit_config

onnxruntime = pytest.importorskip("onnxruntime")
SIZES = (1, 2, 17)
CLOSE = 1e-4
LABELS, FEATURES = 4, 5
SMALL: dict[str, dict[str, Any]] = {
    "kernel": {"landmarks": 20, "axes": 6},
    "c-tran": {"width": 8, "layers": 1, "heads": 2},
    "gnn": {"steps": 1},
    "mlp": {"hidden": 8},
}
QUICK = {"cnn-rnn": {"size": 8, "longest": 2}}


def x_of(count: int = 30) -> np.ndarray:
    return (np.random.default_rng(0).normal(3.0, 5.0, (count, FEATURES))).astype(np.float32)


def y_of(count: int = 30) -> Labels:
    """Each label by the sign of a feature; a third of the entries unknown."""
    z = np.where(x_of(count)[:, :LABELS] > 3, 1, -1)
    z[2:][np.random.default_rng(1).random((count - 2, LABELS)) < 0.3] = 0
    return Labels.from_ternary(z, names=[f"label {j}" for j in range(LABELS)])


def fitted(method: str, head: str = "mlp", **more: Any) -> FittedModel:
    parts = {"settings": QUICK.get(method, {}), "head_settings": SMALL.get(head, {}), **more}
    recipe = make_config(method, head=head, epochs=1, batch_size=16, **parts)
    return fit_config(recipe, items.as_items(torch.from_numpy(x_of())), y_of())


def session_of(path: Path) -> Any:
    return onnxruntime.InferenceSession(path)


def agree(path: Path, name: str, x: Tensor, wanted: np.ndarray) -> None:
    """At three numbers of items, none of which the graph was traced with."""
    session = session_of(path)
    assert [part.name for part in session.get_inputs()] == [name]
    for size in SIZES:
        given = x[:size] if size <= len(x) else x.repeat(-(-size // len(x)), *[1] * (x.ndim - 1))[:size]
        there = np.resize(wanted, (max(size, len(wanted)), wanted.shape[1]))[:size]
        logits, probabilities = session.run(["logits", "probabilities"], {name: given.numpy()})
        assert np.abs(logits - there).max() < CLOSE
        assert np.abs(probabilities - 1 / (1 + np.exp(-there.astype(np.float64)))).max() < CLOSE


def agree_on_features(model: FittedModel, path: Path) -> None:
    assert export.to_onnx(model, path) < CLOSE
    wanted = model.logits(items.as_items(torch.from_numpy(x_of())))
    assert np.ptp(wanted, axis=0).min() > 0  # a graph that says the same of everything would agree too
    agree(path, "features", torch.from_numpy(x_of()), wanted)


# ---------------------------------------------------------------- heads and methods


@pytest.mark.parametrize("head", networks.heads())
def test_every_head(head: str, tmp_path: Path) -> None:
    agree_on_features(fitted("em", head), tmp_path / "model.onnx")


def test_a_graph_of_labels_with_states_of_another_size(tmp_path: Path) -> None:
    agree_on_features(fitted("em", "gnn", head_settings={"hidden": 3, "steps": 1}), tmp_path / "model.onnx")


def kinds() -> dict[str, list[str]]:
    """The methods by the code that a graph is made of: their forward, and the parts that it goes through. The first
    stands for all that are alike."""
    alike: dict[Any, list[str]] = {}
    for name in methods.discover():
        made = build_method(make_config(name), items.as_items(torch.from_numpy(x_of())), LABELS, y_of())
        whole = made.network if type(made).forward is Method.forward else made
        parts = tuple(type(part) for part in whole.modules() if part is not made)
        alike.setdefault((type(made).forward, parts), []).append(name)
    return {names[0]: names for names in alike.values()}


KINDS = kinds()
BY_THEMSELVES = {"per-label", "auto"}  # below


@pytest.mark.parametrize("method", [name for name in KINDS if name not in BY_THEMSELVES])
def test_every_kind_of_method(method: str, tmp_path: Path) -> None:
    agree_on_features(fitted(method), tmp_path / "model.onnx")


def test_the_portfolio_has_its_forest_and_its_thresholds(tmp_path: Path) -> None:
    model = Classifier(progress=False).fit(x_of(), y_of())
    assert len(model.fitted_.method.forest.roots)
    assert export.to_onnx(model, tmp_path / "model.onnx") < CLOSE
    agree(tmp_path / "model.onnx", "features", torch.from_numpy(x_of()), model.decision_function(x_of()))
    about = session_of(tmp_path / "model.onnx").get_modelmeta().custom_metadata_map
    np.testing.assert_allclose(json.loads(about["thresholds"]), model.thresholds_, atol=1e-6)
    assert about["method"] == "auto"


def test_what_is_not_torch_is_refused_by_name(tmp_path: Path) -> None:
    assert KINDS["per-label"] == ["per-label"]
    with pytest.raises(SettingError, match=r"per-label consists of scikit-learn estimators.*'bce' with head 'linear'"):
        export.to_onnx(fitted("per-label"), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- pictures


def pictures(side: int = 16, channels: int = 3) -> np.ndarray:
    return np.random.default_rng(2).integers(0, 256, (20, side, side, channels), dtype=np.uint8)


def agree_on_pictures(model: Classifier, path: Path, x: np.ndarray) -> dict[str, str]:
    export.to_onnx(model, path)
    agree(path, "pictures", torch.from_numpy(x).permute(0, 3, 1, 2).contiguous(), model.decision_function(x))
    about: dict[str, str] = session_of(path).get_modelmeta().custom_metadata_map
    assert session_of(path).get_inputs()[0].type == "tensor(uint8)"
    return about


def test_small_pictures(tmp_path: Path) -> None:
    how = {"epochs": 1, "progress": False, "backbone_settings": {"widths": [4, 6]}}
    model = Classifier("em", "linear", **how).fit(pictures(), y_of(20))
    about = agree_on_pictures(model, tmp_path / "model.onnx", pictures())
    assert json.loads(about["preparation"])["size"] == [16, 16]
    assert about["backbone"] == "small-conv"


def test_pictures_at_the_size_that_the_backbone_looks_at(tmp_path: Path) -> None:
    settings = {"pretrained": False, "size": 32, "freeze": "all"}
    model = Classifier("em", "linear", backbone="efficientnet-lite0", backbone_settings=settings, epochs=1)
    model.set_params(progress=False).fit(pictures(24), y_of(20))  # of another size: the graph begins after resizing
    export.to_onnx(model, tmp_path / "model.onnx")
    session = session_of(tmp_path / "model.onnx")
    assert session.get_inputs()[0].shape[1:] == [3, 32, 32]
    assert session.get_modelmeta().custom_metadata_map["backbone"] == "efficientnet-lite0"  # inside the graph
    x = torch.from_numpy(pictures(32)).permute(0, 3, 1, 2).contiguous()
    with torch.inference_mode():
        expected = model.fitted_.method(model.fitted_.body(x))
    agree(tmp_path / "model.onnx", "pictures", x, expected.numpy())


def test_a_vision_model_of_hugging_face(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20}
    folder = tmp_path / "vit"
    transformers.ViTModel(transformers.ViTConfig(**sizes, image_size=16, patch_size=4)).save_pretrained(folder)
    said = {"image_mean": [0.5] * 3, "image_std": [0.2] * 3, "size": {"height": 16, "width": 16}}
    (folder / "preprocessor_config.json").write_text(json.dumps(said))
    how = {"epochs": 1, "progress": False, "backbone_settings": {"pooling": "weldon"}}
    model = Classifier("em", "linear", backbone=f"hf:{folder}", **how).fit(pictures(), y_of(20))
    agree_on_pictures(model, tmp_path / "model.onnx", pictures())


# ---------------------------------------------------------------- texts


TEXTS = ["a cat sits", "dog", "a dog and a cat sit, and sit", "cats!"] * 5


def agree_on_texts(model: Classifier, path: Path) -> dict[str, Any]:
    """The graph takes what the backbone makes of texts, with any number of tokens."""
    export.to_onnx(model, path)
    reader = next(part for part in model.fitted_.method.modules() if isinstance(part, Backbone))
    for count in (20, 1):  # the longest of one is shorter
        some = items.texts(TEXTS[-count:])
        tokens = reader.preprocess(some.take(slice(None)))
        agree(path, "tokens", tokens, model.decision_function(some))
    more = nn.functional.pad(tokens, (0, 2), value=reader_padding(reader))
    agree(path, "tokens", more, model.decision_function(some))  # padding changes nothing
    said: dict[str, Any] = json.loads(session_of(path).get_modelmeta().custom_metadata_map["preparation"])
    return said


def reader_padding(reader: Any) -> int:
    return int(getattr(reader, "padding", 0))


def test_hashed_words(tmp_path: Path) -> None:
    how: dict[str, Any] = {"backbone": "hashed-words", "backbone_settings": {"places": 50, "width": 6}}
    model = Classifier("em", "linear", epochs=1, progress=False, **how)
    said = agree_on_texts(model.fit(items.texts(TEXTS), y_of(20)), tmp_path / "model.onnx")
    assert (said["places"], said["padding"]) == (50, 0)


def test_a_text_model_of_hugging_face(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "cat", "dog", "sits", "##s"]
    sizes = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20}
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=16, **sizes)
    folder = tmp_path / "bert"
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(words))
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)
    model = Classifier("em", "linear", backbone=f"hf:{folder}", epochs=1, progress=False)
    said = agree_on_texts(model.fit(items.texts(TEXTS), y_of(20)), tmp_path / "model.onnx")
    assert said["most_tokens"] == 16
    assert said["backbone"] == f"hf:{folder}"


# ---------------------------------------------------------------- the file


def test_what_the_file_says_of_itself(tmp_path: Path) -> None:
    model = Classifier("bce", "linear", progress=False).fit(x_of(), y_of())
    model.save(tmp_path / "run")
    export.to_onnx(tmp_path / "run", tmp_path / "model.onnx")  # a folder is a model too
    session = session_of(tmp_path / "model.onnx")
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["labels"]) == [f"label {j}" for j in range(LABELS)]
    assert json.loads(about["thresholds"]) == [0.5] * LABELS
    assert json.loads(about["trained_on"])["sha256"] == model.fitted_.description["data"]["sha256"]
    assert (about["method"], about["head"], about["backbone"]) == ("bce", "linear", "none")
    assert isinstance(session.get_inputs()[0].shape[0], str)  # any number of items


def test_a_file_that_differs_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a replacement that is wrong."""
    wrong: Callable[..., Tensor] = lambda x: torch.tanh(x) + 0.01  # noqa: E731
    monkeypatch.setitem(REPLACEMENTS, torch.sigmoid, wrong)
    path = tmp_path / "model.onnx"
    path.write_bytes(b"before")
    with pytest.raises(DataError, match=r"not written, because onnxruntime and torch differ: probabilities of 1 items"):
        export.to_onnx(fitted("bce", "linear", head_settings={}), path, overwrite=True)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_what_no_file_can_hold_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partly.export.onnx_file.MAX_FILE_BYTES", 100)
    with pytest.raises(DataError, match=r"the model takes \d+ bytes, and an ONNX file holds 100 at most"):
        export.to_onnx(fitted("bce", "linear", head_settings={}), tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten_unless_asked(tmp_path: Path) -> None:
    model, path = fitted("bce", "linear", head_settings={}), tmp_path / "model.onnx"
    path.write_bytes(b"before")
    with pytest.raises(DataError, match="exists already"):
        export.to_onnx(model, path)
    assert path.read_bytes() == b"before"
    with pytest.raises(DataError, match="there is no folder"):
        export.to_onnx(model, tmp_path / "nowhere" / "model.onnx")


@pytest.mark.parametrize("name", ["onnx", "onnxscript", "onnxruntime"])
def test_a_missing_library_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(SettingError, match=rf"needs {name}.*pip install 'partly\[onnx\]'"):
        export.to_onnx(fitted("bce", "linear", head_settings={}), tmp_path / "model.onnx")


def test_code_that_torch_cannot_follow_is_told(tmp_path: Path) -> None:
    class Strange(nn.Module):
        def __init__(self, inputs: int, labels: int) -> None:
            super().__init__()
            self.last = nn.Linear(inputs, labels)

        def forward(self, x: Tensor) -> Tensor:
            made: Tensor = self.last(x)
            return made if float(made.detach().sum()) > 0 else -made

    model = Classifier("em", Strange, epochs=1, progress=False).fit(x_of(), y_of())
    with pytest.raises(SettingError, match=r"em: torch cannot trace this model"):
        export.to_onnx(model, tmp_path / "model.onnx")
