"""MULAN: features and labels in an `.arff` file, dense or sparse, and an `.xml` beside it that names the labels, one
below the other where there is a hierarchy. Without one, `-C n` in the name of the relation counts them, as MEKA does:
the first n attributes are labels, or the last where n is negative.

A label is 1 (yes), 0, or ? (unknown). In a file that has a ? anywhere, 0 is no; in one that has none it may be no or
unknown: the caller says.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from partly.atomic_io import write_file
from partly.budget import Budget
from partly.data.compression import open_compressed, open_decompressed
from partly.data.dataset import Dataset
from partly.data.label_semantics import LabelSemantics, labels_of
from partly.data.paths import error_prefix, format_suffix
from partly.data.protocols import DatasetFormat
from partly.data.xml_tree import as_xml, read_xml, refuse_no_xml
from partly.errors import DataError, listing
from partly.items import SparseRows, features, sparse_features
from partly.labels import Hierarchy

SUFFIXES = (".arff",)
BLOCK = 1 << 10  # items written at a time
COPIES = 4  # of the entries while they are put together
MAX_DIGITS = 9  # of a place or a count
NUMERIC = ("numeric", "real", "integer")
VALUES = {"1": 1, "0": -1, "1.0": 1, "0.0": -1, "?": 0}
WORD = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]\S*)\s*(.*)""", re.S)
PLAIN = re.compile(r"[A-Za-z0-9_.:/-]+")


@dataclass(frozen=True)
class Attribute:
    name: str
    values: tuple[str, ...] | None  # None: a number

    def number(self, cell: str) -> float:
        """A nominal one by its place, but 0 and 1 as they are."""
        if self.values is None or set(self.values) <= {"0", "1"}:
            return float("nan") if cell == "?" else float(cell)
        return float("nan") if cell == "?" else float(self.values.index(cell))


def recognizes(path: Path) -> bool:
    return format_suffix(path) in SUFFIXES and path.is_file()


def read(path: Path, semantics: LabelSemantics) -> Dataset:
    relation, attributes, begins = _header(path)
    labels, hierarchy = _labels(path, relation, [one.name for one in attributes])
    chosen = set(labels)
    kept = [one for one in attributes if one.name not in chosen]
    found = _Rows(path, attributes, labels, {one.name: j for j, one in enumerate(kept)})
    for number, cells, sparse in _records(path, begins, len(attributes)):
        found.add(number, cells, sparse)
    z = np.frombuffer(found.z, np.int8).reshape(-1, len(labels))
    if (z == 0).any():
        semantics = replace(semantics, absent="unknown")  # what is a 0 is known to be no
    else:
        semantics.need_absent(
            path, "a MULAN file in which no label is ?: where a label is 0, it may be absent or unknown."
        )
        z = np.where(z == 1, z, np.int8(0))
    rows, columns = z.nonzero()
    ids = list(map(str, range(len(z))))
    known = labels_of(rows, columns, z[rows, columns], ids, labels, semantics=semantics, path=path)
    with error_prefix(path):
        return Dataset(found.items(len(z), tuple(one.name for one in kept)), known, hierarchy=hierarchy)


def write(data: Dataset, path: Path) -> None:
    """Sparse where the items are. Ids have no place in such a file."""
    items, labels = data.items, data.labels
    if items.kind != "features" or len(items.shape) != 1:
        raise DataError(f"{path}: holds features, and these items are {items.kind}.")
    if labels.given_ids is not None:
        warnings.warn(f"{path}: this format has no place for the ids of items; their order stays.", stacklevel=3)
    names = items.names or tuple(f"feature {j}" for j in range(items.shape[0]))
    both = set(names) & set(labels.names)
    if both:
        raise DataError(f"{path}: a feature and a label have one name" + listing(sorted(both), len(both)))
    refuse_no_xml(list(labels.names), path)
    with open_compressed(path) as file:
        file.writelines(f"{line}\n".encode() for line in _head(path, names, labels.names))
        for start in range(0, len(items), BLOCK):
            rows = slice(start, start + BLOCK)
            x, z = items.take(rows).numpy(), labels.rows(rows)
            for k in range(len(x)):
                file.write(_line(x[k], z[k], isinstance(items, SparseRows)).encode())
    write_file(_xml_of(path), _xml(data).encode())


