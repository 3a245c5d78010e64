"""Guidelines are read from TOML, for people and for prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from partly.errors import LabelError
from partly.labels.guidelines import Guideline, read_guidelines

NAMES = ("cat", "dog", "with, comma")


def test_texts_and_examples(tmp_path: Path) -> None:
    path = tmp_path / "labels.toml"
    path.write_text(
        'cat = " A living cat. "\n"with, comma" = ""\n[dog]\ntext = "A dog."\nyes = ["a puppy"]\nno = ["a fox"]\n'
    )
    found = read_guidelines(path, NAMES)
    assert found == {
        "cat": Guideline("A living cat."),
        "dog": Guideline("A dog.", ("a puppy",), ("a fox",)),
        "with, comma": Guideline(),
    }
    assert found["dog"].to_dict() == {"text": "A dog.", "yes": ("a puppy",), "no": ("a fox",)}
    assert found["dog"].to_prompt("dog") == "dog: A dog.\n- yes: a puppy\n- no: a fox"
    assert found["with, comma"].to_prompt("with, comma") == "with, comma"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('cta = "A cat."', "'cta': there is no such label. Did you mean 'cat'?"),
        ("cat = 3", "'cat': write a text in quotes"),
        ("[cat]\ntxt = 'A cat.'", "'cat': has 'txt'; there is text, yes, no"),
        ("[cat]\nyes = 'one'", "yes and no are lists of texts"),
        ("[cat]\nno = [1]", "yes and no are lists of texts"),
        ("[cat]\ntext = 1", "text is a text in quotes"),
        (f"cat = '{'a' * 4001}'", "longer than 4000 letters"),
        ("cat: a cat", "is not TOML"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "labels.toml"
    path.write_text(content)
    with pytest.raises(LabelError) as error:
        read_guidelines(path, NAMES)
    assert words in str(error.value)
    assert str(path) in str(error.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match="cannot be read"):
        read_guidelines(tmp_path / "labels.toml", NAMES)
