"""Parameters of an estimator from the fields of `TrainConfig`: `__init__`, its signature and its docstring."""

from __future__ import annotations

import dataclasses
import inspect
import textwrap
from collections.abc import Callable
from typing import Any

from partly.config import TrainConfig

WIDTH = 116  # of a line of the docstring


def make_init(aliases: dict[str, Any]) -> Callable[..., None]:
    """Return an `__init__` that takes a parameter per field of `TrainConfig`, then aliases, and stores each unchanged,
    as scikit-learn's `clone` needs it. Settings that are empty by default are None here: signatures are shared."""
    every = {f.name: None if f.default is dataclasses.MISSING else f.default for f in dataclasses.fields(TrainConfig)}
    parameters = [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)] + [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)
        for name, default in (every | aliases).items()
    ]
    signature = inspect.Signature(parameters)

    def init(*args: Any, **values: Any) -> None:
        bound = signature.bind(*args, **values)
        bound.apply_defaults()
        self = bound.arguments.pop("self")
        vars(self).update(bound.arguments)

    vars(init).update(__signature__=signature)
    init.__name__, init.__qualname__ = "__init__", "Classifier.__init__"
    return init


def describe_parameters() -> str:
    """Return the Parameters section of a docstring, a paragraph per field."""
    blocks = []
    for field in dataclasses.fields(TrainConfig):
        text = " ".join(filter(None, (field.metadata["help"], field.metadata["more"])))
        text = text.replace(": name=value. Repeatable.", "s, a dictionary.").replace(
            ". Repeatable.", "s, a dictionary."
        )
        kind = str(field.type).replace("Any", "str or torch module") if field.type == "Any" else field.type
        blocks.append(
            f"{field.name} : {kind}\n{textwrap.fill(text, WIDTH - 8, initial_indent='    ', subsequent_indent='    ')}"
        )
    return textwrap.indent("\n".join(blocks), "    ").lstrip()
