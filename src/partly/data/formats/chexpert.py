"""CheXpert: a wide table with ids in the column Path (MIMIC-CXR: dicom_id or study_id) and one column per finding.

Cells are 1 (yes), 0 (no), blank (not mentioned) or -1 (uncertain). Blank is unknown unless `absent="no"`; the caller
must choose the value of -1 with `uncertain=`. Columns that describe the patient or the image are ignored.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from partly.data.formats.wide import read_cells, write_cells
from partly.data.label_semantics import LabelSemantics
from partly.data.protocols import LabelFormat
from partly.data.table_layout import CHEXPERT, SPLIT, has_split, is_chexpert
from partly.data.tables import SUFFIXES, is_table, open_table
from partly.errors import DataError
from partly.labels import Labels

ID = CHEXPERT[0]
NOT_LABELS = (*CHEXPERT, "subject_id", "Sex", "Age", "Frontal/Lateral", "AP/PA")


def recognizes(path: Path) -> bool:
    return is_table(path) and path.is_file() and is_chexpert(open_table(path).header)


def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels:
    table = open_table(path)
    id_column = next((name for name in CHEXPERT if name in table.header), None)
    if id_column is None:
        raise DataError(f"{table.place(-1)}: there is no column with ids: {', '.join(CHEXPERT)}.")
    labels = [name for name in table.header if name not in NOT_LABELS and not (name == SPLIT and has_split(table))]
    return read_cells(table, id_column, labels, names, semantics)


def write(labels: Labels, path: Path) -> None:
    """Write unknown as blank; nothing is written as uncertain."""
    ambiguous = [name for name in labels.names if name in NOT_LABELS]
    if ambiguous:
        raise DataError(f"{path}: this format does not read {', '.join(ambiguous)} as labels. Write form='wide'.")
    write_cells(labels, path, ID)


FORMAT = LabelFormat(recognizes, read, write, suffixes=SUFFIXES)
