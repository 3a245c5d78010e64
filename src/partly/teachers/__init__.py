"""Teachers: sources of scores that are not trained on these labels. One kind per file; a new file adds a kind.

Examples are the label names read by a pretrained encoder, a language model, an older model, and a rule. `stacking`
weighs teachers against the model on entries that the model has not seen.
"""

from __future__ import annotations

import importlib
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partly import registry
from partly.errors import SettingError, did_you_mean

if TYPE_CHECKING:
    from partly.teachers.contract import Teacher
    from partly.teachers.label_names import LabelNames
    from partly.teachers.language_model import LanguageModel
    from partly.teachers.run import Run
    from partly.teachers.scores import Scores

__all__ = [
    "LabelNames",
    "LanguageModel",
    "Run",
    "Scores",
    "Teacher",
    "as_teacher",
    "as_teachers",
    "discover",
    "from_identity",
]

NAMES, NONE = "names", "none"
CLASSES = {
    "LabelNames": "label_names",
    "LanguageModel": "language_model",
    "Run": "run",
    "Scores": "scores",
    "Teacher": "contract",
}


def __getattr__(name: str) -> Any:
    if name in CLASSES:
        return getattr(importlib.import_module(f"{__name__}.{CLASSES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def discover() -> dict[str, registry.Info]:
    """Return every kind of teacher, by name (file name, `_` written `-`)."""
    return registry.folder(__name__, "teacher", _class_in, registry.Info)


def as_teacher(given: Any) -> Teacher:
    """Return a teacher for "names", a path, an array, a table or a teacher."""
    from partly.teachers.contract import Teacher
    from partly.teachers.label_names import LabelNames
    from partly.teachers.scores import Scores

    if isinstance(given, Teacher):
        return given
    if isinstance(given, str) and given == NAMES:
        return LabelNames()
    if isinstance(given, str | Path) and not Path(given).is_file():
        raise SettingError(
            f"teacher = {str(given)!r}: there is no such file.{did_you_mean(str(given), (NAMES, NONE))} Or name a "
            "score file (.parquet, .csv, .npz) or a run folder."
        )
    return Scores(given)


def as_teachers(given: Any) -> tuple[Teacher, ...]:
    """Return teachers for one value or a list; none for None and "none". A list of numbers is an array of scores."""
    if given is None or (isinstance(given, str) and given == NONE):
        return ()
    if isinstance(given, list | tuple) and not (given and isinstance(given[0], list | tuple)):
        return tuple(as_teacher(part) for part in given)
    return (as_teacher(given),)


def from_identity(identity: Mapping[str, Any]) -> Teacher | None:
    """Return the teacher that a saved identity describes; None if it cannot be restored."""
    kind = registry.find(str(identity.get("kind")), discover(), "teacher")
    teacher: Teacher | None = kind.make.from_identity(identity)  # type: ignore[attr-defined]
    return teacher


def _class_in(module: types.ModuleType) -> Callable[..., Any] | None:
    from partly.teachers.contract import Teacher

    classes = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Teacher) and value.__module__ == module.__name__
    ]
    return classes[0] if classes and classes[0] is not Teacher else None
