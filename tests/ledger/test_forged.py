"""Ledgers as a stranger may send them: what they could do later is refused when they are opened, what cannot be when it
is read, and nothing takes gigabytes or minutes."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ledger.conftest import databases
from partly import Ledger
from partly.errors import DataError, PartlyError
from partly.ledger import exchange
from partly.ledger.store import digest_of


@pytest.fixture
def path(tmp_path: Path) -> Path:
    ledger = Ledger.create(tmp_path / "labels.db", names=["cat", "dog"])
    ledger.append(["a", "b"], ["cat", "dog"], [1, 0], author="anna", note="ünïcode")
    return tmp_path / "labels.db"


def run(path: Path, *statements: str | tuple[str, tuple[object, ...]]) -> None:
    connection = sqlite3.connect(path)
    with connection:
        for one in statements:
            connection.execute(*(one if isinstance(one, tuple) else (one,)))
    connection.close()


def say(path: Path, item: int, label: int, z: int) -> None:
    """Statements with a checksum that fits."""
    blobs = [np.array([item], "<i4").tobytes(), np.array([label], "<i4").tobytes(), np.array([z], "i1").tobytes(), b""]
    digest = digest_of(2, 0, blobs)
    set_to = "items = ?, labels = ?, answers = ?, confidences = ?, digest = ?, first_item = ?, last_item = ?"
    run(path, (f"UPDATE statements SET {set_to} WHERE batch = 2", (*blobs, digest, item, item)))


def changes(path: Path, text: str) -> None:
    run(path, ("UPDATE batches SET changes = ? WHERE number = 1", (text,)))


def everything(path: Path) -> None:
    ledger = Ledger(path)
    ledger.labels()
    ledger.labels(policy="majority", models=True)
    ledger.log()
    ledger.hierarchy()
    for item in ledger.labels().ids:
        ledger.show(item)
    ledger.diff(1)
    ledger.disagreements()


# ---------------------------------------------------------------- what would act later

ACTING = {
    "a trigger": ["CREATE TRIGGER t AFTER INSERT ON batches BEGIN DELETE FROM statements; END"],
    "a view": ["CREATE VIEW v AS SELECT 1"],
    "a table that is a view": ["ALTER TABLE items RENAME TO i", "CREATE VIEW items AS SELECT number, name FROM i"],
    "a table that replaces": [
        "DROP TABLE taken_back",
        "CREATE TABLE taken_back (batch BIGINT, taken BIGINT, item BIGINT, label BIGINT, "
        "PRIMARY KEY (batch, taken, item, label) ON CONFLICT REPLACE)",
    ],
    "rows that go with others": [
        "DROP TABLE taken_back",
        "CREATE TABLE taken_back (batch BIGINT, taken BIGINT, item BIGINT, label BIGINT, "
        "FOREIGN KEY (batch) REFERENCES batches (number) ON DELETE CASCADE)",
    ],
}


@pytest.mark.parametrize("what", ACTING)
def test_what_acts_by_itself_is_refused(path: Path, what: str) -> None:
    run(path, *ACTING[what])
    with pytest.raises(DataError, match=r"labels\.db: .*(trigger|view|by itself)"):
        Ledger(path)


def test_a_trigger_on_a_server_is_refused(server: str) -> None:
    import psycopg

    url = databases(server)()
    Ledger.create(url, names=["cat"])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        connection.execute("CREATE TRIGGER t BEFORE INSERT ON statements FOR EACH ROW EXECUTE FUNCTION f()")
    with pytest.raises(DataError, match="trigger"):
        Ledger(url)


# ---------------------------------------------------------------- what cannot be


def _number(number: int) -> str:
    return json.dumps([{"what": "add", "of": [], "new": [[0, "cat"], [number, "dog"]]}])


HARMS: dict[str, Callable[[Path], object]] = {
    "a label number beyond the count": lambda path: changes(path, _number(2**31 - 1)),
    "a label number of 64 bits": lambda path: changes(path, _number(2**63)),
    "deep changes": lambda path: changes(path, "[" * 100_000),
    "a number of 5,000 digits": lambda path: changes(path, "[" + "1" * 5000 + "]"),
    "an empty rename": lambda path: changes(path, '[{"what": "rename", "of": [0], "new": []}]'),
    "an item number beyond the count": lambda path: run(path, "UPDATE items SET number = 2147483647 WHERE name = 'b'"),
    "an answer of 77": lambda path: say(path, 0, 0, 77),
    "a label of -5": lambda path: say(path, 0, -5, 1),
    "an item of -5": lambda path: run(path, "UPDATE items SET number = -5 WHERE name = 'a'"),
    "an item that is not there": lambda path: say(path, 1000, 0, 1),
    "a number that is text": lambda path: run(path, "UPDATE batches SET vocabulary = 'x' WHERE number = 2"),
    "a size that is text": lambda path: run(path, "UPDATE batches SET size = 'x' WHERE number = 2"),
    "a size beyond all": lambda path: run(path, "UPDATE batches SET size = -1 WHERE number = 2"),
    "an author that is a number": lambda path: run(path, "UPDATE batches SET author = x'ff' WHERE number = 2"),
    "bad UTF-8 in a note": lambda path: run(path, "UPDATE batches SET note = CAST(x'ff66' AS TEXT) WHERE number = 2"),
    "bad UTF-8 in an item": lambda path: run(path, "UPDATE items SET name = CAST(x'ff66' AS TEXT) WHERE number = 1"),
    "bad UTF-8 in changes": lambda path: run(path, "UPDATE batches SET changes = CAST(x'ff' AS TEXT) WHERE number = 1"),
    "bad UTF-8 in what it says of itself": lambda path: run(path, "UPDATE about SET value = CAST(x'ff' AS TEXT)"),
    "statements that are text": lambda path: run(path, "UPDATE statements SET items = 'abc'"),
    "a digest that is a number": lambda path: run(path, "UPDATE statements SET digest = 5"),
    "an undo of text": lambda path: run(path, "INSERT INTO taken_back VALUES (2, 1, 'x', 'y')"),
}


@pytest.mark.parametrize("what", HARMS)
def test_what_cannot_be_is_refused(path: Path, what: str) -> None:
    HARMS[what](path)
    with pytest.raises(PartlyError):
        everything(path)


def test_the_ledger_that_is_harmed_is_a_good_one(path: Path) -> None:
    say(path, 0, 0, -1)
    everything(path)
    assert Ledger(path).labels().summary()["no"] == 1


SLOW = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))
resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
from partly import Ledger
ledger = Ledger(sys.argv[1])
ledger.append(["a"], ["label 19999"], [1], author="anna")
assert ledger.labels().summary()["yes"] == 20_000
assert len(ledger.hierarchy().names) == 20_000
print(next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) << 10)
"""


