"""The labels of the ledger, aligned with the items and labels of a project."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import suppress

import numpy as np

from partly.errors import LabelError, listing
from partly.labels import Hierarchy, Labels
from partly.ledger import Ledger

Answer = tuple[int, int, int]  # row, column, z


def align(labels: Labels, target: Labels, source: str, ignored: Collection[str] = ()) -> Labels:
    """Return `labels` with the items and label names of `target`; other items and ignored labels are dropped."""
    different = sorted((set(labels.names) ^ set(target.names)) - set(ignored))
    if different:
        places = (f"{name!r}: only in the {'ledger' if name in labels.names else 'data'}" for name in different)
        raise LabelError(
            f"{source}: the ledger has other labels than the data"
            + listing(places, len(different))
            + "\nUse the data of this ledger, or change its vocabulary."
        )
    rows = {name: row for row, name in enumerate(target.ids)}
    columns = {name: column for column, name in enumerate(target.names)}
    row, column, value = labels.entries()
    target_row = np.array([rows.get(name, -1) for name in labels.ids], np.int64)[row]
    target_column = np.array([columns[name] for name in labels.names], np.int64)[column]
    inside = target_row >= 0
    yes = (value[inside] == 1).astype(np.int8)
    return Labels.from_codes(target_row[inside], target_column[inside], yes, target.names, target.ids)


def exclude_answers(labels: Labels, answers: Iterable[Answer], hierarchy: Hierarchy | None) -> Labels:
    """Return the labels without these answers and without what the hierarchy implies from them."""
    answers = list(answers)
    if not answers:
        return labels
    row, column, value = np.array(answers, np.int64).T
    rows, place = np.unique(row, return_inverse=True)
    z = np.zeros((len(rows), labels.shape[1]), np.int8)
    answered = np.zeros(z.shape, bool)
    answered[place, column] = True
    for i, j, answer in zip(place, column, value, strict=True):  # the last answer to an entry counts
        z[i, j] = answer
    if hierarchy is not None:
        with suppress(LabelError):  # contradicting answers: nothing is implied
            answered |= hierarchy.deduce(Labels.from_ternary(z, names=labels.names)).rows(slice(None)) != 0
    place, column = np.nonzero(answered)
    return labels.with_entries(rows[place], column, np.zeros(len(place), np.int8))


def find_hidden_labels(ledger: Ledger) -> set[str]:
    """Return names that the ledger no longer shows: of labels that were retired, merged or renamed."""
    vocabulary = ledger.vocabulary()
    return {name for label in vocabulary.labels.values() for name in label.called} - set(vocabulary.names)
