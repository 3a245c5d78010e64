"""Turn items into what a language model sees: texts, rows of a table as lines, and pictures as data URLs."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
import torch
from PIL import Image

from partly.errors import SettingError
from partly.items import ImageFiles, Items, TableRows, decode_texts, source_items
from partly.teachers.chat.request import Content

MAX_ROW_CHARACTERS = 8000
MAX_CELL_CHARACTERS = 400
JPEG_QUALITY = 85


def contents_of(items: Items, max_side: int) -> list[Content]:
    """Return each item as content of a prompt; a picture's longer side has at most `max_side` pixels."""
    source = source_items(items)
    if source.kind == "texts":
        return [Content(text) for text in decode_texts(source.take(slice(None)))] if len(source) else []
    if source.kind == "pictures":
        return [Content(picture=_data_url(source, i, max_side)) for i in range(len(source))]
    rows = source[slice(None)]
    lines = _table_lines(rows) if isinstance(rows, TableRows) else _number_lines(rows)
    return [Content("\n".join(part)[:MAX_ROW_CHARACTERS]) for part in lines]


def _table_lines(rows: TableRows) -> list[list[str]]:
    """Name and value of each cell that is not missing, before encoding."""
    select = slice(None) if rows.rows is None else rows.rows
    columns = [column.take(select) for column in rows.table.columns]
    gaps = [column.missing for column in columns]
    return [
        [f"{column.name}: {_cell(column.values[i])}" for column, gap in zip(columns, gaps, strict=True) if not gap[i]]
        for i in range(len(rows))
    ]


def _number_lines(items: Items) -> list[list[str]]:
    """Name and value of the features that are not zero."""
    names = items.names
    if names is None:
        origin = "" if items.origin is None else f" of the backbone {items.origin.backbone}"
        raise SettingError(
            f"These items are features{origin} without names, which say nothing to a language model. Give the texts or "
            "images themselves, or a table with column names."
        )
    if not len(items):
        return []
    x = items.take(slice(None)).numpy()
    return [[f"{names[j]}: {_cell(x[i, j])}" for j in np.flatnonzero(x[i]).tolist()] for i in range(len(x))]


def _cell(value: Any) -> str:
    text = f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
    return " ".join(text.split())[:MAX_CELL_CHARACTERS]


def _data_url(items: Items, item: int, max_side: int) -> str:
    """Decode an image by our own reader, which drops everything but its pixels, and encode it again."""
    if isinstance(items, ImageFiles):
        pixels = items.whole(item, max_side)
    else:
        pixels = items[np.array([item])].take(slice(None))[0].to(torch.uint8).permute(1, 2, 0).numpy()
    image = Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
    image.thumbnail((max_side, max_side))
    file = io.BytesIO()
    image.save(file, "JPEG", quality=JPEG_QUALITY)
    return f"data:image/jpeg;base64,{base64.b64encode(file.getvalue()).decode()}"
