"""Hugging Face `datasets`: an object, or a folder that `save_to_disk` wrote.

Labels are the first of these that exists:

- two columns of lists, `yes` and `no`, of a ClassLabel (this is what is written);
- one column of ClassLabel, with lists or single classes; the caller chooses the value of the others;
- one column of lists of texts, `tags` if there are several; null means unknown;
- one column of lists of equal length with 1, 0 or None for each label, named by position;
- all columns that are neither items nor ids, with 1, 0 or None.

Items are the column `text`, a column of images, or a column of vectors, `features`; ids are the column `item`, `id` or
`name`. The parts `train` and `test` of a `DatasetDict` are the training and the test part.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from partly.atomic_io import atomic_directory, atomic_write
from partly.data.dataset import Dataset
from partly.data.formats import embedded_images
from partly.data.formats.tag_lists import cells_of_tags, labels_of_tags
from partly.data.item_columns import IDS
from partly.data.label_semantics import LabelSemantics, labels_of
from partly.data.protocols import DatasetFormat
from partly.data.table_layout import TAG_LISTS, find_columns
from partly.data.tables import INVALID, parse_ternary, text_column
from partly.errors import DataError, listing
from partly.images.scan import cache_folder
from partly.items import Absent, Items, decode_texts, features, texts
from partly.labels import Labels

YES, NO = "yes", "no"
TEXT, VECTORS = "text", "features"
DATASET_FILES = ("dataset_info.json", "state.json")
DICT_FILE = "dataset_dict.json"
BLOCK_ITEMS = 1 << 10


def recognizes(path: Path) -> bool:
    return path.is_dir() and ((path / DICT_FILE).is_file() or all((path / name).is_file() for name in DATASET_FILES))


def is_object(x: object) -> bool:
    """Return whether this is a Dataset or a DatasetDict, without importing the library."""
    library = sys.modules.get("datasets")
    return library is not None and isinstance(x, library.Dataset | library.DatasetDict)


def read(path: Path, semantics: LabelSemantics) -> Dataset:
    try:
        return of_object(_library(path).load_from_disk(str(path)), semantics, str(path))
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def of_object(source: Any, semantics: LabelSemantics, where: str = "datasets") -> Dataset:
    if not isinstance(source, dict):
        return _read_part(source, semantics, where)
    other_parts = [name for name in source if name not in ("train", "test")]
    if other_parts or "train" not in source:
        raise DataError(
            f"{where}: has the parts {', '.join(source)}. Pass one of them, or a DatasetDict of train and test."
        )
    train = _read_part(source["train"], semantics, f"{where}['train']")
    if "test" not in source:
        return train
    return Dataset(train.items, train.labels, test=_read_part(source["test"], semantics, f"{where}['test']"))


def write(data: Dataset, path: Path) -> None:
    """Write the columns `item`, `yes` and `no`, and the items if they are features or texts."""
    library = _library(path)
    if data.items.kind == "pictures":
        raise DataError(f"{path}: this format holds texts and features; these items are images.")
    labels, table = data.labels, {}
    table["item"] = pa.array(labels.ids, pa.string())
    for name, code in ((YES, 1), (NO, -1)):
        table[name] = _lists(labels, code)
    kinds = {"item": library.Value("string")}
    kinds |= {name: library.List(library.ClassLabel(names=list(labels.names))) for name in (YES, NO)}
    if data.items.kind == "texts":
        table[TEXT] = pa.array(_texts(data.items), pa.string())
        kinds[TEXT] = library.Value("string")
    elif not isinstance(data.items, Absent):
        if data.items.names is not None:
            warnings.warn(f"{path}: this format cannot hold the names of features; their order is kept.", stacklevel=3)
        table[VECTORS] = pa.array(_vectors(data.items), pa.list_(pa.float32()))
        kinds[VECTORS] = library.List(library.Value("float32"))
    schema = library.Features(kinds)
    dataset = library.Dataset(
        pa.table(table).cast(schema.arrow_schema).replace_schema_metadata(schema.arrow_schema.metadata)
    )
    with _no_progress_bars(), atomic_directory(path) as folder:
        dataset.save_to_disk(str(folder))


@contextmanager
def _no_progress_bars() -> Iterator[None]:
    """Hide the progress bars of the library for a while."""
    import datasets

    enabled = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if enabled:
            datasets.enable_progress_bars()


def _library(path: Path) -> Any:
    try:
        import datasets
    except ImportError:
        raise DataError(f"{path}: needs the library `datasets`: pip install 'partly[huggingface]'.") from None
    return datasets


def _lists(labels: Labels, code: int) -> Any:
    rows, columns, values = labels.entries()
    chosen = (values == 1) == (code == 1)
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows[chosen], minlength=len(labels)))])
    return pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), pa.array(columns[chosen], pa.int64())).cast(
        pa.list_(pa.int64())
    )


def _texts(items: Items) -> list[str]:
    steps = range(0, len(items), BLOCK_ITEMS)
    return [text for start in steps for text in decode_texts(items.take(slice(start, start + BLOCK_ITEMS)))]


def _vectors(items: Items) -> list[Any]:
    vectors: list[Any] = []
    for start in range(0, len(items), BLOCK_ITEMS):
        vectors += list(items.take(slice(start, start + BLOCK_ITEMS)).numpy())
    return vectors


def _read_part(source: Any, semantics: LabelSemantics, where: str) -> Dataset:
    columns = source.features
    id_column = next((name for name in (semantics.id_column, *IDS) if name in columns), None)
    arrow = source.with_format("arrow")
    ids = list(map(str, range(len(source)))) if id_column is None else _text_cells(arrow, id_column, where)
    items, used = _items(source, arrow, columns, where)
    label_columns = [name for name in columns if name not in (id_column, used)]
    if semantics.label_columns:
        label_columns = find_columns(label_columns, semantics.label_columns, where)
    return Dataset(items, _labels(arrow, columns, label_columns, ids, semantics, where))


def _text_cells(arrow: Any, name: str, where: str) -> list[str]:
    return [cell for block in _blocks(arrow, name) for cell in text_column(block, name, Path(where)).to_pylist()]


def _blocks(arrow: Any, name: str) -> Iterator[Any]:
    for table in arrow.select_columns([name]).iter(1 << 14):
        yield table.column(0).combine_chunks()


def _items(source: Any, arrow: Any, columns: Any, where: str) -> tuple[Any, str | None]:
    """Return the items and the column they come from."""
    if TEXT in columns:
        return texts(_text_cells(arrow, TEXT, where), where), TEXT
    if VECTORS in columns:
        blocks = [np.stack(block.to_numpy(zero_copy_only=False)) for block in _blocks(arrow, VECTORS) if len(block)]
        return features(np.concatenate(blocks) if blocks else np.empty((0, 1)), where), VECTORS
    image_columns = [name for name, kind in columns.items() if type(kind).__name__ == "Image"]
    if image_columns:
        return _read_images(source.select_columns(image_columns[:1])), image_columns[0]
    return Absent("features", (0,), len(source)), None


def _read_images(source: Any) -> Items:
    """Copy the bytes once to the cache folder, from which each image is read on demand."""
    copy = cache_folder() / "datasets" / f"{source._fingerprint}.parquet"
    if not copy.exists():
        copy.parent.mkdir(parents=True, exist_ok=True)
        with _no_progress_bars(), atomic_write(copy) as file:
            source.to_parquet(file)
    return embedded_images.read(copy).items


def _labels(
    arrow: Any, columns: Any, label_columns: Sequence[str], ids: list[str], semantics: LabelSemantics, where: str
) -> Labels:
    lists = {name: _class_names(columns[name]) for name in label_columns}
    classes = {name: names for name, names in lists.items() if names is not None}
    if {YES, NO} <= set(classes) and classes[YES] == classes[NO]:
        entries = [_entries_of_lists(arrow, name, code) for name, code in ((YES, 1), (NO, -1))]
        rows, cells, z = (np.concatenate([triple[k] for triple in entries]) for k in range(3))
        return labels_of(rows, cells, z, ids, classes[YES], semantics=semantics, path=where)
    if len(classes) == 1:
        name, names = next(iter(classes.items()))
        semantics.need_absent(where, f"the column {name!r} lists positives: other labels may be absent or unknown.")
        return labels_of(*_entries_of_lists(arrow, name, 1), ids, names, semantics=semantics, path=where)
    if classes:
        raise DataError(f"{where}: several columns hold classes: {', '.join(classes)}. Keep one (.select_columns).")
    tagged = [name for name in label_columns if _holds_tags(columns[name])]
    if len(tagged) > 1:
        tagged = [name for name in tagged if name == TAG_LISTS] or tagged
    if len(tagged) > 1:
        raise DataError(
            f"{where}: several columns hold lists of texts: {', '.join(tagged)}. Choose one: --label-columns NAME "
            "(label_columns=)."
        )
    if tagged:
        lists_of_tags = [cell for block in _blocks(arrow, tagged[0]) for cell in cells_of_tags(block, semantics)]
        return labels_of_tags(lists_of_tags, ids, tagged[0], None, semantics, where)
    if len(label_columns) == 1 and (hot := _multi_hot(arrow, label_columns[0])) is not None:
        return Labels.from_ternary(semantics.resolve(hot), ids=ids)
    return _wide(arrow, label_columns, ids, semantics, where)


def _class_names(kind: Any) -> list[str] | None:
    inner = getattr(kind, "feature", kind)
    return list(inner.names) if type(inner).__name__ == "ClassLabel" else None


def _holds_tags(kind: Any) -> bool:
    return getattr(getattr(kind, "feature", None), "dtype", None) in ("string", "large_string")


def _entries_of_lists(arrow: Any, name: str, z: int) -> tuple[Any, Any, Any]:
    """Return rows, columns and z of the listed classes; a class below 0 stands for none."""
    rows, columns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    start = 0
    for block in _blocks(arrow, name):
        if pa.types.is_list(block.type) or pa.types.is_large_list(block.type):
            lengths = block.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
            rows.append(np.repeat(np.arange(start, start + len(block)), lengths))
            columns.append(block.flatten().to_numpy(zero_copy_only=False).astype(np.int64))
        else:
            rows.append(np.arange(start, start + len(block)))
            columns.append(block.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64))
        start += len(block)
    row, column = np.concatenate(rows), np.concatenate(columns)
    listed = column >= 0
    return row[listed], column[listed], np.full(int(listed.sum()), z, np.int8)


def _multi_hot(arrow: Any, name: str) -> npt.NDArray[np.int8] | None:
    """Return z [N, L] of lists of 1, 0 or None of equal length; None if the column holds anything else."""
    blocks = []
    for block in _blocks(arrow, name):
        if not (pa.types.is_list(block.type) or pa.types.is_large_list(block.type)) or block.null_count:
            return None
        z, lengths = parse_ternary(block.flatten()), set(block.value_lengths().to_pylist())
        if len(lengths) != 1 or (z == INVALID).any():
            return None
        blocks.append(z.reshape(len(block), *lengths))
    equal_widths = len({z.shape[1] for z in blocks}) == 1
    return np.concatenate(blocks) if equal_widths else None


def _wide(arrow: Any, names: Sequence[str], ids: list[str], semantics: LabelSemantics, where: str) -> Labels:
    z = np.zeros((len(ids), len(names)), np.int8)
    not_labels = []
    for j, name in enumerate(names):
        blocks = [parse_ternary(block, missing=semantics.missing) for block in _blocks(arrow, name)]
        z[:, j] = np.concatenate([np.empty(0, np.int8), *blocks])
        not_labels += [f"{name!r} ({arrow.features[name]})"] if (z[:, j] == INVALID).any() else []
    if not_labels:
        raise DataError(
            f"{where}: columns that are not labels (1, 0 or None): {len(not_labels)}"
            + listing(not_labels, len(not_labels))
            + "\nLeave them out: .remove_columns([...])."
        )
    return Labels.from_ternary(semantics.resolve(z), names=names, ids=ids)


FORMAT = DatasetFormat("dataset", recognizes, read, write)
