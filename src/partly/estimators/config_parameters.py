"""Parameters of an estimator from the fields of `TrainConfig`: `__init__`, its signature and its docstring."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

from partly.config import TrainConfig

LINE_WIDTH = 116


def make_init(aliases: Mapping[str, str], config: Any = TrainConfig) -> Callable[..., None]:
    """Return an `__init__` with a parameter per field of a configuration, then aliases (name -> type) that default to
    None. It stores each value unchanged, as scikit-learn's `clone` requires."""
    kind, parameters = inspect.Parameter.POSITIONAL_OR_KEYWORD, []
    for field in dataclasses.fields(config):
        is_settings = field.default is dataclasses.MISSING  # empty by default; a signature would share the dictionary
        default, hint = (None, f"{field.type} | None") if is_settings else (field.default, field.type)
        parameters.append(inspect.Parameter(field.name, kind, default=default, annotation=hint))
    parameters += [inspect.Parameter(name, kind, default=None, annotation=hint) for name, hint in aliases.items()]
    signature = inspect.Signature([inspect.Parameter("self", kind), *parameters], return_annotation="None")

    def init(*args: Any, **values: Any) -> None:
        bound = signature.bind(*args, **values)
        bound.apply_defaults()
        self = bound.arguments.pop("self")
        vars(self).update(bound.arguments)

    vars(init).update(__signature__=signature)
    init.__name__, init.__qualname__ = "__init__", "Classifier.__init__"
    init.__module__ = "partly.estimators.classifier"
    return init


def describe_parameters(config: Any = TrainConfig) -> str:
    """Return the Parameters section of a docstring, with a paragraph per field."""
    blocks = []
    for field in dataclasses.fields(config):
        text = " ".join(filter(None, (field.metadata["help"], field.metadata["more"])))
        if field.name.endswith("settings"):
            text = text.replace(": name=value", "").replace(". Repeatable", "").replace("Setting ", "Settings ", 1)
        lines = textwrap.wrap(text, LINE_WIDTH - 8)
        blocks.append("\n        ".join([f"{field.name} : {field.type}", *lines]))
    return "\n    ".join(blocks)
