"""Hugging Face `datasets`: an object, or a folder that `save_to_disk` wrote.

What is known is in two columns of lists, `yes` and `no`, of a ClassLabel with the names: that is what is written. Else
one column of ClassLabel (a list, or one an item) says what is there, and the caller what it means not to be listed.
Else one column of lists of texts does the same (`tags`, where there are several); a row that is null says nothing.
Else one column of lists, all of one length, holds 1, 0 or None for each label, which is called by its place; else every
column that is no item and no id is a label: 1, 0 or None. Items are the column `text`, a column of pictures
or a column of vectors, `features`; ids are the column `item`, `id` or `name`. The parts `train` and `test` of a
`DatasetDict` are what is learned from and what is tested on.
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
from partly.data.headers import TAG_LISTS
from partly.data.item_columns import IDS
from partly.data.label_semantics import LabelSemantics, labels_of
from partly.data.protocols import DatasetFormat
from partly.data.table_view import matching_columns
from partly.data.tables import INVALID, parse_ternary, text_column
from partly.errors import DataError, listing
from partly.images.scan import cache_folder
from partly.items import Absent, Items, decode_texts, features, texts
from partly.labels import Labels

YES, NO = "yes", "no"
TEXT, VECTORS = "text", "features"
ONE = ("dataset_info.json", "state.json")
SEVERAL = "dataset_dict.json"
BLOCK = 1 << 10


def recognizes(path: Path) -> bool:
    return path.is_dir() and ((path / SEVERAL).is_file() or all((path / name).is_file() for name in ONE))


def is_object(x: object) -> bool:
    """Whether somebody gives a Dataset or a DatasetDict; nobody can who has not imported the library."""
    there = sys.modules.get("datasets")
    return there is not None and isinstance(x, there.Dataset | there.DatasetDict)


def read(path: Path, semantics: LabelSemantics) -> Dataset:
    try:
        return of_object(_library(path).load_from_disk(str(path)), semantics, str(path))
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def of_object(given: Any, semantics: LabelSemantics, where: str = "datasets") -> Dataset:
    if not isinstance(given, dict):
        return _part(given, semantics, where)
    strange = [name for name in given if name not in ("train", "test")]
    if strange or "train" not in given:
        raise DataError(
            f"{where}: has the parts {', '.join(given)}. Give one of them, or a DatasetDict of train and test."
        )
    train = _part(given["train"], semantics, f"{where}['train']")
    if "test" not in given:
        return train
    return Dataset(train.items, train.labels, test=_part(given["test"], semantics, f"{where}['test']"))


def write(data: Dataset, path: Path) -> None:
    """`item`, `yes` and `no`, and the items where they are features or texts."""
    library = _library(path)
    if data.items.kind == "pictures":
        raise DataError(f"{path}: texts and features are written here, and these items are pictures.")
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
            warnings.warn(
                f"{path}: this format has no place for the names of features; their order stays.", stacklevel=3
            )
        table[VECTORS] = pa.array(_vectors(data.items), pa.list_(pa.float32()))
        kinds[VECTORS] = library.List(library.Value("float32"))
    schema = library.Features(kinds)
    made = library.Dataset(
        pa.table(table).cast(schema.arrow_schema).replace_schema_metadata(schema.arrow_schema.metadata)
    )
    with _silent(), atomic_directory(path) as folder:
        made.save_to_disk(str(folder))


@contextmanager
def _silent() -> Iterator[None]:
    """Without the bars of the library, which are shown again afterwards."""
    import datasets

    shown = datasets.is_progress_bar_enabled()
    datasets.disable_progress_bars()
    try:
        yield
    finally:
        if shown:
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
    steps = range(0, len(items), BLOCK)
    return [word for start in steps for word in decode_texts(items.take(slice(start, start + BLOCK)))]


def _vectors(items: Items) -> list[Any]:
    found: list[Any] = []
    for start in range(0, len(items), BLOCK):
        found += list(items.take(slice(start, start + BLOCK)).numpy())
    return found


def _part(given: Any, semantics: LabelSemantics, where: str) -> Dataset:
    columns = given.features
    called = next((name for name in (semantics.id_column, *IDS) if name in columns), None)
    arrow = given.with_format("arrow")
    ids = list(map(str, range(len(given)))) if called is None else _cells(arrow, called, where)
    items, used = _items(given, arrow, columns, where)
    kept = [name for name in columns if name not in (called, used)]
    if semantics.label_columns:
        kept = matching_columns(kept, semantics.label_columns, where)
    return Dataset(items, _labels(arrow, columns, kept, ids, semantics, where))


def _cells(arrow: Any, name: str, where: str) -> list[str]:
    return [word for block in _blocks(arrow, name) for word in text_column(block, name, Path(where)).to_pylist()]


def _blocks(arrow: Any, name: str) -> Iterator[Any]:
    for table in arrow.select_columns([name]).iter(1 << 14):
        yield table.column(0).combine_chunks()


def _items(given: Any, arrow: Any, columns: Any, where: str) -> tuple[Any, str | None]:
    """The items and the column they come from."""
    if TEXT in columns:
        return texts(_cells(arrow, TEXT, where), where), TEXT
    if VECTORS in columns:
        blocks = [np.stack(block.to_numpy(zero_copy_only=False)) for block in _blocks(arrow, VECTORS) if len(block)]
        return features(np.concatenate(blocks) if blocks else np.empty((0, 1)), where), VECTORS
    pictures = [name for name, kind in columns.items() if type(kind).__name__ == "Image"]
    if pictures:
        return _pictures(given.select_columns(pictures[:1])), pictures[0]
    return Absent("features", (0,), len(given)), None


def _pictures(given: Any) -> Items:
    """The bytes, copied once into the cache folder, from where each is read when it is wanted."""
    kept = cache_folder() / "datasets" / f"{given._fingerprint}.parquet"
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with _silent(), atomic_write(kept) as file:
            given.to_parquet(file)
    return embedded_images.read(kept).items


def _labels(
    arrow: Any, columns: Any, kept: Sequence[str], ids: list[str], semantics: LabelSemantics, where: str
) -> Labels:
    lists = {name: _class_names(columns[name]) for name in kept}
    there = {name: words for name, words in lists.items() if words is not None}
    if {YES, NO} <= set(there) and there[YES] == there[NO]:
        found = [_listed(arrow, name, code) for name, code in ((YES, 1), (NO, -1))]
        rows, cells, z = (np.concatenate([one[k] for one in found]) for k in range(3))
        return labels_of(rows, cells, z, ids, there[YES], semantics=semantics, path=where)
    if len(there) == 1:
        name, words = next(iter(there.items()))
        semantics.need_absent(where, f"the column {name!r} lists what is there: the rest may be absent or unknown.")
        return labels_of(*_listed(arrow, name, 1), ids, words, semantics=semantics, path=where)
    if there:
        raise DataError(f"{where}: several columns hold classes: {', '.join(there)}. Keep one (.select_columns).")
    tagged = [name for name in kept if _holds_tags(columns[name])]
    if len(tagged) > 1:
        tagged = [name for name in tagged if name == TAG_LISTS] or tagged
    if len(tagged) > 1:
        raise DataError(
            f"{where}: several columns hold lists of texts: {', '.join(tagged)}. Say which one: --label-columns NAME "
            "(label_columns=)."
        )
    if tagged:
        lists_of_tags = [cell for block in _blocks(arrow, tagged[0]) for cell in cells_of_tags(block, semantics)]
        return labels_of_tags(lists_of_tags, ids, tagged[0], None, semantics, where)
    if len(kept) == 1 and (hot := _multi_hot(arrow, kept[0])) is not None:
        return Labels.from_ternary(semantics.settled(hot), ids=ids)
    return _wide(arrow, kept, ids, semantics, where)


def _class_names(kind: Any) -> list[str] | None:
    inner = getattr(kind, "feature", kind)
    return list(inner.names) if type(inner).__name__ == "ClassLabel" else None


def _holds_tags(kind: Any) -> bool:
    return getattr(getattr(kind, "feature", None), "dtype", None) in ("string", "large_string")


def _listed(arrow: Any, name: str, z: int) -> tuple[Any, Any, Any]:
    """Rows, columns and z. A class below 0 stands for none."""
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
    said = column >= 0
    return row[said], column[said], np.full(int(said.sum()), z, np.int8)


def _multi_hot(arrow: Any, name: str) -> npt.NDArray[np.int8] | None:
    """z, [N, L], of lists of 1, 0 or None, all of one length; None where a column holds anything else."""
    found = []
    for block in _blocks(arrow, name):
        if not (pa.types.is_list(block.type) or pa.types.is_large_list(block.type)) or block.null_count:
            return None
        z, lengths = parse_ternary(block.flatten()), set(block.value_lengths().to_pylist())
        if len(lengths) != 1 or (z == INVALID).any():
            return None
        found.append(z.reshape(len(block), *lengths))
    alike = len({z.shape[1] for z in found}) == 1
    return np.concatenate(found) if alike else None


def _wide(arrow: Any, names: Sequence[str], ids: list[str], semantics: LabelSemantics, where: str) -> Labels:
    z = np.zeros((len(ids), len(names)), np.int8)
    strange = []
    for j, name in enumerate(names):
        parts = [parse_ternary(block, missing=semantics.missing) for block in _blocks(arrow, name)]
        z[:, j] = np.concatenate([np.empty(0, np.int8), *parts])
        strange += [f"{name!r} ({arrow.features[name]})"] if (z[:, j] == INVALID).any() else []
    if strange:
        raise DataError(
            f"{where}: columns that are no labels (1, 0 or None): {len(strange)}"
            + listing(strange, len(strange))
            + "\nLeave them out: .remove_columns([...])."
        )
    return Labels.from_ternary(semantics.settled(z), names=names, ids=ids)


FORMAT = DatasetFormat("dataset", recognizes, read, write)