def _head(path: Path, names: Sequence[str], labels: Sequence[str]) -> Iterator[str]:
    yield f"@relation {_quoted(path.stem)}\n"
    yield from (f"@attribute {_quoted(name)} numeric" for name in names)
    yield from (f"@attribute {_quoted(name)} {{0,1}}" for name in labels)
    yield "\n@data"


def _line(x: Any, z: Any, sparse: bool) -> str:
    said = ["?" if one == 0 else "1" if one == 1 else "0" for one in z]
    if not sparse:
        return ",".join([*(f"{value:.9g}" for value in x), *said]) + "\n"
    cells = [f"{j} {x[j]:.9g}" for j in x.nonzero()[0]] + [f"{len(x) + j} {w}" for j, w in enumerate(said) if w != "0"]
    return "{" + ",".join(cells) + "}\n"


def _xml(data: Dataset) -> str:
    """A label below its parent, where there is a hierarchy and the parent is a label too."""
    parents = {} if data.hierarchy is None else data.hierarchy.parents
    names = data.labels.names

    def nested(word: str | None) -> Iterator[str]:
        for name in names:
            above = parents.get(name)
            if (above if above in names else None) == word:
                yield f'<label name="{as_xml(name)}">'
                yield from nested(name)
                yield "</label>"

    return '<labels xmlns="http://mulan.sourceforge.net/labels">' + "".join(nested(None)) + "</labels>\n"


def _xml_of(path: Path) -> Path:
    stem = path.name[: path.name.lower().rindex(SUFFIXES[0])]
    return path.with_name(f"{stem}.xml")


def _labels(path: Path, relation: str, names: list[str]) -> tuple[list[str], Hierarchy | None]:
    """Which attributes are labels, and which lies below which."""
    beside = _xml_of(path)
    shared = beside.with_name(re.sub(r"[-_](train|test)$", "", beside.stem) + ".xml")  # one for both parts
    found = next((file for file in (beside, shared) if file.is_file()), None)
    if found is None:
        count = re.search(r"-C\s+(-?\d+)", relation)
        if count is None or len(count[1]) > MAX_DIGITS:
            raise DataError(
                f"{path}: which attributes are labels? {beside.name} should name them, "
                "or the relation count them (-C n)."
            )
        n = int(count[1])
        return (names[:n] if n >= 0 else names[n:]), None
    root = read_xml(found)
    labels = [str(one.get("name")) for one in root.iter("label")]
    lost = sorted(set(labels) - set(names))
    if lost or not labels:
        raise DataError(
            f"{found}: labels that are no attributes of {path.name}: {len(lost)}" + listing(lost, len(lost))
        )
    pairs = {str(child.get("name")): str(one.get("name")) for one in root.iter("label") for child in one}
    with error_prefix(found):
        # The order is that of the attributes: a nested list has another.
        return [name for name in names if name in set(labels)], Hierarchy(pairs) if pairs else None


def _header(path: Path) -> tuple[str, list[Attribute], int]:
    """The relation's name, the attributes, and the line on which the data begin."""
    relation, attributes = "", []
    for number, line in _lines(path):
        keyword, _, rest = line.strip().partition(" ") if " " in line else line.strip().partition("\t")
        match keyword.lower():
            case "@relation":
                relation = rest
            case "@attribute":
                attributes.append(_attribute(rest, f"{path}:{number}"))
            case "@data":
                twice = len(attributes) - len({one.name for one in attributes})
                if twice:
                    raise DataError(f"{path}: {twice} attributes have the name of another one.")
                return relation, attributes, number
    raise DataError(f"{path}: there is no @data in it.")


