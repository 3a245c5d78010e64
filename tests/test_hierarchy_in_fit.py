"""A hierarchy that is given to `fit`: what follows is learned from, and no label is scored above its parent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from typer.testing import CliRunner

from partly import Classifier, Hierarchy, Labels, data, engine, export, items
from partly.cli import main
from partly.engine import make_config
from partly.errors import LabelError

PARENTS = {"cat": "feline", "lion": "feline", "feline": "animal", "dog": "animal"}
NAMES = ("cat", "animal", "dog", "rock", "feline", "lion")


def above(name: str) -> list[str]:
    way = []
    while name in PARENTS:
        name = PARENTS[name]
        way.append(name)
    return way


def noise(count: int = 60, known: float = 0.3) -> tuple[np.ndarray, Labels]:
    """Features that say nothing of the labels, so that a model contradicts the hierarchy wherever nobody stops it;
    what is known of the labels does not."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 4)).astype(np.float32)
    yes = {name: rng.random(count) < 0.6 for name in NAMES}
    for name in ("feline", "dog", "cat", "lion"):  # parents first
        yes[name] &= yes[PARENTS[name]]
    z = np.stack([np.where(yes[name], 1, -1) for name in NAMES], axis=1)
    z[rng.random(z.shape) >= known] = 0
    return x, Labels.from_ternary(z, names=NAMES)


def contradictions(scores: np.ndarray) -> int:
    at = {name: j for j, name in enumerate(NAMES)}
    return sum(int((scores[:, at[name]] > scores[:, at[up]]).sum()) for name in NAMES for up in above(name))


def model(**more: Any) -> Classifier:
    small = {"method": "bce", "head": "mlp", "head_settings": {"solve": False, "hidden": 8}, "epochs": 2, "lr": 0.1}
    return Classifier(**(small | {"progress": False} | more))


@pytest.fixture(scope="module")
def fitted() -> Classifier:
    return model(hierarchy=PARENTS).fit(*noise())


def test_no_label_is_above_its_parent_wherever_it_comes_out(fitted: Classifier, tmp_path: Path) -> None:
    x, _ = noise()
    free = model().fit(*noise())
    assert contradictions(free.predict_proba(x)) > 0  # or the rest would show nothing
    for scores in (fitted.decision_function(x), fitted.predict_proba(x), fitted.predict(x)):
        assert contradictions(scores) == 0
    assert contradictions(np.concatenate(list(fitted.fitted_.predict_blocks(items.as_items(x))))) == 0
    fitted.save(tmp_path / "saved")
    again = Classifier.load(tmp_path / "saved")
    assert again.hierarchy == PARENTS
    assert (again.predict_proba(x) == fitted.predict_proba(x)).all()


