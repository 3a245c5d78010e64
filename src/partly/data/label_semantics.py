"""Semantics that label files leave open and the caller decides; nothing is guessed.

Most formats list positives and are silent about the rest, which may be no or unknown; some mark uncertain entries. The
options have the same names in Python (`absent=`, `uncertain=`) and on the command line (`--absent`, `--uncertain`).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from partly.budget import Budget
from partly.data.matching import refuse_unknown_labels
from partly.data.paths import error_prefix
from partly.data.tables import UNCERTAIN
from partly.errors import DataError, SettingError, listing
from partly.labels import Labels

ENTRY_BYTES = 6  # memory per entry while unknown entries are filled in
CODES = {"unknown": 0, "yes": 1, "no": -1}
CHOICES = {"absent": ("unknown", "no"), "uncertain": ("unknown", "yes", "no")}
Codes = Sequence[int] | npt.NDArray[Any]


@dataclass(frozen=True)
class LabelSemantics:
    """Choices for reading what a label file leaves open.

    Parameters
    ----------
    absent : "unknown" or "no", optional
        Value of entries that the file does not mention.
    uncertain : "unknown", "yes" or "no", optional
        Value of entries that the file marks as uncertain.
    missing : tuple of str
        Further spellings of unknown in tables.
    label_columns : tuple of str
        Label columns of a table: names, `label_*` or `first..last`.
    id_column : str, optional
        Column with the ids of a table.
    tag_separator : str, optional
        Separator of the tags in a cell.
    """

    absent: str | None = None
    uncertain: str | None = None
    missing: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    id_column: str | None = None
    tag_separator: str | None = None

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            choice = getattr(self, name)
            if choice is not None and choice not in choices:
                raise SettingError(f"{name} = {choice!r}: must be {' or '.join(map(repr, choices))}.")

    @classmethod
    def from_options(
        cls,
        absent: str | None,
        uncertain: str | None,
        missing: Iterable[str] | None,
        label_columns: Iterable[str] | None,
        id_column: str | None,
        tag_separator: str | None,
    ) -> LabelSemantics:
        """Build from the options of `read`; a single text stands for a list of one."""
        spellings, columns = (
            (option,) if isinstance(option, str) else tuple(map(str, option or ()))
            for option in (missing, label_columns)
        )
        return cls(absent, uncertain, spellings, columns, id_column, tag_separator)

    def need_absent(self, path: object, why: str) -> None:
        """Refuse the file unless the caller has chosen a value for absent entries."""
        if self.absent is None:
            raise DataError(f"{path}: {why} {describe_option('absent')}")

    def resolve(self, z: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """Replace UNCERTAIN by the chosen value, and 0 by no if absent entries are no."""
        return np.where(
            z == UNCERTAIN,
            np.int8(CODES[self.uncertain or "unknown"]),
            np.where((z == 0) & (self.absent == "no"), np.int8(-1), z),
        )

    def fill_absent(self, labels: Labels, path: Path | str) -> Labels:
        """Fill unknown entries with no if the caller has chosen that; for files without uncertain entries."""
        if self.absent != "no":
            return labels
        hold_entries(labels.shape, path)
        return labels.mapped(lambda z, _: self.resolve(z))


def hold_entries(shape: tuple[int, int], path: Path | str) -> None:
    """Refuse completely known labels of this shape if they exceed the memory, or are far larger than the file."""
    Budget(path).hold(ENTRY_BYTES * shape[0] * shape[1])


def describe_option(name: str) -> str:
    """Explain how to choose the value of absent or uncertain entries."""
    choices = CHOICES[name]
    entries = {"absent": "entries that it does not mention", "uncertain": "those entries"}[name]
    options = " or ".join(f"--{name} {choice}" for choice in choices)
    return f"Choose the value of {entries}: {options} (in Python {name}={' or '.join(map(repr, choices))})."


def labels_of(
    rows: Codes,
    columns: Codes,
    z: Codes,
    ids: Sequence[str],
    names: Sequence[str],
    *,
    semantics: LabelSemantics,
    path: Path | str,
    wanted: Sequence[str] | None = None,
    unseen: Sequence[int] = (),
) -> Labels:
    """Build labels from the entries of a file: z [n] (yes, no, UNCERTAIN, or 0 for none) at rows and columns [n].

    wanted : the labels and their order, if fixed.
    unseen : items without any annotation; they stay unknown even if absent entries are no.
    """
    # The dtype is kept: for millions of entries, int32 takes half of the memory.
    row, column, code = (np.asarray(part) if len(part) else np.empty(0, np.int64) for part in (rows, columns, z))
    if wanted is not None:
        position = {name: j for j, name in enumerate(wanted)}
        refuse_unknown_labels([name for name in names if name not in position], wanted, lambda _: str(path))
        column, names = np.array([position[name] for name in names], np.int64)[column], wanted
    uncertain = code == UNCERTAIN
    value = LabelSemantics(uncertain=semantics.uncertain).resolve(code.astype(np.int8))  # a 0 is not an entry
    known = slice(None) if value.all() else np.flatnonzero(value)
    with error_prefix(Path(path)):
        labels = Labels.from_codes(row[known], column[known], (value[known] == 1).astype(np.int8), names, ids)
    if semantics.absent != "no":
        return labels
    hold_entries(labels.shape, path)
    fillable = np.ones(labels.shape, bool)
    fillable[row[uncertain], column[uncertain]] = False
    fillable[np.asarray(unseen, np.int64)] = False
    full = labels.rows(slice(None))
    return Labels.from_ternary(np.where(fillable & (full == 0), np.int8(-1), full), names=names, ids=ids)


def refuse_lossy_positives(labels: Labels, absent: str | None, path: Path) -> None:
    """Refuse to write labels to a format of positives only if no and unknown entries would become the same."""
    counts = labels.summary()
    if absent is None and counts["no"] and counts["unknown"]:
        raise DataError(
            f"{path}: this format lists positives only, but {counts['no']} entries are no and {counts['unknown']} are "
            "unknown; they could not be told apart when the file is read. Write another format (a long table holds "
            "all three values), use --absent unknown (absent='unknown') to drop the no, or --absent no (absent='no') "
            "to write unknown as no."
        )


def warn_of_dropped(items: Sequence[str], labels: Sequence[str], path: Path) -> None:
    """Warn of items and labels that a format cannot hold."""
    for what, dropped in (("items", items), ("labels", labels)):
        if dropped:
            warnings.warn(
                f"{path}: this format cannot hold {what} without entries; dropped: {len(dropped)}"
                + listing(map(repr, dropped), len(dropped)),
                stacklevel=4,
            )
