"""Small files that want gigabytes, or crash a parser: each is refused, and the process lives on in bounded memory."""

from __future__ import annotations

import gzip
import io
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from partly import budget
from partly.budget import Budget
from partly.data import read, read_labels
from partly.errors import DataError, SettingError

MEMORY = 2 << 30  # bytes that a process may have at its peak
LIMIT = 12 << 30  # and of addresses, so that a fault does not take the machine along

READER = f"""
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({LIMIT}, {LIMIT}))
from partly import data
from partly.errors import PartlyError

for path, how in json.loads(sys.argv[1]):
    try:
        (data.read if how.pop("whole", False) else data.read_labels)(path, **how)
        outcome = "read"
    except PartlyError as error:
        outcome = f"refused: {{error}}"
    except BaseException as error:
        outcome = f"raw {{type(error).__name__}}: {{error}}"
    # Not ru_maxrss: it survives exec, so the child of a large test process starts with that process's peak.
    status = dict(line.split(":", 1) for line in open("/proc/self/status"))
    peak = int(status["VmHWM"].split()[0])
    print(json.dumps([path, outcome, peak << 10]), flush=True)
"""


def _npy(shape: tuple[int, ...]) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue()


def _many(content: bytes, times: int) -> bytes:
    """A gzip file of many members, each of which is the same."""
    return gzip.compress(content) * times


def _texts(path: Path) -> None:
    words = pa.DictionaryArray.from_arrays(pa.array(np.zeros(4 << 20, np.int32)), pa.array(["x" * 2000]))
    pq.write_table(pa.table({"text": words}), path)


def _nulls(path: Path) -> None:
    columns = {"item": pa.nulls(1 << 24, pa.string()), "cat": pa.nulls(1 << 24, pa.int8())}
    pq.write_table(pa.table(columns), path)


def _numbers(path: Path) -> None:
    columns = {"item": pa.nulls(1 << 20, pa.string())} | {f"x{j}": pa.array(np.zeros(1 << 20)) for j in range(60)}
    pq.write_table(pa.table(columns), path)


def _npz(path: Path, **parts: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(f"{name}.npy", content)


def _empty_labels(path: Path) -> None:
    names = io.BytesIO()
    np.save(names, np.array([], "<U1"))
    _npz(path, ternary=_npy((1 << 30, 0)).replace(b"<f4", b"|i1"), names=names.getvalue())


def _coco(path: Path) -> None:
    images = [{"id": i, "file_name": str(i)} for i in range(30_000)]
    categories = [{"id": i, "name": str(i)} for i in range(30_000)]
    path.write_text(json.dumps({"images": images, "categories": categories, "annotations": []}))


TASK = b'{"data":{},"annotations":[]},'
BOMBS: dict[str, tuple[Callable[[Path], object], dict[str, object]]] = {
    "rows.npy": (lambda path: path.write_bytes(_npy((1 << 30, 0))), {"whole": True}),
    "labels.npz": (_empty_labels, {}),
    "texts.parquet": (_texts, {"whole": True}),
    "nulls.parquet": (_nulls, {}),
    "numbers.parquet": (_numbers, {"whole": True}),
    "rows.csv.gz": (lambda path: path.write_bytes(gzip.compress(b"item,cat\n") + _many(b"a,\n" * (1 << 21), 300)), {}),
    "cells.csv.gz": (
        lambda path: path.write_bytes(gzip.compress(b"item" + b",x" * 9 + b"\n") + _many(b",\n" * (1 << 21), 300)),
        {"whole": True},
    ),
    "line.jsonl.gz": (lambda path: path.write_bytes(_many(b" " * (1 << 22), 300)), {}),
    "tasks.json.gz": (lambda path: path.write_bytes(gzip.compress(b"[") + _many(TASK * (1 << 17), 300)), {}),
    "element.json.gz": (
        lambda path: path.write_bytes(gzip.compress(b'[{"data":{"a":[[]') + _many(b",[]" * (1 << 20), 300)),
        {},
    ),
    "number.json": (lambda path: path.write_text(f'[{{"data": {{"item": {"1" * 4400}}}}}]'), {}),
    "split.json": (lambda path: path.write_text(" " * (1 << 16) + f'[{{"data": {{"item": {"1" * 70_000}}}}}]'), {}),
    "fraction.json": (lambda path: path.write_text(f'[{{"data": {{"item": 0.{"1" * 5000}e5}}}}]'), {}),
    "coco.json": (_coco, {"absent": "no"}),
    "counts.svm": (lambda path: path.write_text("1 2000000000 2000000000\n0 0:1\n"), {"absent": "no"}),
    "wide.svm": (lambda path: path.write_text("0 2000000000:1\n"), {"absent": "no", "whole": True}),
    "rows.arff": (
        lambda path: path.write_text(
            "@relation 'x -C 3000'\n"
            + "".join(f"@attribute a{j} {{0,1}}\n" for j in range(3001))
            + "@data\n"
            + "{}\n" * 200_000
        ),
        {"absent": "no"},
    ),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, int]]:
    folder = tmp_path_factory.mktemp("bombs")
    for name, (make, _) in BOMBS.items():
        make(folder / name)
        assert (folder / name).stat().st_size < 4 << 20, f"{name}: a small file"
    jobs = [[str(folder / name), how] for name, (_, how) in BOMBS.items()]
    done = subprocess.run([sys.executable, "-c", READER, json.dumps(jobs)], stdout=subprocess.PIPE, text=True)
    lines = map(json.loads, done.stdout.splitlines())
    return {Path(path).name: (outcome, peak) for path, outcome, peak in lines}


