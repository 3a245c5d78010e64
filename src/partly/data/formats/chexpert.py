"""CheXpert: a wide table whose ids are in the column Path (MIMIC-CXR: dicom_id or study_id), a column per finding; 1
is yes, 0 no, blank not mentioned and -1 uncertain. Columns that describe the patient or the picture are left alone.

What is not mentioned is unknown, unless the caller says `absent="no"`. What -1 means the caller must say
(`uncertain=`).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from partly.data.formats.wide import read_cells, write_cells
from partly.data.headers import CHEXPERT, is_chexpert
from partly.data.label_semantics import LabelSemantics
from partly.data.protocols import LabelFormat
from partly.data.splits import COLUMN as SPLIT
from partly.data.splits import has_split
from partly.data.tables import SUFFIXES, is_table, open_table
from partly.errors import DataError
from partly.labels import Labels

ID = CHEXPERT[0]
BESIDE = (*CHEXPERT, "subject_id", "Sex", "Age", "Frontal/Lateral", "AP/PA")


def recognizes(path: Path) -> bool:
    return is_table(path) and path.is_file() and is_chexpert(open_table(path).header)


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    table = open_table(path)
    called = next((name for name in CHEXPERT if name in table.header), None)
    if called is None:
        raise DataError(f"{table.place(-1)}: none of the columns {', '.join(CHEXPERT)} is there to hold the ids.")
    labels = [name for name in table.header if name not in BESIDE and not (name == SPLIT and has_split(table))]
    return read_cells(table, called, labels, names, semantics)


def write(labels: Labels, path: Path) -> None:
    """Nothing is written as uncertain: what is unknown is blank."""
    lost = [name for name in labels.names if name in BESIDE]
    if lost:
        raise DataError(f"{path}: in such a file {', '.join(lost)} would not be a label. Write form='wide'.")
    write_cells(labels, path, ID)


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
