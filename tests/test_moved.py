"""Names of 0.2 still import, and warn."""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from pathlib import Path

import pytest

import partly
from partly.moved import MOVED


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_a_moved_module_imports_under_its_old_name(old: str, new: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the parent of a module may have moved too
        importlib.import_module(old.rpartition(".")[0])
    sys.modules.pop(old, None)
    spec = importlib.import_module(new).__spec__
    with pytest.warns(DeprecationWarning, match=f"{old} is now {new}"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(new)
    assert module.__spec__ is spec


def test_a_module_of_a_moved_package_imports_too() -> None:
    for name in ("partly.choosing", "partly.choosing.priors"):
        sys.modules.pop(name, None)
    with pytest.warns(DeprecationWarning, match="is now") as warned:
        from partly.choosing.priors import estimate
    assert [str(warning.message).partition(";")[0] for warning in warned] == [
        "partly.choosing is now partly.model_choice",
        "partly.choosing.priors is now partly.model_choice.priors",
    ]
    assert estimate is partly.priors.estimate


def test_a_moved_package_is_an_attribute() -> None:
    sys.modules.pop("partly.choosing", None)
    vars(partly).pop("choosing", None)
    with pytest.warns(DeprecationWarning, match="partly.choosing"):
        assert partly.choosing is partly.model_choice  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        ("active", "Plan", "LoopConfig"),
        ("active.simulation", "against", "make_measure"),
        ("losses", "normaliser", "normalization_coefficients"),
        ("networks", "Standardise", "Standardize"),
        ("similarity", "Neighbours", "Neighbors"),
    ],
)
def test_a_renamed_attribute_of_a_module_warns(module: str, old: str, new: str) -> None:
    renamed = importlib.import_module(f"partly.{module}")
    with pytest.warns(DeprecationWarning, match=f"partly.{module}.{old} is now {new}"):
        assert getattr(renamed, old) is getattr(renamed, new)
    with pytest.raises(AttributeError, match="never"):
        renamed.never  # noqa: B018


def test_a_name_that_never_was_is_refused() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("partly.running")


def test_the_migration_guide_names_what_has_an_alias() -> None:
    root = Path(__file__).resolve().parent.parent
    guide = (root / "docs/migrate.md").read_text("utf-8")
    sources = "\n".join(path.read_text("utf-8") for path in (root / "src").rglob("*.py"))
    attributes = re.findall(r"^    (\w+) = RenamedAttribute\(", sources, re.M)
    moved = [old for old, new in MOVED.items() if new.rpartition(".")[0] != "partly.data.formats"]
    assert len(attributes) > 10
    named = re.compile(r"[\w.]+").findall(guide)
    words = {word for name in named for word in (name, name.rpartition(".")[2])}
    assert [name for name in (*attributes, *moved) if name not in words and name.rpartition(".")[0] not in moved] == []
