"""`partly predict`, called as a user calls it: scores of items, and beliefs about those of training."""

from __future__ import annotations

import shutil
import warnings
import weakref
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from typer.testing import CliRunner

from partly import Classifier, Labels
from partly.cli.main import app
from partly.data import read, read_labels, read_scores, write, write_labels
from partly.engine import prediction, read_description
from partly.errors import DataError, SettingError
from partly.items import as_items

IDS = [f"item {i}" for i in range(30)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with features and labels in files, of which all but a few are unknown, and a run of `role` on them."""
    folder = tmp_path_factory.mktemp("trained")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 3))
    known = np.where(rng.random((30, 2)) < 0.5, np.where(x[:, :2] > 0, 1, -1), 0)
    with chdir(folder):
        write_labels(Labels.from_ternary(known, names=["a", "b"], ids=IDS), "labels.csv")
        rows = (f"{i},{','.join(map(str, row))}" for i, row in zip(IDS, x, strict=True))
        Path("features.csv").write_text("\n".join(["item,x,y,z", *rows]))
        partly("train", "features.csv", "--labels", "labels.csv", "--run", "run", "--method", "role", "--epochs", "2")
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The run in a folder of one's own, beside its data."""
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "run"


def partly(*words: str) -> str:
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_scores_of_a_table(run: Path) -> None:
    partly("predict", "run", "features.csv", "--out", "scores.csv")
    scores = read_scores("scores.csv")
    assert (scores.ids, scores.names) == (tuple(IDS), ("a", "b"))


def test_beliefs_of_the_training_items(run: Path) -> None:
    """Under the ids of the items, all of them: the final model was refitted."""
    partly("predict", "run", "--beliefs", "--out", "beliefs.csv")
    told, beliefs = read_scores("beliefs.csv"), Classifier.load(run).beliefs_
    assert told.ids == tuple(IDS)
    np.testing.assert_allclose(told.values, beliefs, rtol=1e-6)


def test_it_is_items_or_beliefs(run: Path) -> None:
    for words in ((), ("features.csv", "--beliefs")):
        with pytest.raises(SettingError, match="Give DATA to predict, or --beliefs"):
            partly("predict", "run", *words, "--out", "x.csv")


def test_who_believes_nothing_says_so(run: Path) -> None:
    partly("train", "features.csv", "--labels", "labels.csv", "--run", "plain", "--method", "bce", "--epochs", "1")
    with pytest.raises(SettingError, match="plain: bce has no beliefs"):
        partly("predict", "plain", "--beliefs", "--out", "x.csv")


def test_settings_of_the_head_are_written_down(run: Path) -> None:
    words = ("--labels", "labels.csv", "--run", "small", "--method", "bce", "--epochs", "1", "--head", "mlp")
    partly("train", "features.csv", *words, "--head-setting", "hidden=6", "--head-setting", "dropout=0.1")
    assert read_description(Path("small"))["recipe"]["head_settings"] == {"hidden": 6, "dropout": 0.1, "solve": True}
    with pytest.raises(SettingError, match=r"The head mlp has no setting 'width'"):
        partly("train", "features.csv", *words, "--head-setting", "width=6")


def test_items_without_ids_are_named_by_their_place_in_the_data(run: Path) -> None:
    """Of the items that were held out, none is among them: the rows of the others do not move up."""
    rng = np.random.default_rng(1)
    np.save("features.npy", rng.normal(size=(30, 3)).astype(np.float32))
    known = np.where(rng.random((30, 2)) < 0.7, rng.choice([1, -1], (30, 2)), 0)
    write_labels(Labels.from_ternary(known, names=["a", "b"]), "plain.csv")
    partly("train", "features.npy", "--labels", "plain.csv", "--run", "other", "--method", "role", "--epochs", "1")
    partly("predict", "other", "--beliefs", "--out", "beliefs.csv")
    told = read_scores("beliefs.csv")
    for place, row in zip(map(int, told.ids), told.values, strict=True):
        assert (row[known[place] == 1] == 1).all()
        assert (row[known[place] == -1] == 0).all()
    assert sorted(map(int, told.ids)) != list(range(24))


def test_columns_are_matched_by_name(run: Path) -> None:
    partly("predict", "run", "features.csv", "--out", "scores.csv")
    lines = [line.split(",") for line in Path("features.csv").read_text().splitlines()]
    Path("turned.csv").write_text("\n".join(",".join((i, c, b, a)) for i, a, b, c in lines))
    write(read("turned.csv"), "turned.parquet")
    for turned in ("turned.csv", "turned.parquet"):
        partly("predict", "run", turned, "--out", "other.csv")
        assert Path("other.csv").read_bytes() == Path("scores.csv").read_bytes()
    Path("renamed.csv").write_text(Path("features.csv").read_text().replace("y", "Y", 1))
    with pytest.raises(DataError, match="missing, 1:\n  'y'\nnot in training, 1:\n  'Y'"):
        partly("predict", "run", "renamed.csv", "--out", "x.csv")


def test_no_more_than_a_batch_is_made_or_scored_at_a_time(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores come in batches, and each is gone when the next one is made, however many items there are."""
    monkeypatch.setattr(prediction.logit_blocks, "__defaults__", (4, None))
    alive: list[weakref.ref[np.ndarray]] = []
    original = prediction.logit_blocks

    def watched(*args: Any, **settings: Any) -> Iterator[np.ndarray]:
        for block in original(*args, **settings):
            assert len(block) <= 4
            assert sum(one() is not None for one in alive) <= 1
            alive.append(weakref.ref(block))
            yield block

    monkeypatch.setattr(prediction, "logit_blocks", watched)
    partly("predict", "run", "features.csv", "--out", "scores.parquet")
    assert len(alive) == 8
    model = Classifier.load(run)
    x = np.loadtxt("features.csv", delimiter=",", skiprows=1, usecols=(1, 2, 3))
    np.testing.assert_allclose(read_scores("scores.parquet").values, model.fitted_.predict(as_items(x)), rtol=1e-6)


def test_pictures_and_texts_are_scored_under_their_ids(run: Path) -> None:
    """The same numbers as in memory; a file that is no picture is left out where that is asked for."""
    Path("pics").mkdir()
    pixels = np.random.default_rng(2).integers(0, 255, (6, 20, 24, 3), np.uint8)
    for i, one in enumerate(pixels):
        Image.fromarray(one).save(f"pics/{i}.png")
    Path("pics/bad.png").write_text("no picture")
    Path("texts.jsonl").write_text("".join(f'{{"id": "t{i}", "text": "word {i}"}}\n' for i in range(6)))
    z = np.random.default_rng(3).integers(0, 2, (6, 2))
    write_labels(Labels.from_full(z, names=["a", "b"], ids=[f"{i}.png" for i in range(6)]), "pictures.csv")
    write_labels(Labels.from_full(z, names=["a", "b"], ids=[f"t{i}" for i in range(6)]), "words.csv")
    for data, labels, how in (("pics", "pictures.csv", ["--skip-bad"]), ("texts.jsonl", "words.csv", [])):
        words = ("--labels", labels, "--run", f"run-{labels}", "--method", "bce", "--epochs", "1", "--hold-out", "0")
        partly("train", data, *words)
        if how:
            with pytest.raises(DataError, match="bad files: 1 of 7"):
                partly("predict", f"run-{labels}", data, "--out", "scores.csv")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            partly("predict", f"run-{labels}", data, "--out", "scores.csv", *how)
            items = read(data, skip_bad=True).items
        found = read_scores("scores.csv")
        assert found.ids == read_labels(labels).ids
        wanted = Classifier.load(f"run-{labels}").predict_proba(items)
        np.testing.assert_allclose(found.values, wanted, atol=1e-5)


def test_the_strongest_alone(run: Path) -> None:
    partly("predict", "run", "features.csv", "--out", "all.csv")
    partly("predict", "run", "features.csv", "--top", "1", "--out", "top.parquet")
    partly("predict", "run", "features.csv", "--above", "0.5", "--out", "above.csv")
    partly("predict", "run", "features.csv", "--above", "own", "--out", "own.csv")
    p = read_scores("all.csv").values
    top = pd.read_parquet("top.parquet")
    assert top["item"].tolist() == IDS
    assert top["label"].tolist() == ["ab"[j] for j in p.argmax(axis=1)]
    assert top["probability"].tolist() == pytest.approx(p.max(axis=1).tolist(), rel=1e-6)
    above = pd.read_csv("above.csv")
    assert set(zip(above["item"], above["label"], strict=True)) == {(IDS[i], "ab"[j]) for i, j in np.argwhere(p >= 0.5)}
    assert above.equals(pd.read_csv("own.csv"))  # it has chosen none, so 0.5


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--above", "half"], "--above half: give a probability, or 'own'"),
        (["--above", "2"], "above"),
        (["--top", "0"], "top = 0"),
        (["--top", "1", "--calls"], "leave out --beliefs and --binary"),
    ],
)
def test_a_wrong_choice_is_refused(run: Path, words: list[str], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        partly("predict", "run", "features.csv", "--out", "top.csv", *words)
    assert not Path("top.csv").exists()
