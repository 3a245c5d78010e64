"""The contract of a format: typed functions, bundled as the `FORMAT` of a file in `data/formats/`.

mypy checks every function against its protocol where the file builds its `FORMAT`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from partly.data.dataset import Dataset
from partly.data.label_semantics import LabelSemantics
from partly.labels import Labels

Holds = Literal["labels", "items", "dataset"]


class Recognize(Protocol):
    """Return whether a file has this format, by its content or its name."""

    def __call__(self, path: Path) -> bool: ...


class ReadLabels(Protocol):
    """Read labels. `names` fixes the labels and their order; `semantics` decides what the file leaves open."""

    def __call__(self, path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels: ...


class WriteLabels(Protocol):
    """Write labels to a file, completely or not at all."""

    def __call__(self, labels: Labels, path: Path) -> None: ...


class ReadDataset(Protocol):
    """Read items, with their labels where the file holds both; otherwise the labels have no columns."""

    def __call__(self, path: Path, semantics: LabelSemantics) -> Dataset: ...


class WriteDataset(Protocol):
    """Write items, with their labels where the format holds both; completely or not at all."""

    def __call__(self, data: Dataset, path: Path) -> None: ...


@dataclass(frozen=True)
class LabelFormat:
    """A format of labels.

    Parameters
    ----------
    recognizes, read : callable
        See `Recognize` and `ReadLabels`.
    write : callable, optional
        None for a format that is only read.
    suffixes : tuple of str
        Endings of the file names; empty for a folder.
    positives_only : bool
        The format lists positives and nothing else.
    """

    recognizes: Recognize
    read: ReadLabels
    write: WriteLabels | None = None
    suffixes: tuple[str, ...] = ()
    positives_only: bool = False
    holds: ClassVar[Holds] = "labels"


@dataclass(frozen=True)
class DatasetFormat:
    """A format of items alone (`holds="items"`), or of items with their labels (`holds="dataset"`).

    The other parameters are those of `LabelFormat`.
    """

    holds: Literal["items", "dataset"]
    recognizes: Recognize
    read: ReadDataset
    write: WriteDataset | None = None
    suffixes: tuple[str, ...] = ()
    positives_only: bool = False


Format = LabelFormat | DatasetFormat
