"""Presets: how papers trained, one TOML file per paper, for `recipe="durand2019"`.

Each value has its source. A preset fills in what the caller leaves open; what the paper does not say keeps its usual
default. Details without an option here (its network, other data sets) are in `beside`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from partly.errors import SettingError, did_you_mean
from partly.items import Kind

OPEN = ("method", "head")  # what "auto" leaves open
# Options that the note names where the paper does not state them.
REPORTED_IF_SILENT = ("optimizer", "lr", "weight_decay", "epochs", "batch_size", "schedule")


@dataclass(frozen=True)
class Preset:
    """The training options of one paper."""

    name: str
    paper: str
    values: dict[str, Any]
    sources: dict[str, str]  # of every value, `backbone_settings.size` among them
    beside: dict[str, str]

    def fill(self, options: Mapping[str, Any], kind: Kind, decoded: bool) -> tuple[dict[str, Any], str]:
        """Return the given options with those of the paper where nothing was given, and a note. kind: of the items;
        decoded: whether they can be augmented."""
        applies = {"backbone_settings": kind == "pictures", "augment": decoded}
        explicit = {name for name, value in options.items() if not (name in OPEN and value == "auto")}
        filled = dict(options)
        for name, value in self.values.items():
            of_another = (
                name.endswith("_settings") and name.removesuffix("_settings") in {"schedule", "head"} & explicit
            )
            if of_another or not applies.get(name, True):
                continue
            if isinstance(value, dict) and isinstance(options.get(name, {}), dict):
                filled[name] = value | options.get(name, {})
            elif name not in explicit:
                filled[name] = value
        silent = [name for name in REPORTED_IF_SILENT if name not in filled]
        return filled, f"recipe {self.name}" + (f", which does not say: {', '.join(silent)}" if silent else "")


@cache
def discover() -> dict[str, Preset]:
    """Return all presets by name."""
    files = sorted(resources.files(__name__).iterdir(), key=lambda file: file.name)
    tables = {file.name.removesuffix(".toml"): file.read_text("utf-8") for file in files if file.name.endswith(".toml")}
    return {name: _read(name, tomllib.loads(text)) for name, text in tables.items()}


def find(name: Any) -> Preset:
    if name not in discover():
        raise SettingError(f"There is no recipe {name!r}.{did_you_mean(str(name), discover())}")
    return discover()[name]


def _read(name: str, table: dict[str, Any]) -> Preset:
    values: dict[str, Any] = {}
    sources = {}
    for key, entry in _entries(table["values"]):
        outer, _, inner = key.partition(".")
        if inner:
            values.setdefault(outer, {})[inner] = entry["value"]
        else:
            values[outer] = entry["value"]
        sources[key] = entry["source"]
    return Preset(name, table["paper"], values, sources, table.get("beside", {}))


def _entries(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    for key, entry in table.items():
        if "source" in entry:
            yield prefix + key, entry
        else:
            yield from _entries(entry, f"{prefix}{key}.")
