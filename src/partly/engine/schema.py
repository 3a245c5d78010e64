"""Schema of run.json, checked before a model is built from it: a folder may come from anyone.

The part `recipe` is derived from the fields of `ResolvedConfig`. The rest is a small table of `FieldSpec`s instead of
a pydantic model: pydantic comes with the extra `annotate` only, and a plain installation reads run folders too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_args, get_type_hints

from partly.config import STORED_NAMES, ResolvedConfig
from partly.errors import PartlyError
from partly.items import Kind
from partly.items.conditioning import is_conditioning
from partly.items.encoding import is_encoding
from partly.labels.names import check_names
from partly.registry import fits, spell_type

MAX_COUNT = 1 << 31  # of items, features and other sizes
DIMENSIONS = {"features": 2, "pictures": 4, "texts": 2}  # of all items together


@dataclass(frozen=True)
class FieldSpec:
    """Constraint on a value: a description for the message, and a test."""

    description: str
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
    return plain and 0 <= value[0] < MAX_COUNT and all(1 <= size < MAX_COUNT for size in value[1:])


DIGEST = FieldSpec(
    "a SHA-256", lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None
)
TEXT = FieldSpec("a text", lambda value: isinstance(value, str))
TABLE = FieldSpec("a table of names and values", lambda value: isinstance(value, dict))
COMMON: dict[str, Any] = {  # of every kind of run
    "partly": TEXT,
    "recipe": TABLE,
    "labels": FieldSpec("names of labels, each another", _names),
    "features": FieldSpec("null, or names of features", lambda value: value is None or _texts(value)),
    "data": {
        "kind": TEXT,
        "shape": FieldSpec("numbers of items and what they are made of", _sizes),
        "sha256": DIGEST,
        "labels_sha256": DIGEST,
    },
    "validation": FieldSpec("null, or a table", lambda value: value is None or isinstance(value, dict)),
}
COUNT = FieldSpec(
    "null, or a whole number", lambda value: value is None or (type(value) is int and 0 <= value < MAX_COUNT)
)
NUMBER = FieldSpec(
    "null, or a number", lambda value: value is None or (type(value) in (int, float) and 0 <= value < MAX_COUNT)
)
PER_LABEL: dict[str, Any] = {  # of an estimator per label, what it was fitted with
    "estimator_sha256": DIGEST,
    "unknown": TEXT,
    "weight_unknown": NUMBER,
    "bags": COUNT,
    "seed": FieldSpec("a whole number", lambda value: type(value) is int),
    "features_in": COUNT,
    "scores_sha256": FieldSpec("null, or a SHA-256", lambda value: value is None or DIGEST.fits(value)),
}
CHECKED_CLASSES: dict[str, Any] = {
    "kind": FieldSpec(f"one of {', '.join(get_args(Kind))}", lambda value: value in get_args(Kind)),
    "shape": FieldSpec("sizes of an item", _sizes),
    "backbone": TEXT,
    "settings": TABLE,
    "measured": FieldSpec("null, or means and scales", lambda value: value is None or isinstance(value, list)),
    "weights": TEXT,
}


def problems(description: dict[str, Any]) -> list[str]:
    """Return what is wrong with run.json, each problem with its place."""
    errors = list(_differences(description, COMMON, ""))
    if errors:
        return errors
    if "kind" in description:  # one estimator per label: items may be anything that it takes
        return list(_differences(description["recipe"], PER_LABEL, "recipe."))
    errors += _config_problems(description["recipe"])
    data = description["data"]
    if data["kind"] not in DIMENSIONS:
        return [f"data.kind = {data['kind']!r:.80} should be one of {', '.join(DIMENSIONS)}"]
    if len(data["shape"]) != DIMENSIONS[data["kind"]]:
        errors.append(f"data.shape = {data['shape']!r:.80} is not that of {data['kind']}")
    names = description["features"]
    if names is not None and len(names) != data["shape"][-1]:
        errors.append(f"features: {len(names)} names for {data['shape'][-1]} features")
    if "conditioning" in data and not is_conditioning(data["conditioning"], data["shape"][-1]):
        errors.append("data.conditioning should be [feature, shift, factor, limit] for each of some features")
    if "encoding" in data and not is_encoding(data["encoding"], data["shape"][-1]):
        errors.append("data.encoding should say how the columns of a table become these features")
    return errors + list(_differences(data["made_of"], CHECKED_CLASSES, "data.made_of.") if "made_of" in data else ())


def _config_problems(recipe: dict[str, Any]) -> Iterator[str]:
    """Compare `recipe` with the fields of `ResolvedConfig`. An older version may have written fewer of them."""
    hints = get_type_hints(ResolvedConfig)
    expected = {key: hints[name] for name, key in STORED_NAMES.items()}
    for key, value in recipe.items():
        if key not in expected:
            yield f"recipe.{key} is not an option of this version"
        elif not fits(value, expected[key]):
            yield f"recipe.{key} = {value!r:.80} should be {spell_type(expected[key])}"


def _differences(value: Any, pattern: dict[str, Any], place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place.removesuffix('.')} should be {TABLE.description}"
        return
    for name, wanted in pattern.items():
        if name not in value:
            yield f"{place}{name} is missing"
        elif isinstance(wanted, dict):
            yield from _differences(value[name], wanted, f"{place}{name}.")
        elif not wanted.fits(value[name]):
            yield f"{place}{name} = {value[name]!r:.80} should be {wanted.description}"
