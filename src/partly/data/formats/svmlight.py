"""svmlight, also of libsvm and of the extreme classification repository: a line per item, the numbers of its labels,
then `number:value` for each feature that is not 0. A first line of three numbers (items, features, labels) may say how
many.

Labels that are not listed may be absent or unknown: the caller says. Features stay sparse. Written files begin with
comments that hold the names, and each line ends in one with the id, where there are such; both are read again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from partly.atomic_io import read_json
from partly.budget import Budget
from partly.data.compression import open_compressed, open_decompressed
from partly.data.dataset import Dataset
from partly.data.label_semantics import LabelSemantics, labels_of
from partly.data.paths import error_prefix, format_suffix
from partly.data.protocols import DatasetFormat
from partly.errors import DataError
from partly.items import SparseRows, sparse_features

SUFFIXES = (".svm", ".libsvm", ".svmlight", ".txt")
MARK = "# partly "  # begins the comments that hold names
BLOCK = 1 << 10  # items written at a time
MAX_LABEL = 2.0**53  # up to here a fraction is a whole number where it looks like one
FEATURE_BYTES = 32  # of a feature that is never there: its statistics, its weights
NUMBER = rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
ROW = re.compile(rb"\s*(%s(,%s)*)?((^|\s+)\d+:%s)+\s*" % (NUMBER, NUMBER, NUMBER))
COUNTS = re.compile(rb"\s*\d+\s+\d+\s+\d+\s*")


def recognizes(path: Path) -> bool:
    """By its first line that says something."""
    if format_suffix(path) not in SUFFIXES or not path.is_file():
        return False
    try:
        with open_decompressed(path) as file:
            lines = (line.partition(b"#")[0] for line in iter(lambda: file.readline(1 << 20), b""))
            first = next((line for line in lines if line.strip()), b"")
    except OSError:
        return False
    return bool(ROW.match(first) or COUNTS.fullmatch(first))


def read(path: Path, semantics: LabelSemantics) -> Dataset:
    from sklearn.datasets import load_svmlight_file

    semantics.need_absent(path, "a svmlight file lists labels: those that it does not list may be absent or unknown.")
    lines = _Lines(path)
    try:
        x, listed = load_svmlight_file(lines, multilabel=True, zero_based=lines.zero_based)
    except (ValueError, OverflowError, OSError) as error:
        raise DataError(f"{path}:{lines.number}: not a line of labels and features ({error}).") from error
    budget = Budget(path)
    budget.hold_rows(len(listed))
    budget.hold_rows(lines.counts[2] if lines.counts else 0)
    budget.hold(FEATURE_BYTES * max(x.shape[1], lines.counts[1] if lines.counts else 0))
    rows = np.repeat(np.arange(len(listed)), [len(one) for one in listed])
    codes = np.concatenate([np.empty(0), *(np.asarray(one, float) for one in listed)])
    whole = np.isfinite(codes) & (codes >= 0) & (np.floor(codes) == codes) & (codes < MAX_LABEL)
    if not whole.all():
        raise DataError(f"{path}: labels must be whole numbers from 0 on; {codes[~whole][0]:g}.")
    names = lines.names.get("labels") or _numbered(codes, lines.counts)
    ids = lines.ids if len(set(lines.ids)) == len(listed) else list(map(str, range(len(listed))))
    at = {name: j for j, name in enumerate(_numbered(codes, lines.counts))} if "labels" not in lines.names else None
    columns = codes.astype(np.int64) if at is None else np.array([at[str(int(c))] for c in codes], np.int64)
    if len(columns) and columns.max() >= len(names):
        raise DataError(f"{path}: the label {columns.max()} is not among the {len(names)} that it names.")
    labels = labels_of(rows, columns, np.ones(len(rows)), ids, names, semantics=semantics, path=path)
    return Dataset(_features(x, lines, path), labels)


def _features(x: Any, lines: _Lines, path: Path) -> SparseRows:
    called = lines.names.get("features")
    width = max(x.shape[1], len(called or ()), lines.counts[1] if lines.counts else 0)
    if called and len(called) < width:
        raise DataError(f"{path}: {width} features, of which only {len(called)} have names.")
    wide = sp.csr_array((x.data, x.indices, x.indptr), shape=(x.shape[0], width))
    with error_prefix(path):
        return sparse_features(wide, str(path), None if called is None else tuple(called))


def _numbered(codes: Any, counts: tuple[int, ...] | None) -> list[str]:
    """Labels that have no names are called by their numbers: all that there are, where that is said."""
    return list(map(str, range(counts[2]))) if counts else [str(int(code)) for code in np.unique(codes)]


def write(data: Dataset, path: Path) -> None:
    if data.items.kind != "features" or len(data.items.shape) != 1:
        raise DataError(f"{path}: holds features, and these items are {data.items.kind}.")
    if any("\n" in word or "\r" in word or word != word.strip() for word in data.labels.given_ids or ()):
        raise DataError(f"{path}: an id stands at the end of a line here, and some have ends of lines or outer spaces.")
    names = {"labels": list(data.labels.names)}
    names |= {} if data.items.names is None else {"features": list(data.items.names)}
    with open_compressed(path) as file:
        file.writelines(f"{MARK}{json.dumps({key: words})}\n".encode() for key, words in names.items())
        for start in range(0, len(data.items), BLOCK):
            rows = slice(start, start + BLOCK)
            x, z = data.items.take(rows).numpy(), data.labels.rows(rows)
            for k in range(len(x)):
                cells = " ".join(f"{j}:{x[k, j]:.9g}" for j in x[k].nonzero()[0]) or "0:0"
                there = ",".join(map(str, (z[k] == 1).nonzero()[0]))
                end = "" if data.labels.given_ids is None else f" # {data.labels.id_at(start + k)}"
                file.write(f"{there} {cells}{end}\n".encode())


def _names(text: bytes) -> dict[str, list[str]]:
    """Names in a comment of ours, which anybody may have written; what is wrong with them is a ValueError."""
    found = read_json(text)
    lists = found.values() if isinstance(found, dict) else [None]
    if not all(isinstance(words, list) and all(isinstance(word, str) for word in words) for words in lists):
        raise ValueError("a comment with names is none")
    return dict(found)


@dataclass
class _Lines:
    """The lines of a file for scikit-learn's reader, which is fast and says nothing of places; names, ids and counts
    are picked up as they go by."""

    path: Path
    names: dict[str, list[str]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    counts: tuple[int, ...] | None = None
    number: int = 0

    @property
    def zero_based(self) -> bool | str:
        with open_decompressed(self.path) as file:
            first = file.readline()
        return True if first.startswith(MARK.encode()) or COUNTS.fullmatch(first) else "auto"

    def read(self) -> bytes:
        raise NotImplementedError  # being there is what makes this a file to scikit-learn, which goes through the lines

    def __iter__(self) -> Iterator[bytes]:
        with open_decompressed(self.path) as file:
            for self.number, line in enumerate(file, 1):
                if line.startswith(MARK.encode()):
                    self.names |= _names(line[len(MARK) :])
                    continue
                said, _, comment = line.partition(b"#")
                if self.number == 1 and COUNTS.fullmatch(said):
                    self.counts = tuple(map(int, said.split()))
                    continue
                if said.strip():
                    self.ids += [comment.strip().decode("utf-8", "replace")] if comment.strip() else []
                    yield said + b"\n"


FORMAT = DatasetFormat("dataset", recognizes, read, write, suffixes=SUFFIXES, positives_only=True)