@pytest.mark.parametrize("batches", [1, 20_000])
def test_a_chain_of_20000_labels_is_folded(tmp_path: Path, batches: int) -> None:
    path = tmp_path / "labels.db"
    Ledger.create(path)
    chain = [{"what": "add", "of": [n - 1] if n else [], "new": [[n, f"label {n}"]]} for n in range(20_000)]
    each = len(chain) // batches
    rows = [
        (1 + i, 10**15, None, "person", "anna", "", "", i, json.dumps(chain[i * each : (i + 1) * each]), 0, None)
        for i in range(batches)
    ]
    connection = sqlite3.connect(path)
    with connection:
        connection.executemany("INSERT INTO batches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    done = subprocess.run([sys.executable, "-c", SLOW, str(path)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) < 2 << 30


def restored(target: Path, source: Path) -> None:
    exchange.restore(target, source)
    everything(target)


def test_a_forged_export_is_refused(path: Path, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    exchange.export(Ledger(path), tmp_path / "all.parquet")
    table = pq.read_table(tmp_path / "all.parquet")
    harms = {
        "takes_back": ["[" * 100_000, "5", "[5]", "[[1, null, -1]]", '[["x", null, 5]]', f"[[{10**30}, null, -1]]"],
        "changes": ["[" * 100_000, _number(2**31 - 1), "{", "[5]"],
        "kind": ["god"],
        "label": [2**62, -7],
        "value": [77],
        "item": ["\0"],
        "vocabulary": [-(2**60)],
    }
    for name, values in harms.items():
        for value in values:
            column = table.column(name).to_pylist()
            row = next(i for i, cell in enumerate(column) if cell is not None)
            column[row] = value
            place = table.schema.get_field_index(name)
            forged = table.set_column(place, table.schema.field(name), pa.array(column, table.schema.field(name).type))
            pq.write_table(forged, tmp_path / "forged.parquet")
            target = tmp_path / f"new-{name}-{values.index(value)}.db"
            if name == "vocabulary":
                exchange.restore(target, tmp_path / "forged.parquet")  # for people only
                continue
            with pytest.raises(PartlyError):
                restored(target, tmp_path / "forged.parquet")
