"""Labeling guidelines, for annotators and language models.

A TOML file has an entry per label, a sentence or a table:

    cat = "A living cat, whole or in part. Drawings do not count."

    [dog]
    text = "A living dog."
    yes = ["a puppy in a basket"]
    no = ["a fox", "a toy dog"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from partly.errors import LabelError, did_you_mean, listing

MAX_CHARACTERS = 4000  # per label
KEYS = ("text", "yes", "no")


@dataclass(frozen=True)
class Guideline:
    """Definition of a label: a text, and examples of yes and no."""

    text: str = ""
    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return asdict(self)

    def to_prompt(self, label: str) -> str:
        """Return the guideline as plain text, for example for a language model."""
        lines = [f"{label}: {self.text}" if self.text else label]
        lines += [f"- yes: {example}" for example in self.yes]
        return "\n".join(lines + [f"- no: {example}" for example in self.no])


def read_guidelines(path: str | Path, names: Collection[str]) -> dict[str, Guideline]:
    """Read the guidelines of these labels from a TOML file; labels may be left out, unknown ones are refused.

    Parameters
    ----------
    path : str or Path
        A TOML file.
    names : collection of str
        Names of all labels.

    Returns
    -------
    dict
        `Guideline` of each label in the file.

    Raises
    ------
    LabelError
        If the file cannot be read, names an unknown label, or has values that are not text.
    """
    try:
        content = tomllib.loads(Path(path).read_text("utf-8"))
    except OSError as error:
        raise LabelError(
            f"{path}: cannot be read ({error.strerror}). Give a TOML file with a text per label."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise LabelError(f'{path}: is not TOML ({error}). Write lines such as cat = "A living cat."') from None
    wrong = [f"{name!r}: there is no such label.{did_you_mean(name, names)}" for name in content if name not in names]
    wrong += [f"{name!r}: {fault}" for name, value in content.items() if (fault := _fault(value))]
    if wrong:
        raise LabelError(f"{path}: {len(wrong)} guidelines cannot be used" + listing(wrong, len(wrong)))
    return {name: _guideline(value) for name, value in content.items()}


def _guideline(value: str | Mapping[str, Any]) -> Guideline:
    if isinstance(value, str):
        return Guideline(value.strip())
    return Guideline(value.get("text", "").strip(), tuple(value.get("yes", ())), tuple(value.get("no", ())))


def _fault(value: Any) -> str:
    """Describe what is wrong with a value of the file; '' if it is valid."""
    table = {"text": value} if isinstance(value, str) else value
    if not isinstance(table, dict):
        return "write a text in quotes, or a table with text, yes and no"
    unknown = [key for key in table if key not in KEYS]
    if unknown:
        return f"has {unknown[0]!r}; there is {', '.join(KEYS)}"
    lists = [table.get("yes", []), table.get("no", [])]
    if not all(
        isinstance(examples, list) and all(isinstance(example, str) for example in examples) for examples in lists
    ):
        return 'yes and no are lists of texts: ["a fox", "a toy dog"]'
    if not isinstance(table.get("text", ""), str):
        return "text is a text in quotes"
    if sum(map(len, [table.get("text", ""), *lists[0], *lists[1]])) > MAX_CHARACTERS:
        return f"is longer than {MAX_CHARACTERS} letters"
    return ""
