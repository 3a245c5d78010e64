"""MULAN: features and labels in an `.arff` file, dense or sparse, with an `.xml` of the labels and their hierarchy.

Without the `.xml`, `-C n` in the name of the relation counts the labels as in MEKA: the first n attributes, or the last
if n is negative. A label is 1 (yes), 0, or ? (unknown). In a file with a ? anywhere, 0 is no; otherwise 0 may be no or
unknown, and the caller chooses.
"""

from __future__ import annotations

import csv
import io
import re
import warnings
from array import array
from collections.abc import Iterator, Mapping, Sequence
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
from partly.data.xml_tree import as_xml, read_xml, refuse_invalid_xml
from partly.errors import DataError, listing
from partly.items import SparseRows, features, sparse_features
from partly.labels import Hierarchy
from partly.labels.names import Names

SUFFIXES = (".arff",)
BLOCK_ITEMS = 1 << 10  # written at a time
COPIES = 4  # of the entries in memory while they are collected
MAX_DIGITS = 9  # of an index or a count
NUMERIC = ("numeric", "real", "integer")
VALUES = {"1": 1, "0": -1, "1.0": 1, "0.0": -1, "?": 0}
WORD = re.compile(r"""\s*('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\s{]\S*)\s*(.*)""", re.S)
PLAIN = re.compile(r"[A-Za-z0-9_.:/-]+")


@dataclass(frozen=True)
class Attribute:
    name: str
    values: tuple[str, ...] | None  # None: a number

    def number(self, cell: str) -> float:
        """Parse a cell as a number; nominal values by their position, except 0 and 1."""
        if self.values is None or set(self.values) <= {"0", "1"}:
            return float("nan") if cell == "?" else float(cell)
        return float("nan") if cell == "?" else float(self.values.index(cell))


def recognizes(path: Path) -> bool:
    return format_suffix(path) in SUFFIXES and path.is_file()


def read(path: Path, semantics: LabelSemantics) -> Dataset:
    relation, attributes, data_line = _header(path)
    labels, hierarchy = _labels(path, relation, [attribute.name for attribute in attributes])
    chosen = set(labels)
    feature_attributes = [attribute for attribute in attributes if attribute.name not in chosen]
    rows = _Rows(path, attributes, labels, {attribute.name: j for j, attribute in enumerate(feature_attributes)})
    for number, cells, sparse in _records(path, data_line, len(attributes)):
        rows.add(number, cells, sparse)
    z = np.frombuffer(rows.z, np.int8).reshape(-1, len(labels))
    if (z == 0).any():
        semantics = replace(semantics, absent="unknown")  # a 0 is a known no
    else:
        semantics.need_absent(path, "a MULAN file in which no label is ?: a label that is 0 may be absent or unknown.")
        z = np.where(z == 1, z, np.int8(0))
    row_index, columns = z.nonzero()
    ids = list(map(str, range(len(z))))
    observed = labels_of(row_index, columns, z[row_index, columns], ids, labels, semantics=semantics, path=path)
    with error_prefix(path):
        return Dataset(
            rows.items(len(z), tuple(attribute.name for attribute in feature_attributes)), observed, hierarchy=hierarchy
        )


def write(data: Dataset, path: Path) -> None:
    """Write features and labels, sparse if the items are. The format cannot hold ids."""
    items, labels = data.items, data.labels
    if items.kind != "features" or len(items.shape) != 1:
        raise DataError(f"{path}: this format holds features; these items are {items.kind}.")
    if labels.given_ids is not None:
        warnings.warn(f"{path}: this format cannot hold the ids of items; their order is kept.", stacklevel=3)
    names = items.names or tuple(f"feature {j}" for j in range(items.shape[0]))
    both = set(names) & set(labels.names)
    if both:
        raise DataError(f"{path}: a feature and a label have the same name" + listing(sorted(both), len(both)))
    refuse_invalid_xml(list(labels.names), path)
    parents = {} if data.hierarchy is None else data.hierarchy.single_parents(f"{path}: this format")
    with open_compressed(path) as file:
        file.writelines(f"{line}\n".encode() for line in _head(path, names, labels.names))
        for start in range(0, len(items), BLOCK_ITEMS):
            rows = slice(start, start + BLOCK_ITEMS)
            x, z = items.take(rows).numpy(), labels.rows(rows)
            for k in range(len(x)):
                file.write(_line(x[k], z[k], isinstance(items, SparseRows)).encode())
    write_file(_xml_path(path), _label_xml(labels.names, parents).encode())


