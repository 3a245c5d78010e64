"""The card of a model: what it says is what the run has left behind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from partly import Classifier, Labels, export
from partly.engine import write_scores
from partly.errors import DataError
from partly.export.card import format_code, name_some
from partly.report.layout import escape_markdown

NAMES = ["a | b", "dog", "rare"]


def fitted(folder: Path, only_yes: bool = False) -> Classifier:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4))
    z = np.where(x[:, :3] > 0, 1, -1)
    z[rng.random(z.shape) < 0.3] = 0
    z[5:, 2] = 0
    z = np.maximum(z, 0) if only_yes else z
    return Classifier("em", "linear", epochs=2, run_dir=folder, progress=False).fit(
        x, Labels.from_ternary(z, names=NAMES), validation=(x[:20], Labels.from_ternary(z[:20], names=NAMES))
    )


def head_of(card: str) -> dict[str, object]:
    _, head, _ = card.split("---\n", 2)
    read: dict[str, object] = yaml.safe_load(head)
    return read


def test_without_scores(tmp_path: Path) -> None:
    model = fitted(tmp_path / "run")
    export.model_card(model, tmp_path / "card.md", onnx="here.onnx")
    card = (tmp_path / "card.md").read_text()
    known = model.fitted_.description["data"]["known"]
    data = model.fitted_.description["data"]
    assert "The run folder contains no scores." in card
    assert data["sha256"] in card
    assert data["labels_sha256"] in card
    assert f"{known['yes']} known yes, {known['no']} known no, {known['unknown']} unknown entries" in card
    yes, no = (data["known_by_label"][which] for which in ("yes", "no"))
    for name, y, n in zip(NAMES, yes, no, strict=True):
        assert f"| {escape_markdown(name)} | {y} | {n} | 0.500 |" in card
    assert "1 labels had fewer than 10 known yes, so their scores are unreliable: rare." in card
    assert 'InferenceSession("here.onnx")' in card
    assert "model-index" not in card
    assert model.best_epoch_ == 0  # no epoch is better than the solved start here
    assert "The solved start had the best validation score:" in card
    assert f"mAP {model.fitted_.method.notes['start']['validation_mAP']:.3f}" in card
    assert head_of(card)["tags"][-1] == "em"


def test_with_scores_and_only_yes_known(tmp_path: Path) -> None:
    fitted(tmp_path / "run", only_yes=True)
    scores = {"mAP": 0.25, "CF1": float("nan"), "entries_known": 9, "labels_counted": 2, "yes": 9, "no": 0}
    by_label = {"AP": [0.5, 0.0, float("nan")], "yes": [1] * 3, "no": [0] * 3}
    write_scores(tmp_path / "run", {"part": "held-out", "items": 12, "scores": scores, "by_label": by_label})
    export.model_card(tmp_path / "run", tmp_path / "card.md")
    card = (tmp_path / "card.md").read_text()
    assert "also used to choose the best epoch" in card
    assert "| mAP |\n|---|\n| 0.250 |\n" in card  # what is not defined is left out
    assert "| 0.500 | 0.000 |\n" in card  # of "dog": the threshold and the AP
    assert "No entry was known to be no." in card
    assert "mAP, precision, F1, exact match and P@k are undefined" in card
    (result,) = head_of(card)["model-index"][0]["results"]
    assert result["metrics"] == [{"type": "mAP", "value": 0.25}]
    assert result["dataset"]["split"] == "held-out"


def test_a_card_of_before_is_not_overwritten(tmp_path: Path) -> None:
    model = fitted(tmp_path / "run")
    (tmp_path / "card.md").write_text("mine")
    with pytest.raises(DataError, match="exists already"):
        export.model_card(model, tmp_path / "card.md")
    export.model_card(model, tmp_path / "card.md", overwrite=True)
    assert (tmp_path / "card.md").read_text().startswith("---\nlibrary_name: partly")


def test_runs_of_before_have_no_counts_of_labels(tmp_path: Path) -> None:
    model = fitted(tmp_path / "run")
    del model.fitted_.description["data"]["known_by_label"]
    export.model_card(model, tmp_path / "card.md")
    assert "| dog |  |  | 0.500 |" in (tmp_path / "card.md").read_text()


def test_words_of_anybody_stay_in_their_cell() -> None:
    assert escape_markdown("a|b\n<b>*x*") == "a\\|b \\<b\\>\\*x\\*"
    assert escape_markdown("http://a www.b c@d.e P@1") == "http\\://a www\\.b c\\@d.e P@1"
    assert (format_code("a b"), format_code("a``b`")) == ("`a b`", "``` a``b` ```")
    assert name_some([f"n{i}" for i in range(12)]).endswith("n8, n9 and 2 more")
    assert json.loads(json.dumps(name_some(["one"]))) == "one"


def test_a_model_of_features_that_were_made_of_pictures_takes_pictures(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (12, 16, 16, 3), dtype=np.uint8)
    model = Classifier("bce", "linear", backbone="small-conv", backbone_settings={"freeze": "all"}, progress=False)
    model.fit(x, rng.integers(0, 2, (12, 2)))
    export.model_card(model, tmp_path / "card.md")
    card = (tmp_path / "card.md").read_text()
    assert "A multi-label classifier of pictures with 2 labels" in card
    assert "- 12 items: features of" in card


def test_a_card_says_how_much_a_teacher_weighs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x, truth = rng.normal(size=(80, 3)), rng.integers(0, 2, (80, 2))
    model = Classifier("bce", "linear", teacher=truth + 0.3 * rng.normal(size=truth.shape), progress=False)
    model.fit(x, np.where(rng.random(truth.shape) < 0.7, truth, np.nan))
    export.model_card(model, tmp_path / "card.md")
    assert model.teacher_ is not None
    pooled = model.teacher_["pooled"]
    (weight,) = pooled["teachers"]
    assert weight > 0.1
    words = f"with the weights: model {pooled['model']:.2f}, scores {weight:.2f}."
    assert words in (tmp_path / "card.md").read_text()
