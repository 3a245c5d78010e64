"""Folders of an estimator per label as a stranger may send them, every checksum put right: refused with a message, by
`load` and by `verify`; what would run code later is taken away."""

from __future__ import annotations

import io
import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesClassifier, HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC

from partly import Classifier, PerLabel, atomic_io
from partly.binary_relevance import pack
from partly.budget import FREE_BYTES
from partly.engine import per_label_store, verify
from partly.errors import CheckpointError
from resealed import change_description, change_records

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.where(RNG.random((60, 2)) < 0.7, X[:, :2] > 0, np.nan)
y = (X[:, 0] > 0).astype(int)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved") / "model"
    PerLabel(LogisticRegression(), progress=False).fit(X, Y).save(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def put(folder: Path, content: bytes) -> None:
    """The second label, with a checksum that fits."""
    per_label_store.write_label(folder, 1, atomic_io.read_checksummed(folder / "run.json")["labels"][1], content)


def changed(estimator: Any = None, **attributes: Any) -> Any:
    fitted = (LogisticRegression() if estimator is None else estimator).fit(X, y)
    vars(fitted).update(attributes)
    return fitted


def without(name: str) -> Any:
    fitted = changed()
    delattr(fitted, name)
    return fitted


def tree(change: Callable[[Any], None]) -> Any:
    """A forest whose first tree has other nodes."""
    forest = changed(ExtraTreesClassifier(3, random_state=0))
    one = forest.estimators_[0].tree_
    kind, arguments, state = one.__reduce__()
    state["nodes"] = state["nodes"].copy()
    change(state["nodes"])
    made = kind(*arguments)
    made.__setstate__(state)
    forest.estimators_[0].tree_ = made
    return forest


def boosted(change: Callable[[Any], None]) -> Any:
    made = changed(HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5))
    change(made._predictors[0][0].nodes)
    return made


def neighbors() -> Any:
    made = changed(KNeighborsClassifier(algorithm="kd_tree", leaf_size=5))
    state = list(made._tree.__getstate__())
    state[1] = np.full_like(state[1], 10**9)  # the order of the items
    made._tree.__setstate__(tuple(state))
    return made


def set_node(field: str, value: int) -> Callable[[Any], None]:
    def change(nodes: Any) -> None:
        nodes[field][0] = value

    return change


def label(*estimators: Any, constant: Any = None, **more: Any) -> bytes:
    return pack({"constant": constant, "estimators": list(estimators), **more})


def archive(**parts: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in parts.items():
            made.writestr(name.replace("_", "."), content)
    return buffer.getvalue()


def altered(change: Callable[[Any], Any]) -> bytes:
    """The schema of a good label, changed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(label(changed()))) as old, zipfile.ZipFile(buffer, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json":
                schema = json.loads(content)
                change(schema)
                content = json.dumps(schema).encode()
            new.writestr(name, content)
    return buffer.getvalue()


def altered_schema(old: str, new: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(label(changed()))) as made:
        return made.read("schema.json").replace(old.encode(), new.encode())


def nested() -> bytes:
    """Lists within lists, 300 deep."""
    with zipfile.ZipFile(io.BytesIO(label(changed()))) as old:
        schema = json.loads(old.read("schema.json"))
    inner: Any = []
    for _ in range(300):
        inner = [{"content": inner, "__class__": "list", "__module__": "builtins", "__loader__": "ListNode"}]
    schema["content"]["estimators"]["content"] = inner
    return archive(schema_json=json.dumps(schema).encode())


def huge() -> bytes:
    """A coefficient for each of more features than fit."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (1, FREE_BYTES // 4)}
    )
    with zipfile.ZipFile(io.BytesIO(label(changed()))) as old:
        parts = {name: old.read(name) for name in old.namelist()}
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in parts.items():
            if name == "0.npy":
                with new.open(name, "w") as file:
                    file.write(header.getvalue())
                    for _ in range(2 * FREE_BYTES >> 20):
                        file.write(bytes(1 << 20))
            else:
                new.writestr(name, content)
    return buffer.getvalue()


