"""svmlight, libsvm and the extreme classification repository: a line of labels and `number:value` features per item.

A first line may hold the numbers of items, features and labels. Labels that are not listed may be absent or unknown;
the caller chooses. Features stay sparse. Written files hold names in comments at the start, and ids in a comment at the
end of each line; reading restores both.
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
NAMES_COMMENT = "# partly "
BLOCK_ITEMS = 1 << 10  # written at a time
MAX_LABEL = 2.0**53  # floats represent whole numbers exactly up to here
FEATURE_BYTES = 32  # of statistics and weights per feature, even if it never occurs
NUMBER = rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
ROW = re.compile(rb"\s*(%s(,%s)*)?((^|\s+)\d+:%s)+\s*" % (NUMBER, NUMBER, NUMBER))
COUNTS = re.compile(rb"\s*\d+\s+\d+\s+\d+\s*")


def recognizes(path: Path) -> bool:
    """Return whether the first line that is not a comment has this form."""
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

    semantics.need_absent(path, "an svmlight file lists positives: other labels may be absent or unknown.")
    lines = _Lines(path)
    try:
        x, listed = load_svmlight_file(lines, multilabel=True, zero_based=lines.zero_based)
    except (ValueError, OverflowError, OSError) as error:
        raise DataError(f"{path}:{lines.number}: not a line of labels and features ({error}).") from error
    budget = Budget(path)
    budget.hold_rows(len(listed))
    budget.hold_rows(lines.counts[2] if lines.counts else 0)
    budget.hold(FEATURE_BYTES * max(x.shape[1], lines.counts[1] if lines.counts else 0))
    rows = np.repeat(np.arange(len(listed)), [len(of_item) for of_item in listed])
    numbers = np.concatenate([np.empty(0), *(np.asarray(of_item, float) for of_item in listed)])
    valid = np.isfinite(numbers) & (numbers >= 0) & (np.floor(numbers) == numbers) & (numbers < MAX_LABEL)
    if not valid.all():
        raise DataError(f"{path}: labels must be whole numbers from 0; found {numbers[~valid][0]:g}.")
    names = lines.names.get("labels") or _number_names(numbers, lines.counts)
    # Comments are ids only if every line has one and all differ.
    ids = lines.ids if len(set(lines.ids)) == len(listed) else list(map(str, range(len(listed))))
    columns = numbers.astype(np.int64)
    if "labels" not in lines.names and lines.counts is None:  # otherwise numbers are columns already
        column_of = {name: j for j, name in enumerate(names)}
        columns = np.array([column_of[str(number)] for number in columns], np.int64)
    if len(columns) and columns.max() >= len(names):
        raise DataError(f"{path}: the label {columns.max()} is beyond the {len(names)} labels that the file declares.")
    labels = labels_of(rows, columns, np.ones(len(rows)), ids, names, semantics=semantics, path=path)
    return Dataset(_features(x, lines, path), labels)


def _features(x: Any, lines: _Lines, path: Path) -> SparseRows:
    feature_names = lines.names.get("features")
    width = max(x.shape[1], len(feature_names or ()), lines.counts[1] if lines.counts else 0)
    if feature_names and len(feature_names) < width:
        raise DataError(f"{path}: only {len(feature_names)} of {width} features have names.")
    padded = sp.csr_array((x.data, x.indices, x.indptr), shape=(x.shape[0], width))
    with error_prefix(path):
        return sparse_features(padded, str(path), None if feature_names is None else tuple(feature_names))


def _number_names(numbers: Any, counts: tuple[int, ...] | None) -> list[str]:
    """Return the label numbers as names: all numbers if the file has counts, else those that occur."""
    return list(map(str, range(counts[2]))) if counts else [str(int(number)) for number in np.unique(numbers)]


def write(data: Dataset, path: Path) -> None:
    if data.items.kind != "features" or len(data.items.shape) != 1:
        raise DataError(f"{path}: this format holds features; these items are {data.items.kind}.")
    if any("\n" in text or "\r" in text or text != text.strip() for text in data.labels.given_ids or ()):
        raise DataError(f"{path}: ids are written at the end of lines, and some contain line ends or outer spaces.")
    names = {"labels": list(data.labels.names)}
    names |= {} if data.items.names is None else {"features": list(data.items.names)}
    with open_compressed(path) as file:
        file.writelines(f"{NAMES_COMMENT}{json.dumps({key: texts})}\n".encode() for key, texts in names.items())
        for start in range(0, len(data.items), BLOCK_ITEMS):
            rows = slice(start, start + BLOCK_ITEMS)
            x, z = data.items.take(rows).numpy(), data.labels.rows(rows)
            for k in range(len(x)):
                cells = " ".join(f"{j}:{x[k, j]:.9g}" for j in x[k].nonzero()[0]) or "0:0"
                positives = ",".join(map(str, (z[k] == 1).nonzero()[0]))
                end = "" if data.labels.given_ids is None else f" # {data.labels.id_at(start + k)}"
                file.write(f"{positives} {cells}{end}\n".encode())


def _parse_names(text: bytes) -> dict[str, list[str]]:
    """Parse names in a comment; raises ValueError if it is malformed."""
    names = read_json(text)
    lists = names.values() if isinstance(names, dict) else [None]
    if not all(isinstance(texts, list) and all(isinstance(text, str) for text in texts) for texts in lists):
        raise ValueError("malformed comment with names")
    return dict(names)


@dataclass
class _Lines:
    """Lines for scikit-learn's fast reader; remembers the line number, and collects names, ids and counts."""

    path: Path
    names: dict[str, list[str]] = field(default_factory=dict)
    ids: list[str] = field(default_factory=list)
    counts: tuple[int, ...] | None = None
    number: int = 0

    @property
    def zero_based(self) -> bool | str:
        with open_decompressed(self.path) as file:
            first = file.readline()
        return True if first.startswith(NAMES_COMMENT.encode()) or COUNTS.fullmatch(first) else "auto"

    def read(self) -> bytes:
        raise NotImplementedError  # scikit-learn requires this method, but iterates over the lines instead

    def __iter__(self) -> Iterator[bytes]:
        with open_decompressed(self.path) as file:
            for self.number, line in enumerate(file, 1):
                if line.startswith(NAMES_COMMENT.encode()):
                    self.names |= _parse_names(line[len(NAMES_COMMENT) :])
                    continue
                content, _, comment = line.partition(b"#")
                if self.number == 1 and COUNTS.fullmatch(content):
                    self.counts = tuple(map(int, content.split()))
                    continue
                if content.strip():
                    self.ids += [comment.strip().decode("utf-8", "replace")] if comment.strip() else []
                    yield content + b"\n"


FORMAT = DatasetFormat("dataset", recognizes, read, write, suffixes=SUFFIXES, positives_only=True)
