"""By which columns a table of labels is told to be of one form and of no other. The rest is wide."""

from __future__ import annotations

from collections.abc import Sequence

from partly.data.tables import MEANING, Table, first_cell

ID = "item"
LONG = (ID, "label", "value")
TAGS = (ID, "label")
OPEN_IMAGES = ("ImageID", "LabelName", "Confidence")  # and Source; files of boxes have more
CHEXPERT = ("Path", "path", "dicom_id", "study_id")  # columns that hold the ids, the first that is there


def is_long(header: Sequence[str]) -> bool:
    return tuple(header) == LONG


def is_tags(table: Table) -> bool:
    """But for a wide one whose only label is named 'label', and holds what labels hold and not their names."""
    return tuple(table.header) == TAGS and first_cell(table, TAGS[1]) not in MEANING


def is_open_images(header: Sequence[str]) -> bool:
    return set(OPEN_IMAGES) <= set(header) and ID not in header


def is_chexpert(header: Sequence[str]) -> bool:
    return ID not in header and not is_open_images(header) and any(name in header for name in CHEXPERT)
