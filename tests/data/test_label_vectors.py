"""Vectors of labels from files: by words and by name; missing words are named."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import torch

from partly.data.label_vectors import read_label_vectors
from partly.errors import DataError, SettingError

WORDS = "the 9 9\ndog 1 2\nhot 3 -4\ntable 5 6\ndining 1 0\nNew_York 7 8\ndog 0 0\n"


@pytest.fixture
def words(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text(WORDS, encoding="utf-8")
    return path


def test_a_name_is_its_own_vector_or_the_mean_of_its_words(words: Path) -> None:
    names = ("Dog", "hot dog", "dining_table", "New York", "Hot-Dog/table")
    expected = [[1, 2], [2, -1], [3, 3], [7, 8], [3, 4 / 3]]  # of a word that is there twice, the first
    torch.testing.assert_close(read_label_vectors(str(words), names, 2), torch.tensor(expected))


@pytest.mark.parametrize("name", ["words.vec", "words.txt.gz", "words.VEC.gz"])
def test_packed_files_and_those_with_a_first_line_of_counts(tmp_path: Path, name: str) -> None:
    content = f"7 2\n{WORDS}".encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert read_label_vectors(str(tmp_path / name), ["dog"], 2).tolist() == [[1, 2]]
    with pytest.raises(SettingError, match="vectors of 2 numbers for size = 300"):
        read_label_vectors(str(tmp_path / name), ["dog"], 300)


def test_words_that_are_not_there_are_named_with_their_labels_and_what_is_near(words: Path) -> None:
    with pytest.raises(
        DataError, match=r"words of 2 of the 3 labels\n  'dinning room': 'dinning' \(nearest: dining\)"
    ) as e:
        read_label_vectors(str(words), ["dinning room", "dog", "--"], 2)
    assert "'room'\n  '--': '--'\n" in str(e.value)


@pytest.mark.parametrize(
    ("line", "told"), [("cat 1 x", "not numbers"), ("cat 1", "1 numbers instead of 2"), ("cat 1 nan", "2 finite ones")]
)
def test_a_line_that_is_no_vector_is_refused_where_it_is_needed(words: Path, line: str, told: str) -> None:
    words.write_text(f"{WORDS}{line}\n", encoding="utf-8")
    assert read_label_vectors(str(words), ["dog"], 2).shape == (1, 2)
    with pytest.raises(DataError, match=rf"words\.txt:8: 'cat': .*{told}"):
        read_label_vectors(str(words), ["cat"], 2)
    with pytest.raises(DataError, match=r"nowhere\.txt: cannot be read"):
        read_label_vectors(str(words.with_name("nowhere.txt")), ["cat"], 2)


def test_a_table_by_label_is_taken_by_name(tmp_path: Path) -> None:
    path = tmp_path / "vectors.csv"
    path.write_text("item,a,b\nhot dog,1,2\ndog,3,4\n", encoding="utf-8")
    assert read_label_vectors(str(path), ["dog", "hot dog"], 2).tolist() == [[3, 4], [1, 2]]
    with pytest.raises(DataError, match="1 of the 1 labels are not in it\n  'cat'"):
        read_label_vectors(str(path), ["cat"], 2)
