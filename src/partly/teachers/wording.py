"""From the name of a label to phrases that a text encoder understands.

`game::strategy` becomes "game strategy" and "strategy"; `tvMonitor` becomes "tv Monitor"; underscores, hyphens and dots
are spaces. Names such as "c17", "0" or "label_3" are codes: nothing can be read from them, and they get no score.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from partly.errors import DataError, SettingError, did_you_mean, listing
from partly.labels.names import Names

Descriptions = Mapping[str, str | Sequence[str]]
# With a number behind them these say nothing.
PLACEHOLDERS = frozenset(
    (
        "category",
        "class",
        "cluster",
        "col",
        "column",
        "feature",
        "group",
        "id",
        "item",
        "label",
        "tag",
        "target",
        "topic",
    )
)
GUIDELINE_KEYS = frozenset(("text", "yes", "no"))
MIN_WORDS = 0.5  # share of names that are words, from which on a vocabulary is taken for one of words


def clean(name: str) -> str:
    """Return a name as words: separators become spaces, camel case is split."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name)
    return " ".join(re.sub(r"::|[-_./|:>]", " ", spaced).split())


def phrases(name: str) -> tuple[str, ...]:
    """Return the phrasings of a name: the whole, and the last part of a name with a path (`facet::value`, `a/b`)."""
    whole, last = clean(name), clean(re.split(r"::|/|>|\|", name)[-1])
    return (whole,) if last in ("", whole) else (whole, last)


def is_code(name: str) -> bool:
    """Tell whether a name is a code (c17, 0, label_3) and not words."""
    tokens = clean(name).split()
    words = [token for token in tokens if token.isalpha() and (len(token) > 1 or ord(token) > 0x2E80)]
    numbered = len(tokens) > len(words)
    return not words or (numbered and all(word.casefold() in PLACEHOLDERS for word in words))


def codes(names: Sequence[str], descriptions: Descriptions | None = None) -> list[str]:
    """Return the names that are codes and have no description."""
    return [name for name in names if name not in (descriptions or {}) and is_code(name)]


def are_words(names: Sequence[str], descriptions: Descriptions | None = None) -> bool:
    """Tell whether enough names are words to use label names by default."""
    return len(names) > 0 and len(codes(names, descriptions)) <= (1 - MIN_WORDS) * len(names)


def phrasings(
    names: Names, descriptions: Descriptions | None = None, prompts: Sequence[str] = ("{}",)
) -> list[tuple[str, ...]]:
    """Return the phrases of each label: its name in each prompt, and its descriptions; none for a code without any."""
    by_name = descriptions or {}
    check_names(names, by_name)
    phrases_of = [() if is_code(name) else phrases(name) for name in names]
    return [
        tuple(prompt.replace("{}", phrase) for phrase in own_phrases for prompt in prompts)
        + _texts(name, by_name.get(name, ()))
        for name, own_phrases in zip(names, phrases_of, strict=True)
    ]


def check_names(names: Sequence[str], descriptions: Descriptions) -> None:
    """Refuse descriptions of labels that do not exist."""
    unknown = [name for name in descriptions if name not in names]
    if unknown:
        lines = (f"{name!r}.{did_you_mean(name, names)}" for name in unknown)
        raise SettingError(
            f"descriptions: {len(unknown)} of {len(descriptions)} labels do not exist" + listing(lines, len(unknown))
        )


def describe_codes(silent: Sequence[str], labels: int) -> str:
    """State that some names are codes, and what to do."""
    examples = ", ".join(silent[:5]) + (", ..." if silent[5:] else "")
    return (
        f"{len(silent)} of {labels} label names are codes and get no score: {examples}. Describe them: --descriptions "
        "labels.toml, or LabelNames(descriptions={...})."
    )


def _texts(name: str, given: str | Sequence[str]) -> tuple[str, ...]:
    texts = (given,) if isinstance(given, str) else tuple(given)
    if not all(isinstance(text, str) and text.strip() for text in texts):
        raise SettingError(f"descriptions: {name!r} has {given!r}; give a text or a list of texts.")
    return texts


def read_descriptions(path: Path) -> dict[str, str | list[str]]:
    """Read a TOML file with a line `"label" = "description"`, or a list of phrasings, per label.

    A table `[descriptions]` or `[labels]` is read the same way. A guideline, which is a table with `text`, `yes` and
    `no`, is described by its text and its examples of yes.
    """
    try:
        content: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DataError(
            f"{path}: cannot be read as TOML ({error}). Write lines such as cat = 'a small animal'."
        ) from None
    for table in ("descriptions", "labels"):
        if isinstance(content.get(table), dict) and not set(content[table]) <= GUIDELINE_KEYS:
            content = content[table]
    wrong = [name for name, value in content.items() if not _is_description(value)]
    if wrong:
        raise DataError(f"{path}: neither a text nor a list of texts: {', '.join(wrong[:5])}.")
    return {name: _flatten(value) for name, value in content.items()}


def _is_description(value: Any) -> bool:
    return isinstance(value, str | list) or (isinstance(value, dict) and set(value) <= GUIDELINE_KEYS)


def _flatten(value: Any) -> str | list[str]:
    """Return the text of a guideline and its examples of yes; other values unchanged."""
    if not isinstance(value, dict):
        text: str | list[str] = value
        return text
    examples = value.get("yes", [])
    return [*filter(None, [value.get("text", "")]), *(examples if isinstance(examples, list) else [examples])]