def _head(path: Path, names: Sequence[str], labels: Sequence[str]) -> Iterator[str]:
    yield f"@relation {_quote(path.stem)}\n"
    yield from (f"@attribute {_quote(name)} numeric" for name in names)
    yield from (f"@attribute {_quote(name)} {{0,1}}" for name in labels)
    yield "\n@data"


def _line(x: Any, z: Any, sparse: bool) -> str:
    values = ["?" if value == 0 else "1" if value == 1 else "0" for value in z]
    if not sparse:
        return ",".join([*(f"{value:.9g}" for value in x), *values]) + "\n"
    cells = [f"{j} {x[j]:.9g}" for j in x.nonzero()[0]] + [
        f"{len(x) + j} {value}" for j, value in enumerate(values) if value != "0"
    ]
    return "{" + ",".join(cells) + "}\n"


def _label_xml(names: Names, parents: Mapping[str, str]) -> str:
    """Return the XML with every label nested in its parent, if the parent is a label, too."""

    def children(parent: str | None) -> Iterator[str]:
        for name in names:
            parent_name = parents.get(name)
            if (parent_name if parent_name in names else None) == parent:
                yield f'<label name="{as_xml(name)}">'
                yield from children(name)
                yield "</label>"

    return '<labels xmlns="http://mulan.sourceforge.net/labels">' + "".join(children(None)) + "</labels>\n"


def _xml_path(path: Path) -> Path:
    stem = path.name[: path.name.lower().rindex(SUFFIXES[0])]
    return path.with_name(f"{stem}.xml")


def _labels(path: Path, relation: str, names: list[str]) -> tuple[list[str], Hierarchy | None]:
    """Return the attributes that are labels, and their hierarchy."""
    own_file = _xml_path(path)
    shared_file = own_file.with_name(
        re.sub(r"[-_](train|test)$", "", own_file.stem) + ".xml"
    )  # one file for both parts
    xml_file = next((file for file in (own_file, shared_file) if file.is_file()), None)
    if xml_file is None:
        count = re.search(r"-C\s+(-?\d+)", relation)
        if count is None or len(count[1]) > MAX_DIGITS:
            raise DataError(
                f"{path}: cannot tell which attributes are labels. Name them in {own_file.name}, "
                "or count them in the relation (-C n)."
            )
        n = int(count[1])
        return (names[:n] if n >= 0 else names[n:]), None
    root = read_xml(xml_file)
    labels = [str(element.get("name")) for element in root.iter("label")]
    unknown = sorted(set(labels) - set(names))
    if unknown or not labels:
        raise DataError(
            f"{xml_file}: labels that are not attributes of {path.name}: {len(unknown)}"
            + listing(unknown, len(unknown))
        )
    pairs = {str(child.get("name")): str(element.get("name")) for element in root.iter("label") for child in element}
    with error_prefix(xml_file):
        # In the order of the attributes, which differs from that of the nested list.
        return [name for name in names if name in set(labels)], Hierarchy(pairs) if pairs else None


def _header(path: Path) -> tuple[str, list[Attribute], int]:
    """Return the name of the relation, the attributes, and the line of @data."""
    relation, attributes = "", []
    for number, line in _lines(path):
        keyword, _, rest = line.strip().partition(" ") if " " in line else line.strip().partition("\t")
        match keyword.lower():
            case "@relation":
                relation = rest
            case "@attribute":
                attributes.append(_attribute(rest, f"{path}:{number}"))
            case "@data":
                repeated = len(attributes) - len({attribute.name for attribute in attributes})
                if repeated:
                    raise DataError(f"{path}: {repeated} attributes repeat the name of another one.")
                return relation, attributes, number
    raise DataError(f"{path}: has no @data.")