def _attribute(text: str, place: str) -> Attribute:
    found = WORD.fullmatch(text)
    name, kind = (found[1], found[2].strip()) if found else ("", "")
    if name[:1] in "'\"" and name:
        name = re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r", "t": "\t"}.get(m[1], m[1]), name[1:-1])
    if kind.startswith("{") and kind.endswith("}"):
        return Attribute(name, tuple(_cells(kind[1:-1])))
    if kind.split()[:1] and kind.split()[0].lower() in NUMERIC:
        return Attribute(name, None)
    raise DataError(
        f"{place}: {text!r:.80}: an attribute is numeric or lists its values: {{0,1}}. Others are not read."
    )


class _Rows:
    """Items one after the other: features as the numbers that are not 0, labels as +1, -1 and 0."""

    def __init__(self, path: Path, attributes: list[Attribute], labels: list[str], places: dict[str, int]) -> None:
        self.path, self.attributes, self.width = path, attributes, len(places)
        self.label = {name: j for j, name in enumerate(labels)}
        self.place = places
        self.z, self.data, self.indices, self.ends = array("b"), array("f"), array("i"), array("q", [0])
        self.sparse, self.budget = False, Budget(path)

    def add(self, number: int, cells: Iterator[tuple[int, str]], sparse: bool) -> None:
        z = array("b", [-1] * len(self.label))  # a sparse row leaves out what is 0
        self.sparse |= sparse
        for j, cell in cells:
            one = self.attributes[j]
            try:
                if one.name in self.label:
                    z[self.label[one.name]] = VALUES[cell]
                elif value := one.number(cell):
                    self.data.append(value)
                    self.indices.append(self.place[one.name])
            except (KeyError, ValueError) as error:
                raise DataError(f"{self.path}:{number}: attribute {one.name!r}: {cell!r} cannot be.") from error
        self.z.extend(z)
        self.ends.append(len(self.data))
        self.budget.hold_rows(1)
        self.budget.hold(COPIES * len(z) + 8 * (self.ends[-1] - self.ends[-2]))

    def items(self, count: int, names: tuple[str, ...]) -> Any:
        parts = (
            np.frombuffer(self.data, np.float32),
            np.frombuffer(self.indices, np.int32),
            np.frombuffer(self.ends, np.int64),
        )
        if not self.sparse:
            self.budget.hold(4 * count * self.width)
        x = sp.csr_array(parts, shape=(count, self.width))
        where = str(self.path)
        return sparse_features(x, where, names) if self.sparse else features(x.toarray(), where, names)


def _records(path: Path, begins: int, width: int) -> Iterator[tuple[int, Iterator[tuple[int, str]], bool]]:
    """Line, cells with their places, and whether the row is sparse."""
    for number, line in _lines(path):
        text = line.strip()
        if number <= begins:
            continue
        if text.startswith("{") and text.endswith("}"):
            pairs = [cell.strip().partition(" ") for cell in _cells(text[1:-1])]
            if any(not place.isdecimal() or len(place) > MAX_DIGITS or int(place) >= width for place, _, _ in pairs):
                raise DataError(
                    f"{path}:{number}: a sparse row is {{place value, ...}}, places below {width}: {text:.60}"
                )
            yield number, ((int(place), cell.strip()) for place, _, cell in pairs), True
            continue
        cells = _cells(text)
        if len(cells) != width:
            raise DataError(f"{path}:{number}: {len(cells)} cells for {width} attributes.")
        yield number, enumerate(cells), False


def _cells(text: str) -> list[str]:
    if "'" not in text and '"' not in text:
        return [cell.strip() for cell in text.split(",")] if text.strip() else []
    quote = "'" if "'" in text else '"'
    return [
        cell.strip()
        for cell in next(csv.reader(io.StringIO(text), quotechar=quote, skipinitialspace=True, escapechar="\\"))
    ]


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines that are neither blank nor comments."""
    try:
        with open_decompressed(path) as file:
            for number, line in enumerate(file, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip() and not text.lstrip().startswith("%"):
                    yield number, text
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def _quoted(word: str) -> str:
    if PLAIN.fullmatch(word):
        return word
    marked = (
        word.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return f"'{marked}'"


FORMAT = DatasetFormat("dataset", recognizes, read, write, suffixes=SUFFIXES)