grid = {"memory": ["cache", None]}
FORGED: dict[str, Callable[[], bytes]] = {
    "a constant that is text": lambda: label(constant="0.5"),
    "a constant that is NaN": lambda: label(constant=float("nan")),
    "a constant beyond 1": lambda: label(constant=2.0),
    "nothing at all": lambda: label(),
    "a list": lambda: pack([changed()]),
    "an estimator without its label": lambda: pack(changed()),
    "other keys": lambda: label(changed(), more=1),
    "estimators that are none": lambda: pack({"constant": None, "estimators": changed()}),
    "a number for an estimator": lambda: label(5),
    "a regressor": lambda: label(Ridge().fit(X, y)),
    "a transformer": lambda: label(PCA(2).fit(X)),
    "an estimator that was not fitted": lambda: label(LogisticRegression()),
    "one of three classes": lambda: label(LogisticRegression().fit(X, np.arange(60) % 3)),
    "other classes": lambda: label(changed(classes_=np.array([0, 2]))),
    "classes that are text": lambda: label(changed(classes_=np.array(["no", "yes"]))),
    "no classes": lambda: label(without("classes_")),
    "another width": lambda: label(LogisticRegression().fit(X[:, :3], y)),
    "a width that is a lie": lambda: label(changed(n_features_in_=1000)),
    "coefficients that are NaN": lambda: label(changed(coef_=np.full((1, 4), np.nan))),
    "coefficients that are infinite": lambda: label(changed(coef_=np.full((1, 4), np.inf))),
    "coefficients of another shape": lambda: label(changed(coef_=np.ones((1, 7)))),
    "coefficients that are text": lambda: label(changed(coef_=np.full((1, 4), "1"))),
    "no intercept": lambda: label(without("intercept_")),
    "a tree whose node leads back": lambda: label(tree(set_node("left_child", 0))),
    "a tree whose node leads nowhere": lambda: label(tree(set_node("right_child", 10**6))),
    "a tree that asks for another feature": lambda: label(tree(set_node("feature", 10**6))),
    "a boosted tree that leads nowhere": lambda: label(boosted(set_node("left", 10**6))),
    "a boosted tree of another feature": lambda: label(boosted(set_node("feature_idx", 10**6))),
    "neighbors that are not there": lambda: label(neighbors()),
    "support vectors that are not there": lambda: label(changed(SVC(), _n_support=np.array([10**6, 10**6], np.int32))),
    "a pipeline of nothing": lambda: label(changed(make_pipeline(StandardScaler(), LogisticRegression()), steps=[])),
    "a cache in a search": lambda: label(
        changed(GridSearchCV(Pipeline([("a", LogisticRegression())]), {"a__C": [1.0]}, cv=2), param_grid=grid)
    ),
    "a function": lambda: label(changed(make_pipeline(FunctionTransformer(np.abs), LogisticRegression()))),
    "a method that is called": lambda: altered(
        lambda schema: schema["content"]["estimators"].update(
            __loader__="MethodNode", content={"func": "fit", "obj": schema["content"]["estimators"]["content"][0]}
        )
    ),
    "a type of nobody's": lambda: altered(
        lambda schema: schema["content"]["estimators"].update(__module__="os", __class__="system")
    ),
    "deep nesting": nested,
    "a file that is not there": lambda: archive(schema_json=altered_schema("0.npy", "9.npy")),
    "no zip archive": lambda: b"PK nothing",
    "an archive without a schema": lambda: archive(a_txt=b"x"),
    "a schema that is no JSON": lambda: archive(schema_json=b"{"),
    "a schema that is a number": lambda: archive(schema_json=b"5"),
    "gigabytes": huge,
}