def _attribute(text: str, place: str) -> Attribute:
    match = WORD.fullmatch(text)
    name, kind = (match[1], match[2].strip()) if match else ("", "")
    if name[:1] in "'\"" and name:
        name = re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r", "t": "\t"}.get(m[1], m[1]), name[1:-1])
    if kind.startswith("{") and kind.endswith("}"):
        return Attribute(name, tuple(_cells(kind[1:-1])))
    if kind.split()[:1] and kind.split()[0].lower() in NUMERIC:
        return Attribute(name, None)
    raise DataError(f"{place}: {text!r:.80}: an attribute must be numeric or list its values, such as {{0,1}}.")


class _Rows:
    """Collects rows: nonzero features, and labels as +1, -1 and 0."""

    def __init__(self, path: Path, attributes: list[Attribute], labels: list[str], places: dict[str, int]) -> None:
        self.path, self.attributes, self.width = path, attributes, len(places)
        self.label = {name: j for j, name in enumerate(labels)}
        self.place = places
        self.z, self.data, self.indices, self.ends = array("b"), array("f"), array("i"), array("q", [0])
        self.sparse, self.budget = False, Budget(path)

    def add(self, number: int, cells: Iterator[tuple[int, str]], sparse: bool) -> None:
        z = array("b", [-1] * len(self.label))  # a sparse row omits zeros
        self.sparse |= sparse
        for j, cell in cells:
            attribute = self.attributes[j]
            try:
                if attribute.name in self.label:
                    z[self.label[attribute.name]] = VALUES[cell]
                elif value := attribute.number(cell):
                    self.data.append(value)
                    self.indices.append(self.place[attribute.name])
            except (KeyError, ValueError) as error:
                raise DataError(
                    f"{self.path}:{number}: attribute {attribute.name!r}: {cell!r} is not one of its values."
                ) from error
        self.z.extend(z)
        self.ends.append(len(self.data))
        self.budget.hold_rows(1)
        self.budget.hold(COPIES * len(z) + 8 * (self.ends[-1] - self.ends[-2]))

    def items(self, count: int, names: tuple[str, ...]) -> Any:
        csr = (
            np.frombuffer(self.data, np.float32),
            np.frombuffer(self.indices, np.int32),
            np.frombuffer(self.ends, np.int64),
        )
        if not self.sparse:
            self.budget.hold(4 * count * self.width)
        x = sp.csr_array(csr, shape=(count, self.width))
        where = str(self.path)
        return sparse_features(x, where, names) if self.sparse else features(x.toarray(), where, names)


def _records(path: Path, data_line: int, width: int) -> Iterator[tuple[int, Iterator[tuple[int, str]], bool]]:
    """Yield the line number, the cells with their positions, and whether the row is sparse."""
    for number, line in _lines(path):
        text = line.strip()
        if number <= data_line:
            continue
        if text.startswith("{") and text.endswith("}"):
            pairs = [cell.strip().partition(" ") for cell in _cells(text[1:-1])]
            if any(not index.isdecimal() or len(index) > MAX_DIGITS or int(index) >= width for index, _, _ in pairs):
                raise DataError(
                    f"{path}:{number}: a sparse row is {{index value, ...}} with indices below {width}: {text:.60}"
                )
            yield number, ((int(index), cell.strip()) for index, _, cell in pairs), True
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
    """Yield the lines that are neither blank nor comments."""
    try:
        with open_decompressed(path) as file:
            for number, line in enumerate(file, 1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip() and not text.lstrip().startswith("%"):
                    yield number, text
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read ({error}).") from error


def _quote(name: str) -> str:
    if PLAIN.fullmatch(name):
        return name
    escaped = (
        name.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    )
    return f"'{escaped}'"


FORMAT = DatasetFormat("dataset", recognizes, read, write, suffixes=SUFFIXES)