def test_an_exported_graph_agrees(fitted: Classifier, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    x, _ = noise()
    export.write_onnx(fitted.fitted_, tmp_path / "model.onnx")
    logits, probabilities = onnxruntime.InferenceSession(tmp_path / "model.onnx").run(None, {"features": x})
    assert contradictions(logits) == 0
    np.testing.assert_allclose(probabilities, fitted.predict_proba(x), atol=1e-5)


def test_a_score_is_the_least_of_it_and_of_all_above(fitted: Classifier) -> None:
    x, _ = noise()
    with torch.inference_mode():
        free = fitted.fitted_.method(torch.from_numpy(x)).numpy()
    for j, name in enumerate(NAMES):
        wanted = [min(row[NAMES.index(other)] for other in (name, *above(name))) for row in free]
        np.testing.assert_array_equal(fitted.decision_function(x)[:, j], wanted)


@given(st.data())
def test_any_hierarchy_holds_for_any_scores(draw: st.DataObject) -> None:
    count = draw.draw(st.integers(2, 7))
    order = draw.draw(st.permutations(range(count)))
    parents = {}
    for place in range(1, count):  # a parent comes earlier in some order, so there is no cycle
        up = draw.draw(st.none() | st.integers(0, place - 1))
        if up is not None:
            parents[f"label {order[place]}"] = f"label {order[up]}"
    names = tuple(f"label {j}" for j in range(count))
    numbers = st.lists(st.lists(st.floats(-9, 9, width=32), min_size=count, max_size=count), min_size=1, max_size=3)
    scores = np.array(draw.draw(numbers), np.float32)
    recipe = make_config("bce", "linear", hierarchy=parents)
    method = engine.build_method(recipe, items.as_items(np.zeros((2, 1), np.float32)), count, names=names)
    found = method.enforce_hierarchy(torch.from_numpy(scores)).numpy()
    for child, parent in parents.items():
        assert (found[:, names.index(child)] <= found[:, names.index(parent)]).all()
    assert (found <= scores).all()
    kept = [j for j, name in enumerate(names) if name not in parents]
    assert (found[:, kept] == scores[:, kept]).all()  # the top is left alone
    assert (method.enforce_hierarchy(torch.from_numpy(found)).numpy() == found).all()


def test_thresholds_keep_the_order_and_so_do_decisions_and_beliefs() -> None:
    x, labels = noise(120, known=0.6)
    auto = Classifier(progress=False, hierarchy=Hierarchy(PARENTS)).fit(x, labels)
    at = {name: j for j, name in enumerate(NAMES)}
    own = auto.fitted_.method.thresholds().numpy()
    assert any(own[at[child]] < own[at[parent]] for child, parent in PARENTS.items())
    for child, parent in PARENTS.items():
        assert auto.thresholds_[at[child]] >= auto.thresholds_[at[parent]]
    assert contradictions(auto.predict(x)) == 0
    assert contradictions(auto.beliefs_) == contradictions(auto.out_of_fold_) == 0
    deduced = Hierarchy(PARENTS).deduce(labels)
    assert (auto.beliefs_[deduced.positive] == 1).all()
    assert (auto.beliefs_[deduced.negative] == 0).all()


def test_it_learns_from_what_follows() -> None:
    x, labels = noise()
    deduced = Hierarchy(PARENTS).deduce(labels)
    assert deduced.summary()["unknown"] < labels.summary()["unknown"]
    mine, by_hand = (model(hierarchy=PARENTS).fit(x, some) for some in (labels, deduced))
    assert (mine.predict_proba(x) == by_hand.predict_proba(x)).all()
    known = mine.fitted_.description["data"]["known"]
    assert known["yes"] + known["no"] == int(deduced.known.sum())
    judged = mine.fit(x, labels, validation=(x, labels)).fitted_.description["validation"]
    assert judged["labels_sha256"] == deduced.digest()


def test_what_cannot_be_respected_is_refused() -> None:
    x, labels = noise()
    frame = pd.DataFrame(labels.to_nan(), columns=NAMES)
    with pytest.raises(LabelError, match="'cat' -> 'feline'") as refused:
        model(hierarchy=PARENTS).fit(x, frame.drop(columns="feline"))
    assert "'lion' -> 'feline'" in str(refused.value)
    assert "Add a column for each parent" in str(refused.value)
    with pytest.raises(LabelError, match="says nothing about these 2 labels"):
        model(hierarchy=PARENTS).fit(x, frame[["animal", "rock"]])
    with pytest.raises(LabelError, match="spell their names alike"):
        model(hierarchy=PARENTS).fit(x, frame.rename(columns={"cat": "Cat"}))
    wrong = frame.copy()
    wrong.loc[3, ["cat", "feline", "animal"]] = [1.0, np.nan, 0.0]
    with pytest.raises(LabelError, match=r"item '3': 'cat' is yes and 'animal' is no"):
        model(hierarchy=PARENTS).fit(x, wrong)
    with pytest.raises(LabelError, match="'cat' is yes and 'animal' is no"):
        model(hierarchy=PARENTS).fit(x, frame, validation=(x, wrong))
    with pytest.raises(LabelError, match="mapping"):
        model(hierarchy=["cat"]).fit(x, frame)


def test_a_folder_goes_on_with_the_same_hierarchy_only(tmp_path: Path) -> None:
    x, labels = noise()
    first = model(hierarchy=PARENTS, run_dir=tmp_path / "run").fit(x, labels)
    again = clone(first).set_params(hierarchy=dict(reversed(PARENTS.items()))).fit(x, labels)
    assert (again.predict_proba(x) == first.predict_proba(x)).all()
    other = {child: parent for child, parent in PARENTS.items() if child != "dog"}
    with pytest.raises(ValueError, match=r"recipe\.hierarchy"):
        clone(first).set_params(hierarchy=other).fit(x, Hierarchy(PARENTS).deduce(labels))


def test_on_the_command_line(tmp_path: Path) -> None:
    x, labels = noise()
    frame = pd.DataFrame(x, columns=[f"f{j}" for j in range(x.shape[1])])
    frame.insert(0, "item", [f"i{j}" for j in range(len(x))])
    frame.to_csv(tmp_path / "features.csv", index=False)
    data.write_labels(labels.with_ids(frame["item"]), tmp_path / "labels.csv")
    pd.DataFrame(PARENTS.items(), columns=["child", "parent"]).to_csv(tmp_path / "parents.csv", index=False)
    words = f"train {tmp_path}/features.csv --labels {tmp_path}/labels.csv --hierarchy {tmp_path}/parents.csv"
    words += f" --method bce --head mlp --head-setting solve=false --epochs 1 --run {tmp_path}/run --verbose"
    done = CliRunner().invoke(main.app, words.split(), catch_exceptions=False)
    assert done.exit_code == 0
    assert "Labels that follow from" in done.output
    assert json.loads((tmp_path / "run" / "run.json").read_text())["recipe"]["hierarchy"] == PARENTS
    words = f"predict {tmp_path}/run {tmp_path}/features.csv --out {tmp_path}/scores.csv"
    assert CliRunner().invoke(main.app, words.split(), catch_exceptions=False).exit_code == 0
    assert contradictions(pd.read_csv(tmp_path / "scores.csv")[list(NAMES)].to_numpy()) == 0
    assert contradictions(engine.load(tmp_path / "run").predict(items.as_items(x))) == 0
