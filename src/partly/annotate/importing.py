"""Answers that people have given elsewhere: tasks of Label Studio, as an import in the ledger."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from partly.annotate.desk import Desk
from partly.annotate.people import Person
from partly.data.label_studio import read, recognises
from partly.data.meaning import Meaning
from partly.errors import DataError, LabelError, listing


@dataclass(frozen=True)
class Imported:
    """statements: that were appended. imported_before: the batch that says the same already, 0 for none."""

    statements: int
    imported_before: int = 0


def take_in(desk: Desk, person: Person, content: bytes, force: bool = False) -> Imported:
    """Append what a file says of the items and labels that are asked about. Where people disagreed, it is unknown, and
    what nobody chose is unknown too: silence is no answer here. The same again changes nothing, unless forced."""
    with tempfile.TemporaryDirectory(prefix="partly-") as folder:
        path = Path(folder) / "tasks.json"
        path.write_bytes(content)
        if not recognises(path):
            raise DataError("This is no list of tasks of Label Studio (Export, JSON).")
        try:
            said = read(path, None, Meaning("unknown", "unknown"))
        except DataError as error:
            raise DataError(str(error).replace(str(path), "the file")) from None
    strange = [f"item {name!r}" for name in said.ids if name not in desk.rows]
    strange += [f"label {name!r}" for name in said.names if name not in desk.columns]
    if strange:
        raise LabelError(f"Nobody asks about {len(strange)} of these" + listing(strange, len(strange)))
    row, column, value = said.entries()
    items, names = np.array(said.ids, object)[row], np.array(said.names, object)[column]
    if not len(items):
        return Imported(0)
    last, yes, note = len(desk.ledger.log()), (value == 1).astype(int), "from Label Studio"
    batch = desk.ledger.append(items, names, yes, kind="import", author=person.name, note=note, skip_repeated=not force)
    return Imported(0, batch) if batch <= last else Imported(len(items))
