"""What run.json must say, checked before anything is made of it: a folder may come from anybody.

Written by hand, since it is short: a pattern is a type, a test with words, or a dictionary or list of patterns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args

from partly.errors import PartlyError
from partly.items import Kind
from partly.items.conditioning import is_conditioning
from partly.items.encoding import is_encoding
from partly.labels.names import check_names

MOST = 1 << 31  # of anything that is counted
DIMENSIONS = {"features": 2, "pictures": 4, "texts": 2}  # of all items together


@dataclass(frozen=True)
class Is:
    """A pattern: what a value must be, and how to say it."""

    words: str
    fits: Callable[[Any], bool]


def _names(value: Any) -> bool:
    if not isinstance(value, list) or not value or not all(isinstance(name, str) for name in value):
        return False
    try:
        return bool(check_names(value))
    except PartlyError:
        return False


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _sizes(value: Any) -> bool:
    plain = isinstance(value, list) and bool(value) and all(type(size) is int for size in value)
    return plain and 0 <= value[0] < MOST and all(1 <= size < MOST for size in value[1:])


DIGEST = Is("a SHA-256", lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None)
TEXT = Is("a text", lambda value: isinstance(value, str))
TABLE = Is("a table of names and values", lambda value: isinstance(value, dict))
ALIKE: dict[str, Any] = {  # of every kind of run
    "partly": TEXT,
    "recipe": TABLE,
    "labels": Is("names of labels, each another", _names),
    "features": Is("null, or names of features", lambda value: value is None or _texts(value)),
    "data": {
        "kind": TEXT,
        "shape": Is("numbers of items and what they are made of", _sizes),
        "sha256": DIGEST,
        "labels_sha256": DIGEST,
    },
    "validation": Is("null, or a table", lambda value: value is None or isinstance(value, dict)),
}
COUNT = Is("null, or a whole number", lambda value: value is None or (type(value) is int and 0 <= value < MOST))
NUMBER = Is("null, or a number", lambda value: value is None or (type(value) in (int, float) and 0 <= value < MOST))
PER_LABEL: dict[str, Any] = {  # of an estimator per label, what it was fitted with
    "estimator_sha256": DIGEST,
    "unknown": TEXT,
    "weight_unknown": NUMBER,
    "bags": COUNT,
    "seed": Is("a whole number", lambda value: type(value) is int),
    "features_in": COUNT,
    "scores_sha256": Is("null, or a SHA-256", lambda value: value is None or DIGEST.fits(value)),
}
MADE_OF: dict[str, Any] = {
    "kind": Is(f"one of {', '.join(get_args(Kind))}", lambda value: value in get_args(Kind)),
    "shape": Is("sizes of an item", _sizes),
    "backbone": TEXT,
    "settings": TABLE,
    "measured": Is("null, or means and scales", lambda value: value is None or isinstance(value, list)),
    "weights": TEXT,
}


def problems(description: dict[str, Any]) -> list[str]:
    """What run.json says that cannot be, each with its place."""
    found = list(_differs(description, ALIKE, ""))
    if found:
        return found
    if "kind" in description:  # of an estimator per label, items may be anything that it takes
        return list(_differs(description["recipe"], PER_LABEL, "recipe."))
    data = description["data"]
    if data["kind"] not in DIMENSIONS:
        return [f"data.kind = {data['kind']!r:.80} should be one of {', '.join(DIMENSIONS)}"]
    if len(data["shape"]) != DIMENSIONS[data["kind"]]:
        found.append(f"data.shape = {data['shape']!r:.80} is not that of {data['kind']}")
    names = description["features"]
    if names is not None and len(names) != data["shape"][-1]:
        found.append(f"features: {len(names)} names for {data['shape'][-1]} features")
    if "conditioning" in data and not is_conditioning(data["conditioning"], data["shape"][-1]):
        found.append("data.conditioning should be [feature, shift, factor, limit] for each of some features")
    if "encoding" in data and not is_encoding(data["encoding"], data["shape"][-1]):
        found.append("data.encoding should say how the columns of a table become these features")
    return found + list(_differs(data["made_of"], MADE_OF, "data.made_of.") if "made_of" in data else ())


def _differs(value: Any, pattern: dict[str, Any], place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place.removesuffix('.')} should be {TABLE.words}"
        return
    for name, wanted in pattern.items():
        if name not in value:
            yield f"{place}{name} is missing"
        elif isinstance(wanted, dict):
            yield from _differs(value[name], wanted, f"{place}{name}.")
        elif not wanted.fits(value[name]):
            yield f"{place}{name} = {value[name]!r:.80} should be {wanted.words}"
