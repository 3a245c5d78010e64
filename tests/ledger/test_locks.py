"""Threads and processes on one ledger in a file.

POSIX drops all locks that a process holds on a file as soon as the process closes *any* descriptor of it. So nothing
but SQLite may open the file, whatever else a command does with its path.
"""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from partly import Ledger

# One thread appends; two open the ledger and ask what kind of file it is, as fast as they can.
OPENING = """
import sys, threading
from pathlib import Path
from partly import Ledger, data
from partly.data import ledger_db

place, author, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
done = threading.Event()

def look():
    while not done.is_set():
        Ledger(place)
        assert ledger_db.recognizes(Path(place))

lookers = [threading.Thread(target=look) for _ in range(2)]
for one in lookers:
    one.start()
ledger = Ledger(place)
try:
    for number in range(count):
        ledger.append([f"{author}-{number}"], ["cat"], [1], author=author)
        print(f"{author}-{number}", flush=True)
finally:
    done.set()
    for one in lookers:
        one.join()
"""

# Two threads; each append opens the ledger anew.
APPENDING = """
import sys, threading
from partly import Ledger

place, author, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

def append(thread):
    for number in range(count // 2):
        Ledger(place).append([f"{author}-{thread}-{number}"], ["cat"], [1], author=author)
        sys.stdout.write(f"{author}-{thread}-{number}\\n")

writers = [threading.Thread(target=append, args=(thread,)) for thread in range(2)]
for one in writers:
    one.start()
for one in writers:
    one.join()
"""

# A process in which opening the ledger other than by SQLite is an error. It reads the ledger in every way there is.
WATCHED = """
import os, sys
place = sys.argv[1]
which = os.stat(place).st_ino

def watch(event, arguments):
    if event != "open" or not isinstance(arguments[0], str | bytes | os.PathLike):
        return
    try:
        opened = os.stat(arguments[0]).st_ino
    except (OSError, ValueError):
        return
    if opened == which:
        print("OPENED", os.fspath(arguments[0]), flush=True)
        raise SystemExit(f"{place} was opened")

from pathlib import Path
import numpy as np
import partly
from partly import data
from partly.cli import main as cli  # imports are over when the watch begins
from partly.data import formats
from partly.errors import PartlyError
from partly.ledger import exchange
from partly.ledger.location import is_sqlite

formats.formats("labels")
sys.addaudithook(watch)

def tried(function, *arguments, **more):
    try:
        return function(*arguments, **more)
    except PartlyError as error:
        return str(error)

labels = partly.Ledger(place).labels()
assert is_sqlite(Path(place))
for form in ("labels", "dataset", "items"):
    formats.of(Path(place), form)
assert tried(data.read_labels, place) == labels
assert len(tried(data.read, place).labels) == len(labels)
items = Path(place).parent / "items.csv"
items.write_text("item,x\\na,1\\nb,2\\n")
assert len(tried(data.read, items, place).labels) == len(labels)
for form in ("wide", "long", "tags", "coco", "label-studio", "open-images", "chexpert", "mulan", "svmlight"):
    assert isinstance(tried(data.read_labels, place, form=form), str), form
for reader in (data.read_scores, data.read_hierarchy):
    assert isinstance(tried(reader, place), str)
assert "statements" in tried(exchange.restore, Path(place).parent / "new.db", place)
assert not data.is_whole(place)
print("FINE")
"""


def _run(tmp_path: Path, script: str, *processes: list[str]) -> list[str]:
    """The lines that all processes print."""
    (tmp_path / "script.py").write_text(textwrap.dedent(script))
    started = [
        subprocess.Popen([sys.executable, tmp_path / "script.py", *words], stdout=subprocess.PIPE, text=True)
        for words in processes
    ]
    try:
        lines = [one.communicate(timeout=300)[0].split() for one in started]
    finally:
        for one in started:
            one.kill()
    assert [one.returncode for one in started] == [0] * len(started)
    return [line for part in lines for line in part]


@pytest.mark.parametrize(("script", "processes", "count"), [(OPENING, 3, 80), (APPENDING, 2, 120)])
def test_no_thread_costs_another_its_lock(tmp_path: Path, script: str, processes: int, count: int) -> None:
    place = tmp_path / "labels.db"
    Ledger.create(place, names=["cat"])
    authors = [[str(place), f"author{number}", str(count)] for number in range(processes)]
    acknowledged = _run(tmp_path, script, *authors)
    assert len(acknowledged) == len(set(acknowledged)) == processes * count
    connection = sqlite3.connect(place)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    assert sorted(Ledger(place).labels().ids) == sorted(acknowledged)
    assert [one.number for one in Ledger(place).log()] == list(range(1, processes * count + 2))


@pytest.mark.parametrize("name", ["labels.db", "labels", "labels.csv", "labels.jsonl", "labels.txt", "labels.json"])
def test_only_sqlite_opens_a_ledger(tmp_path: Path, name: str) -> None:
    place = tmp_path / name
    Ledger.create(place, names=["cat"]).append(["a", "b"], ["cat", "cat"], [1, 0], author="anna")
    assert _run(tmp_path, WATCHED, [str(place)])[-1] == "FINE"