@pytest.mark.parametrize("what", FORGED)
def test_a_forged_label_is_refused(folder: Path, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    put(folder, FORGED[what]())
    with pytest.raises(CheckpointError, match=r"label-00001\.skops"):
        PerLabel.load(folder)
    if what not in ("a function", "a type of nobody's"):  # named, and not opened
        with pytest.raises(CheckpointError, match=r"label-00001\.skops"):
            verify(folder)
    else:
        assert any("not opened" in line for line in verify(folder))
    assert not (folder.parent / "cache").exists()


def test_the_folder_that_is_forged_is_a_good_one(folder: Path) -> None:
    put(folder, label(changed()))
    assert np.isfinite(PerLabel.load(folder).predict_proba(X)).all()
    assert not any("not opened" in line for line in verify(folder))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("estimator_sha256", None),
        ("unknown", "perhaps"),
        ("unknown", 5),
        ("weight_unknown", "much"),
        ("bags", -1),
        ("bags", "many"),
        ("seed", 0.5),
        ("features_in", "four"),
        ("features_in", 5),
        ("scores_sha256", 7),
    ],
)
def test_a_recipe_that_cannot_be_is_refused(folder: Path, name: str, value: Any) -> None:
    def change(description: dict[str, Any]) -> None:
        description["recipe"][name] = value

    change_description(folder, change)
    for path in folder.glob("label-*.json"):
        record = atomic_io.read_checksummed(path)
        atomic_io.write_checksummed(path, record | {"run": atomic_io.sha256_of(folder / "run.json")})
    with pytest.raises(CheckpointError):
        PerLabel.load(folder)


def test_no_cache_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """joblib unpickles what lies in a cache folder, and a stranger's folder could bring one."""
    monkeypatch.chdir(tmp_path)
    inner = Pipeline([("scale", StandardScaler()), ("fit", LogisticRegression())])
    model = PerLabel(GridSearchCV(inner, {"fit__C": [1.0]}, cv=2), progress=False).fit(X, Y)
    model.save("model")
    description = atomic_io.read_checksummed(Path("model/run.json"))
    for search in (model.estimator, *(one.estimators[0] for one in model.fitted_)):
        search.estimator.memory, search.n_jobs = "cache", 10**6
        getattr(search, "best_estimator_", search.estimator).memory = "cache"
    packed = pack(model.estimator)
    per_label_store.write_whole(Path("model") / per_label_store.ESTIMATOR, packed)
    description["recipe"]["estimator_sha256"] = atomic_io.sha256(packed)
    atomic_io.write_checksummed(Path("model/run.json"), description)
    for number, (name, fitted) in enumerate(zip(model.label_names_, model.fitted_, strict=True)):
        per_label_store.write_label(Path("model"), number, name, fitted.to_bytes())
    loaded = PerLabel.load("model")
    for search in (loaded.estimator, *(one.estimators[0] for one in loaded.fitted_)):
        assert search.estimator.memory is None
        assert search.n_jobs is None
        assert getattr(search, "best_estimator_", search.estimator).memory is None
    loaded.set_params(progress=False).fit(X, Y)
    assert not Path("cache").exists()


def test_the_method_per_label_checks_what_is_loaded(tmp_path: Path) -> None:
    model = Classifier(method="per-label", head="linear", progress=False, seed=0)
    model.fit(X.astype(np.float32), Y)
    model.save(tmp_path / "model")
    assert "model" in " ".join(verify(tmp_path / "model"))
    for path in (tmp_path / "model").glob("checkpoint-*.safetensors"):
        tensors = load_file(path)
        name = next(one for one in tensors if one.endswith("shelf.1"))
        forged = label(changed(coef_=np.full((1, 4), np.nan)))
        save_file(tensors | {name: torch.frombuffer(bytearray(forged), dtype=torch.uint8)}, path)
        digest = atomic_io.sha256_of(path)
    change_records(tmp_path / "model", lambda record: record.update(tensors_sha256=digest))
    for ask in (Classifier.load, verify):
        with pytest.raises(CheckpointError, match="label 1: not a fitted classifier"):
            ask(tmp_path / "model")
