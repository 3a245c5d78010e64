"""Known labels at prediction time: they sharpen the rest, from Python and on the command line, or are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from partly import Classifier, Labels, metrics
from partly.cli.main import app
from partly.data.formats.scenes import scenes
from partly.data.scores import read_scores
from partly.engine import prediction
from partly.errors import DataError, LabelError, SettingError
from partly.items import as_items

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def model() -> Classifier:
    """b is a, c is not a, and the features say nothing of any of them."""
    rng = np.random.default_rng(0)
    a = rng.choice([-1, 1], 128)
    labels = Labels.from_ternary(np.stack([a, a, -a], axis=1), names=NAMES)
    return Classifier("bce", head="c-tran", epochs=40, lr=2e-3, progress=False).fit(rng.normal(size=(128, 2)), labels)


def test_what_is_known_of_one_label_tells_of_the_others(model: Classifier) -> None:
    x = np.zeros((3, 2))
    known = Labels.from_ternary([[1, 0, 0], [-1, 0, 0], [0, 0, 0]], names=NAMES)
    predicted = model.predict(x, known)
    assert predicted[:2, 1:].tolist() == [[1, 0], [0, 1]]
    told, alone = model.predict_proba(x, known=known), model.predict_proba(x)
    assert told[0, 1] > 0.9 > 0.7 > alone[0, 1] > 0.3 > 0.1 > told[1, 1]
    np.testing.assert_allclose(told[2], alone[2], atol=1e-6)
    np.testing.assert_allclose(model.decision_function(x, known), np.log(told / (1 - told)), atol=1e-3)
    as_array = model.predict_proba(x, [[1, np.nan, np.nan], [0, np.nan, np.nan], [np.nan] * 3])
    assert (as_array == told).all()


def test_batches_hear_of_their_own_items(model: Classifier) -> None:
    x = as_items(torch.zeros(7, 2))
    known = Labels.from_ternary(np.array([[1, 0, 0], [0, 0, 0], [-1, 0, 0]])[[0, 1, 2, 0, 1, 2, 0]])
    method = model.fitted_.method
    whole = prediction.predict(method, x, known=known)
    np.testing.assert_allclose(prediction.predict(method, x, 3, known), whole, atol=1e-6)
    assert (whole[:3, 1].argsort() == [2, 1, 0]).all()
    assert prediction.logits(method, x[:0], known=known[:0]).shape == (0, 3)


def test_other_items_and_other_labels_are_refused(model: Classifier) -> None:
    x = np.zeros((2, 2))
    with pytest.raises(LabelError, match="X has 2 items and known 1;"):
        model.predict(x, Labels.from_ternary([[1, 0, 0]], names=NAMES))
    with pytest.raises(LabelError, match=r"known does not match .*\nmissing, 1:\n  'c'\nnot among .*, 1:\n  'd'\n"):
        model.predict(x, Labels.from_ternary([[1, 0, 0]] * 2, names=list("bad")))
    with pytest.raises(LabelError, match="known has 2 labels, and there are 3 labels of training"):
        model.predict(x, Labels.from_ternary([[1, 0]] * 2))
    with pytest.raises(LabelError, match="-1"):
        model.predict(x, [[-1, 0, 0]] * 2)


def test_a_head_that_does_not_hear_refuses() -> None:
    deaf = Classifier("bce", head="linear", epochs=1, progress=False).fit(np.eye(3), np.eye(3))
    with pytest.raises(SettingError, match=r"the head 'linear' makes no use of known labels.*head='c-tran'"):
        deaf.predict_proba(np.eye(3), np.eye(3))


def test_on_the_command_line(model: Classifier, tmp_path: Path) -> None:
    """The file names some of the items and labels, in an order of its own."""
    model.save(tmp_path / "run")
    pd.DataFrame({"item": ["x", "y", "z"], "f": 0.0, "g": 0.0}).to_csv(tmp_path / "features.csv", index=False)
    pd.DataFrame({"item": ["z", "x"], "label": ["c", "a"], "value": [1, 1]}).to_csv(tmp_path / "known.csv", index=False)
    words = ["predict", str(tmp_path / "run"), str(tmp_path / "features.csv"), "--out", str(tmp_path / "scores.csv")]
    done = CliRunner().invoke(app, [*words, "--known", str(tmp_path / "known.csv")])
    assert done.exit_code == 0, done.output
    scores = read_scores(tmp_path / "scores.csv")
    assert (scores.ids, scores.names) == (("x", "y", "z"), NAMES)
    known = Labels.from_ternary([[1, 0, 0], [0, 0, 0], [0, 0, 1]], names=NAMES)
    np.testing.assert_allclose(scores.values, model.predict_proba(np.zeros((3, 2)), known), atol=1e-6)
    for column, wrong in (("item", "w"), ("label", "d")):
        table = pd.DataFrame({"item": ["z"], "label": ["c"], "value": [1]}).assign(**{column: wrong})
        table.to_csv(tmp_path / "wrong.csv", index=False)
        failed = CliRunner().invoke(app, [*words, "--known", str(tmp_path / "wrong.csv")])
        assert isinstance(failed.exception, DataError)
        assert f"1 of the 1 known {column}s are not in it\n  '{wrong}'" in str(failed.exception)


def test_half_of_the_labels_of_scenes_sharpen_the_other_half() -> None:
    """Fine and coarse labels, on pictures of 8 x 8, which leave something for the labels to tell of each other.

    From nothing: from the solved start, the transformer is kept out, since it scores higher without it.
    """
    data = scenes(train=600, test=300, coarse=True)
    truth = data.test.labels
    pictures = (part.items.array for part in (data, data.test))
    x, test_x = (p.reshape(-1, 8, 4, 8, 4, 3).mean(axis=(2, 4)).reshape(-1, 192) for p in pictures)
    model = Classifier("bce", head="label-transformer", epochs=15, lr=2e-3, start="random", progress=False)
    model.fit(x, data.labels)
    z, given = truth.rows(slice(None)), np.random.default_rng(0).random(truth.shape) < 0.5
    known, other = (Labels.from_ternary(np.where(p, z, 0), names=truth.names) for p in (given, ~given))
    alone, told = (metrics.evaluate(model.predict_proba(test_x, k), other)["mAP"] for k in (None, known))
    assert told > alone + 0.02
