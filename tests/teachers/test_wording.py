"""Names of labels as phrases."""

from __future__ import annotations

from pathlib import Path

import pytest

from partly.errors import DataError, SettingError
from partly.teachers import wording


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("game::strategy", ("game strategy", "strategy")),
        ("role::app-data", ("role app data", "app data")),
        ("tvMonitor", ("tv Monitor",)),
        ("dining_table", ("dining table",)),
        ("animals/cat", ("animals cat", "cat")),
        ("hot dog", ("hot dog",)),
    ],
)
def test_phrases_of_a_name(name: str, expected: tuple[str, ...]) -> None:
    assert wording.phrases(name) == expected


@pytest.mark.parametrize("name", ["c17", "0", "label_3", "class 7", "x", "17-b", "topic::4", "n01440764"])
def test_codes_are_noticed(name: str) -> None:
    assert wording.is_code(name)


@pytest.mark.parametrize("name", ["cat", "tv", "4 wheel drive", "class", "猫", "Straße", "B2B sales"])
def test_words_are_no_codes(name: str) -> None:
    assert not wording.is_code(name)


def test_a_vocabulary_is_of_words_where_half_of_its_names_are() -> None:
    assert wording.are_words(["cat", "c17"])
    assert not wording.are_words(["cat", "c17", "c18"])
    assert wording.are_words(["cat", "c17", "c18"], {"c17": "a dog"})
    assert not wording.are_words([])


def test_prompts_apply_to_names_and_not_to_descriptions() -> None:
    found = wording.phrasings(("cat", "c17"), {"cat": ["a pet"], "c17": "a dog"}, ("a photo of a {}.", "{}"))
    assert found == [("a photo of a cat.", "cat", "a pet"), ("a dog",)]


def test_descriptions_of_unknown_labels_are_refused_by_name() -> None:
    with pytest.raises(SettingError, match=r"'cta'. Did you mean 'cat'"):
        wording.phrasings(("cat",), {"cta": "a pet"})


def test_descriptions_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "labels.toml"
    path.write_text('cat = "a pet"\n"game::strategy" = ["chess", "go"]\n')
    assert wording.read_descriptions(path) == {"cat": "a pet", "game::strategy": ["chess", "go"]}
    path.write_text('[descriptions]\ncat = "a pet"\n')
    assert wording.read_descriptions(path) == {"cat": "a pet"}
    path.write_text("cat = 3\n")
    with pytest.raises(DataError, match="neither a text nor a list of texts: cat"):
        wording.read_descriptions(path)
    path.write_text("cat: a pet\n")
    with pytest.raises(DataError, match="cannot be read as TOML"):
        wording.read_descriptions(path)
