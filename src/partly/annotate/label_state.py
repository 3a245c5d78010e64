"""What is known by now, as these pages need it: the fold of the ledger beside the items that are asked about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress

import numpy as np
from sqlalchemy import Connection

from partly.annotate import group_commit
from partly.errors import LabelError, listing
from partly.labels import Hierarchy, Labels
from partly.ledger import Ledger
from partly.ledger.store import Joined

Answer = tuple[int, int, int]  # row, column, z


def beside(said: Labels, wanted: Labels, where: str, retired: Collection[str] = ()) -> Labels:
    """What a ledger says of the items and labels of these data, in their order; of items that it has not, and of labels
    that were retired, nothing."""
    odd = sorted((set(said.names) ^ set(wanted.names)) - set(retired))
    if odd:
        raise LabelError(
            f"{where}: has other labels than the data"
            + listing((f"{name!r}: only in the {'ledger' if name in said.names else 'data'}" for name in odd), len(odd))
            + "\nAsk about data of its own, or change its vocabulary."
        )
    rows = {name: row for row, name in enumerate(wanted.ids)}
    columns = {name: column for column, name in enumerate(wanted.names)}
    row, column, value = said.entries()
    at = np.array([rows.get(name, -1) for name in said.ids], np.int64)[row]
    across = np.array([columns[name] for name in said.names], np.int64)[column]
    here = at >= 0
    yes = (value[here] == 1).astype(np.int8)
    return Labels.from_codes(at[here], across[here], yes, wanted.names, wanted.ids)


def without(labels: Labels, answers: Iterable[Answer], hierarchy: Hierarchy | None) -> Labels:
    """What was known before these answers: neither they nor what follows from them."""
    said = list(answers)
    if not said:
        return labels
    rows = np.unique([row for row, _, _ in said])
    at = {int(row): i for i, row in enumerate(rows)}
    z = np.zeros((len(rows), labels.shape[1]), np.int8)
    for row, column, value in said:
        z[at[row], column] = value
    asked = np.zeros(z.shape, bool)
    asked[[at[row] for row, _, _ in said], [column for _, column, _ in said]] = True
    if hierarchy is not None:
        with suppress(LabelError):  # people contradict each other over it: then only what they said is left out
            asked |= hierarchy.deduce(Labels.from_ternary(z, names=labels.names)).rows(slice(None)) != 0
    at_row, at_column = np.nonzero(asked)
    return labels.with_entries(rows[at_row], at_column, np.zeros(len(at_row), np.int8))


def retired(ledger: Ledger) -> set[str]:
    """Labels that the ledger does not show any more: retired, merged into others, or renamed."""
    vocabulary = ledger.vocabulary()
    return {name for one in vocabulary.labels.values() for name in one.called} - set(vocabulary.names)


@contextmanager
def together(ledger: Ledger) -> Iterator[tuple[Ledger, Connection]]:
    """One transaction for the ledger and for what is kept beside it: what the ledger is told here is written, or not,
    along with all else that goes through the connection."""
    with group_commit.writing(ledger.store) as connection:
        joined = object.__new__(Ledger)
        joined.store = Joined(ledger.store, connection)  # type: ignore[assignment]
        yield joined, connection
