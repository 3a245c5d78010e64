"""Another trained model as a teacher: the logits of a run folder, for the labels that both vocabularies share.

The run must not have been trained on the labels that it teaches; its weight would be too high.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from partly.atomic_io import PathLike, sha256_of
from partly.errors import DataError, SettingError
from partly.items import Items, source_items
from partly.teachers.contract import Block, Teacher, Vocabulary, names_of

RUN_FILE = "run.json"
# Set by `partly.engine`, which loads models and imports this package.
load_model: Callable[[Path], Any] | None = None


def is_run(path: Path) -> bool:
    """Tell whether a path is a run folder."""
    return (path / RUN_FILE).is_file()


class Run(Teacher):
    """Score items by a finished run.

    Parameters
    ----------
    path : str or Path
        Run folder, or a folder that `Classifier.save` wrote.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)
        if load_model is None or not is_run(self.path):
            raise SettingError(f"{self.path}: is no run folder. Name one that `partly train` or Classifier.save wrote.")
        self.model = load_model(self.path)

    def describe(self) -> str:
        return f"run {self.path.name}"

    def identity(self) -> dict[str, Any]:
        return {"kind": "run", "path": str(self.path.absolute()), "sha256": sha256_of(self.path / RUN_FILE)}

    @classmethod
    def from_identity(cls, identity: Mapping[str, Any]) -> Run | None:
        """Load the run again; None if the folder is gone."""
        path = Path(identity["path"])
        return cls(path) if is_run(path) else None

    def score_blocks(self, items: Items, labels: Vocabulary) -> Iterator[Block]:
        names = names_of(labels)
        at = {name: j for j, name in enumerate(self.model.names)}
        columns = np.array([at.get(name, -1) for name in names], np.int64)
        if len(names) and not (columns >= 0).any():
            raise DataError(
                f"{self.path}: none of its labels ({', '.join(self.model.names[:3])}, ...) is among those of the data "
                f"({', '.join(names[:3])}, ...)."
            )
        origin = getattr(self.model.method.task.items, "origin", None)
        source = source_items(items)
        readable = source if origin is not None and source.kind == origin.kind else items
        for logits in self.model.logit_blocks(readable):
            block = np.full((len(logits), len(names)), np.nan, np.float32)
            block[:, columns >= 0] = logits[:, columns[columns >= 0]]
            yield block
