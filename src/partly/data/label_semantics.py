"""What files leave open, and who says it: the caller.

Most formats list what is there and are silent about the rest, which may mean "no" or "nobody looked"; some have a mark
for what nobody is sure of. Both have one spelling everywhere, in Python (`absent=`, `uncertain=`) and on the command
line (`--absent`, `--uncertain`), and nothing is guessed.
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

ENTRY_BYTES = 6  # of every entry while the unknown ones are filled in
CODES = {"unknown": 0, "yes": 1, "no": -1}
CHOICES = {"absent": ("unknown", "no"), "uncertain": ("unknown", "yes", "no")}
Codes = Sequence[int] | npt.NDArray[Any]


@dataclass(frozen=True)
class LabelSemantics:
    """What the caller says about entries that a file does not mention, and about those it calls uncertain.

    Of tables also: missing, further spellings of unknown; label_columns, which columns are labels (names, `label_*`,
    `first..last`); id_column, which one holds the ids; tag_separator, what separates the tags of a cell.
    """

    absent: str | None = None
    uncertain: str | None = None
    missing: tuple[str, ...] = ()
    label_columns: tuple[str, ...] = ()
    id_column: str | None = None
    tag_separator: str | None = None

    def __post_init__(self) -> None:
        for name, words in CHOICES.items():
            word = getattr(self, name)
            if word is not None and word not in words:
                raise SettingError(f"{name} = {word!r}: may be {' or '.join(map(repr, words))}.")

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
        """Refuse to go on where nobody has said what is meant by silence."""
        if self.absent is None:
            raise DataError(f"{path}: {why} {how_to_say('absent')}")

    def settled(self, z: npt.NDArray[np.int8]) -> npt.NDArray[np.int8]:
        """Codes [...] of yes, no, 0 for nothing and UNSURE as yes, no and unknown."""
        return np.where(
            z == UNCERTAIN,
            np.int8(CODES[self.uncertain or "unknown"]),
            np.where((z == 0) & (self.absent == "no"), np.int8(-1), z),
        )

    def filled(self, labels: Labels, path: Path | str) -> Labels:
        """Labels of a file that has no uncertain entries: what it does not mention is no, where the caller says so."""
        if self.absent != "no":
            return labels
        hold_entries(labels.shape, path)
        return labels.mapped(lambda z, _: self.settled(z))


def hold_entries(shape: tuple[int, int], path: Path | str) -> None:
    """Refuse labels of this shape, all of them known, where they do not fit or the file is far too small for them."""
    Budget(path).hold(ENTRY_BYTES * shape[0] * shape[1])


def how_to_say(what: str) -> str:
    words = CHOICES[what]
    meant = {"absent": "entries that it does not mention", "uncertain": "those entries"}[what]
    options = " or ".join(f"--{what} {word}" for word in words)
    return f"Say what {meant} are: {options} (in Python {what}={' or '.join(map(repr, words))})."


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
    """Labels from what a file says: z [n] (yes, no, UNSURE, or 0: nothing) at rows and columns [n].

    wanted: which labels there are, and their order. unseen: items that nobody has looked at, of which nothing is known
    whatever the rest means.
    """
    # As they come: of millions of entries, int32 take half of the memory.
    row, column, code = (np.asarray(part) if len(part) else np.empty(0, np.int64) for part in (rows, columns, z))
    if wanted is not None:
        at = {name: j for j, name in enumerate(wanted)}
        refuse_unknown_labels([name for name in names if name not in at], wanted, lambda _: str(path))
        column, names = np.array([at[name] for name in names], np.int64)[column], wanted
    unsure = code == UNCERTAIN
    settled = LabelSemantics(uncertain=semantics.uncertain).settled(code.astype(np.int8))  # a 0 is not about an entry
    known = slice(None) if settled.all() else np.flatnonzero(settled)
    with error_prefix(Path(path)):
        said = Labels.from_codes(row[known], column[known], (settled[known] == 1).astype(np.int8), names, ids)
    if semantics.absent != "no":
        return said
    hold_entries(said.shape, path)
    open_to_no = np.ones(said.shape, bool)
    open_to_no[row[unsure], column[unsure]] = False
    open_to_no[np.asarray(unseen, np.int64)] = False
    full = said.rows(slice(None))
    return Labels.from_ternary(np.where(open_to_no & (full == 0), np.int8(-1), full), names=names, ids=ids)


def only_yes(labels: Labels, absent: str | None, path: Path) -> None:
    """Refuse what a file of nothing but yes would say wrongly, unless the caller wants it so."""
    known = labels.summary()
    if absent is None and known["no"] and known["unknown"]:
        raise DataError(
            f"{path}: such a file lists what is there and nothing else, and {known['no']} entries are known to be no, "
            f"{known['unknown']} unknown: nobody could tell them apart again. Write another format (a long table "
            "holds all three); or say --absent unknown (absent='unknown') to leave out what is known to be no, "
            "or --absent no (absent='no') to let what is unknown pass for no."
        )


def tell_lost(items: Sequence[str], labels: Sequence[str], path: Path) -> None:
    """Warn of items and labels for which a format has no place."""
    for what, lost in (("items", items), ("labels", labels)):
        if lost:
            told = listing(map(repr, lost), len(lost))
            warnings.warn(
                f"{path}: this format has no place for {what} of which nothing is said, and they are left out: "
                f"{len(lost)}{told}",
                stacklevel=4,
            )
