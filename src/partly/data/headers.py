"""By which columns a table of labels is told to be of one form and of no other. The rest is wide."""

from __future__ import annotations

from collections.abc import Sequence

from partly.data.tables import CELL_VALUES, INVALID, Table, first_cell, parse_cell

ID = "item"
LONG = (ID, "label", "value")
TAGS = (ID, "label")
TAG_LISTS = "tags"  # a column with all tags of an item
OPEN_IMAGES = ("ImageID", "LabelName", "Confidence")  # and Source; files of boxes have more
CHEXPERT = ("Path", "path", "dicom_id", "study_id")  # columns that hold the ids, the first that is there


def is_long(header: Sequence[str]) -> bool:
    return tuple(header) == LONG


def is_tags(table: Table) -> bool:
    """But for a wide one whose only label is named 'label', and holds what labels hold and not their names."""
    if tuple(table.header) != TAGS:
        return False
    first = first_cell(table, TAGS[1])
    return first is None or first not in CELL_VALUES


def is_tag_lists(table: Table) -> bool:
    """A column `tags` that holds names of labels; a label may be called so too, and then holds what labels hold."""
    if TAG_LISTS not in table.header or is_long(table.header) or is_tags(table):
        return False
    return not holds_values(table, TAG_LISTS)


def holds_values(table: Table, name: str) -> bool:
    """Whether the first cell of a column is yes, no or unknown, and not the name of a label or a list of them."""
    cell = first_cell(table, name)
    return (
        cell is None
        or (not isinstance(cell, list) and parse_cell(cell, INVALID) != INVALID)
        or str(cell) in ("-1", "-1.0")
    )


def is_open_images(header: Sequence[str]) -> bool:
    return set(OPEN_IMAGES) <= set(header) and ID not in header


def is_chexpert(header: Sequence[str]) -> bool:
    return ID not in header and not is_open_images(header) and any(name in header for name in CHEXPERT)