@pytest.mark.parametrize("name", BOMBS)
def test_a_small_file_neither_takes_gigabytes_nor_ends_the_process(
    outcomes: dict[str, tuple[str, int]], name: str
) -> None:
    assert name in outcomes, "the process ended"
    outcome, peak = outcomes[name]
    assert outcome.startswith("refused"), outcome
    assert peak < MEMORY


# ---------------------------------------------------------------- the budget itself


def test_the_budget_counts_what_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "FREE_BYTES", 1000)
    (tmp_path / "a").write_bytes(b"x" * 100)
    mine = Budget(tmp_path / "a")
    mine.unpack(10_000)
    mine.hold(10_000)  # counted by itself
    for take in (mine.unpack, mine.hold):
        with pytest.raises(DataError, match=r"a: its 100 bytes would become 10 KiB or more, 101 times as much"):
            take(1)
    free = Budget("name", 1)
    free.hold_rows(15)
    with pytest.raises(DataError, match="set PARTLY_MOST_EXPANSION=1024 or higher"):
        free.hold_rows(1)


def test_the_budget_asks_whether_it_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget, "FREE_BYTES", 1000)
    monkeypatch.setattr(budget, "available", lambda: (10_000, "a test"))
    mine = Budget("name", 1 << 20)
    mine.hold(6000)
    with pytest.raises(DataError, match="needs 6 KiB of memory, and 10 KiB are available, of which 60%"):
        mine.hold(1)
    Budget("no file", None).unpack(1 << 40)  # there is nothing to compare it with


def test_what_the_environment_says_must_be_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTLY_MOST_EXPANSION", "much")
    with pytest.raises(SettingError, match="PARTLY_MOST_EXPANSION='much'"):
        Budget("name", 1).unpack(1 << 30)


def test_texts_that_repeat_are_read_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces, with nothing lost between them."""
    monkeypatch.setattr("partly.budget.PIECE_BYTES", 100)
    words = [f"word{i % 7}" * (i % 5) or "none" for i in range(300)] + ["ä" * 90, "last"]
    columns = {"id": [str(i) for i in range(302)], "text": words, "a.b": [None, *range(301)]}
    pq.write_table(pa.table(columns), tmp_path / "texts.parquet")
    data = read(tmp_path / "texts.parquet")
    from partly.items.text_rows import decode_texts

    assert list(decode_texts(data.items.take(slice(None)))) == words
    assert data.labels.ids == tuple(columns["id"])


def test_long_numbers_are_found_wherever_they_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    for before in (0, 65_000, 65_536 - 500, 65_536 - 1001):
        text = '[{"data": {"item": "a", "x": ' + " " * before + "{}" + "}, "
        end = '"annotations": []}]'
        path.write_text(text.replace("{}", "0." + "1" * 998, 1) + end)
        assert read_labels(path, absent="unknown").ids == ("a",)
        path.write_text(text.replace("{}", "0." + "1" * 999, 1) + end)
        with pytest.raises(DataError, match=r"a number has more than 1000 digits: 0\.111"):
            read_labels(path, absent="unknown")
    path.write_text(json.dumps([{"data": {"item": "1" * 9000}, "annotations": []}]))
    assert read_labels(path, absent="unknown").ids == ("1" * 9000,), "digits in a text are text"
