"""Model folders of a stranger, every checksum put right: refused with a message before anything is made of them."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load, save

from partly import Classifier, atomic_io, engine, methods
from partly.engine import checkpoint
from partly.errors import CheckpointError, PartlyError
from partly.items import as_items
from partly.labels import Labels
from plans import fit_config
from resealed import change_description, change_records, change_tensors

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(24, 4)).astype(np.float32), RNG.choice([1.0, 0.0, np.nan], size=(24, 3))
Alter = Callable[[Path], Any]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "run"
    recipe = engine.make_config("bce", "mlp", epochs=1, head_settings={"solve": False, "hidden": 8})
    fit_config(recipe, as_items(X), Labels.from_nan(Y), folder=folder)
    return folder


def described(**change: Any) -> Alter:
    return lambda folder: change_description(folder, lambda d: d.update(change))


def inside(part: str, **change: Any) -> Alter:
    return lambda folder: change_description(folder, lambda d: d[part].update(change))


def without(*path: str) -> Alter:
    def change(description: dict[str, Any]) -> None:
        *way, last = path
        for name in way:
            description = description[name]
        del description[last]

    return lambda folder: change_description(folder, change)


def recorded(**change: Any) -> Alter:
    return lambda folder: change_records(folder, lambda r: r.update(change))


def weights(value: float) -> Alter:
    def change(content: bytes) -> bytes:
        """The last numbers of the file are float32 weights."""
        return content[:-4] + np.float32(value).tobytes()

    return lambda folder: change_tensors(folder, change)


def header(change: Callable[[dict[str, Any]], Any]) -> Alter:
    def changed(content: bytes) -> bytes:
        length = int.from_bytes(content[:8], "little")
        table = json.loads(content[8 : 8 + length])
        change(table)
        text = json.dumps(table).encode()
        return len(text).to_bytes(8, "little") + text + content[8 + length :]

    return lambda folder: change_tensors(folder, changed)


def renamed(table: dict[str, Any]) -> None:
    table["method.elsewhere"] = table.pop(next(iter(table)))


def of_type(dtype: str) -> Callable[[dict[str, Any]], None]:
    def change(table: dict[str, Any]) -> None:
        for tensor in table.values():
            if tensor.get("dtype") == "F32":
                tensor["dtype"] = dtype

    return change


def halved(content: bytes) -> bytes:
    return save({name: t.bfloat16() if t.dtype == torch.float32 else t for name, t in load(content).items()})


def written(name: str, content: bytes) -> Alter:
    return lambda folder: (folder / name).write_bytes(content)


def piped(name: str) -> Alter:
    def alter(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return alter


def folded(name: str) -> Alter:
    def alter(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return alter


DEEP = b"[" * 100_000
HUGE = 10**9
ALTERED: dict[str, Alter] = {
    "weights that are NaN": weights(np.nan),
    "weights that are infinite": weights(np.inf),
    "an unknown format": described(format=99),
    "a format that is no number": described(format="three"),
    "labels twice": described(labels=["a", "a", "b"]),
    "labels that differ in case": described(labels=["a", "A", "b"]),
    "too few labels": described(labels=["a"]),
    "no labels": described(labels=[]),
    "labels that are no texts": described(labels=[1, 2, 3]),
    "labels missing": without("labels"),
    "a billion features": inside("data", shape=[24, HUGE]),
    "features below nothing": inside("data", shape=[24, -4]),
    "no shape": without("data", "shape"),
    "a shape of texts": inside("data", shape=["24", "4"]),
    "a shape of pictures": inside("data", shape=[24, 3, 8, 8]),
    "an unknown kind": inside("data", kind="songs"),
    "data that is a list": described(data=[]),
    "features of another number": described(features=["a"]),
    "an unknown method": inside("recipe", method="no-such-method"),
    "a method that is a path": inside("recipe", method="../../etc/passwd"),
    "an unknown head": inside("recipe", head="no-such-head"),
    "a hidden layer of a billion": inside("recipe", head_settings={"hidden": HUGE, "dropout": 0.5, "solve": False}),
    "another hidden layer": inside("recipe", head_settings={"hidden": 9, "dropout": 0.5, "solve": False}),
    "a setting that does not exist": inside("recipe", settings={"no": 1}),
    "a recipe with more": inside("recipe", more=1),
    "a recipe that is a text": described(recipe="bce"),
    "a rate that is infinite": inside("recipe", lr=float("inf")),
    "epochs that are a list": inside("recipe", epochs=[1]),
    "a backbone of features": inside("recipe", backbone="conv"),
    "made of nothing": inside("data", made_of={}),
    "a record without progress": recorded(progress=None),
    "progress with more": recorded(progress={"finished": True, "more": 1}),
    "a history that is a text": recorded(progress={"finished": True, "history": "x"}),
    "an epoch below nothing": recorded(epoch=-1),
    "tensors of other names": header(renamed),
    "tensors that end elsewhere": header(lambda table: next(iter(table.values())).update(data_offsets=[0, 10**15])),
    "a type that there is not": header(lambda table: next(iter(table.values())).update(dtype="Z9")),
    "weights that are whole numbers": header(of_type("I32")),
    "weights of half the precision": lambda folder: change_tensors(folder, halved),
    "a header of a terabyte": lambda folder: change_tensors(folder, lambda c: (10**12).to_bytes(8, "little") + c[8:]),
    "run.json that is deep": written("run.json", DEEP),
    "run.json that is no text": written("run.json", b"\xff\xfe\x00"),
    "run.json that is empty": written("run.json", b""),
    "run.json that is a pipe": piped("run.json"),
    "run.json that is a folder": folded("run.json"),
    "a record that is deep": written("checkpoint-000002.json", DEEP + b"\n" + atomic_io.sha256(DEEP).encode() + b"\n"),
    "a record that is a pipe": piped("checkpoint-000002.json"),
    "tensors that are a pipe": piped("checkpoint-000002.safetensors"),
}


@pytest.mark.parametrize("what", ALTERED)
def test_an_altered_folder_is_refused(model: Path, tmp_path: Path, what: str) -> None:
    folder = tmp_path / "run"
    shutil.copytree(model, folder)
    for path in folder.glob("checkpoint-000001.*"):
        path.unlink()  # so that nothing stands in
    ALTERED[what](folder)
    with pytest.raises(CheckpointError) as caught:
        Classifier.load(folder)
    assert str(folder) in str(caught.value)
    with pytest.raises(PartlyError):
        engine.verify(folder)


def test_the_folder_that_was_altered_is_a_good_one(model: Path) -> None:
    assert Classifier.load(model).predict_proba(X).shape == (24, 3)
    engine.verify(model)


def test_every_problem_of_the_description_is_told(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(model, folder)
    change_description(folder, lambda d: d.update(labels=[], features=3, partly=None))
    with pytest.raises(CheckpointError) as caught:
        engine.load(folder)
    for words in ("labels = [] should be names", "features = 3 should be null", "partly = None should be a text"):
        assert words in str(caught.value)


def test_a_layer_that_is_asked_for_is_never_made(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The size is known before there is such a tensor."""
    folder = tmp_path / "run"
    shutil.copytree(model, folder)
    ALTERED["a billion features"](folder)
    made: list[int] = []
    original = torch.nn.Linear.__init__

    def counting(self: Any, inputs: int, outputs: int, *more: Any, **how: Any) -> None:
        original(self, inputs, outputs, *more, **how)
        made.append(inputs * outputs)

    monkeypatch.setattr(torch.nn.Linear, "__init__", counting)
    with pytest.raises(CheckpointError, match="far larger layers than there are weights for"):
        engine.load(folder)
    assert not [size for size in made if size > 10**6]


@pytest.mark.parametrize("name", methods.discover())
def test_what_every_method_saves_is_loaded(tmp_path: Path, name: str) -> None:
    """No method has weights that are not finite, or needs more than its file says, or is refused by the schema."""
    if "features" not in methods.find(name).kind.kinds:
        pytest.skip("learns from no features")
    fitted = fit_config(engine.make_config(name, "linear", epochs=1), as_items(X), Labels.from_nan(Y), folder=tmp_path)
    assert (engine.load(tmp_path).predict(as_items(X)) == fitted.predict(as_items(X))).all()
    engine.verify(tmp_path)
    assert checkpoint.run_of(tmp_path) is not None
