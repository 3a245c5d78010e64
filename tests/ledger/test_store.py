"""What may happen to the file or the server: kills, several writers, damage, strangers, links, hostile names."""

from __future__ import annotations

import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import stat
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from ledger.conftest import PASSWORD
from partly import Ledger
from partly.errors import DataError, PartlyError
from partly.ledger import exchange

HOSTILE = [
    "'; DROP TABLE batches; --",
    '"; DELETE FROM items; --',
    "%s %(name)s :name ? $1 {0}",
    "../../etc/passwd",
    "a\nb\rc\td",
    "<script>alert(1)</script>",
    "\u202eeman",
    "NULL",
    "é" * 300,
    "\\x00\\",
]


# ---------------------------------------------------------------- kills and writers


def _append(place: str, author: str, count: int, told: Connection) -> None:
    """Another process: batch after batch, and a word for each that is acknowledged."""
    ledger = Ledger(place)
    for number in range(count):
        ledger.append([f"{author}-{number}", "shared"], ["cat", "dog"], [1, number % 2], author=author)
        told.send(number)
    told.close()


def _started(place: str, author: str, count: int) -> tuple[multiprocessing.Process, Connection]:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_append, args=(place, author, count, theirs))
    process.start()
    theirs.close()
    return process, ours  # type: ignore[return-value]


def _heard(told: Connection) -> list[int]:
    found = []
    try:
        while told.poll(60):
            found.append(told.recv())
    except EOFError:
        pass
    return found


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_killed_at_any_moment_every_acknowledged_batch_is_there_once(tmp_path: Path) -> None:
    place = str(tmp_path / "labels.db")
    Ledger.create(place, names=["cat", "dog"])
    acknowledged, chance = {}, random.Random(0)
    for kill in range(10):
        process, told = _started(place, f"author{kill}", 1000)
        before = [told.recv() for _ in range(chance.randrange(1, 4))]
        time.sleep(chance.uniform(0, 0.1))
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
        acknowledged[f"author{kill}"] = len(before) + len(_heard(told))
    ledger = Ledger(place)  # rolls back what was half done
    log = ledger.log()
    assert [one.number for one in log] == list(range(1, len(log) + 1))
    labels = ledger.labels()
    for author, count in acknowledged.items():
        written = sum(one.author == author for one in log)
        assert count <= written <= count + 1, "the last may be there, and its word not"
        names = {f"{author}-{number}" for number in range(written)}
        assert names == {name for name in labels.ids if name.startswith(f"{author}-")}
    assert sqlite3.connect(place).execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_several_writers_at_once(place: Callable[[], str]) -> None:
    where, count = place(), 12
    ledger = Ledger.create(where, names=["cat", "dog"])
    writers = [_started(where, f"author{i}", count) for i in range(3)]
    for process, told in writers:
        assert _heard(told) == list(range(count))
        process.join()
        assert process.exitcode == 0
    log = ledger.log()
    assert [one.number for one in log] == list(range(1, 3 * count + 2))
    assert [one.time for one in log] == sorted(one.time for one in log)
    assert len(ledger.labels()) == 3 * count + 1, "all of them name one item, which is there once"
    assert len(ledger.show("shared")) == 3 * count


def test_who_finds_others_writing_waits_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("partly.ledger.store.LOCK_SECONDS", 0.1)
    ledger = Ledger.create(tmp_path / "labels.db", names=["cat"])
    with sqlite3.connect(tmp_path / "labels.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(DataError, match=r"other writers held the ledger .* Nothing was changed"):
            ledger.append(["a"], ["cat"], [1], author="anna")
        assert ledger.labels().shape == (0, 1), "reading goes on"
        other.execute("ROLLBACK")
    ledger.append(["a"], ["cat"], [1], author="anna")


# ---------------------------------------------------------------- damage and strangers


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sound") / "labels.db"
    ledger = Ledger.create(path, names=[f"label {j}" for j in range(30)])
    for batch in range(4):
        items = [f"item {i}" for i in range(120) for _ in range(30)]
        labels = [f"label {j}" for _ in range(120) for j in range(30)]
        values = [(i * 7 + batch) % 2 for i in range(len(items))]
        ledger.append(items, labels, values, author=f"author {batch}")
    return path


def everything(path: Path) -> object:
    ledger = Ledger(path)
    return ledger.labels(), ledger.log(), ledger.disagreements()


def test_a_flipped_byte_is_noticed_or_changes_nothing_that_is_said(sound: Path, tmp_path: Path) -> None:
    """SQLite has no checksums: ours are on the statements."""
    whole, content = everything(sound), sound.read_bytes()
    with sqlite3.connect(sound) as connection:
        (blob,) = connection.execute("SELECT items FROM statements WHERE batch = 3").fetchone()
    connection.close()
    at = content.index(blob[:400])
    chance, noticed = random.Random(0), 0
    places = [at + chance.randrange(400) for _ in range(10)] + [chance.randrange(len(content)) for _ in range(50)]
    for number, where in enumerate(places):
        damaged = bytearray(content)
        damaged[where] ^= 1 << chance.randrange(8)
        path = tmp_path / "labels.db"
        path.write_bytes(damaged)
        try:
            found = everything(path)
        except PartlyError:
            noticed += 1
        else:
            assert number >= 10, "a byte of statements"
            assert found[0] == whole[0], where  # type: ignore[index]
    assert noticed >= 30


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.5, 0.9])
def test_a_cut_file_is_refused(sound: Path, tmp_path: Path, share: float) -> None:
    content = sound.read_bytes()
    path = tmp_path / "labels.db"
    path.write_bytes(content[: int(len(content) * share)])
    with pytest.raises(DataError, match=r"labels\.db: "):
        everything(path)


def test_what_is_no_ledger(tmp_path: Path) -> None:
    text, foreign, folder = tmp_path / "text.db", tmp_path / "foreign.db", tmp_path / "folder.db"
    text.write_text("item,label\n")
    folder.mkdir()
    os.mkfifo(tmp_path / "pipe.db")
    with sqlite3.connect(foreign) as connection:
        connection.execute("CREATE TABLE about (name TEXT, value TEXT)")
    connection.close()
    before = foreign.read_bytes()
    for path, words in (
        (text, "is not a SQLite database"),
        (foreign, "is a database without a ledger"),
        (folder, "cannot be opened"),
        (
            tmp_path / "pipe.db",
            "is not a SQLite database|cannot be|not a regular file|without a ledger|damaged",
        ),
        (tmp_path / "absent.db", "Create a ledger: partly ledger init"),
        (tmp_path / "a\0b", "cannot be opened"),
        ("mysql://host/labels", "postgresql://user@host/database"),
    ):
        with pytest.raises(DataError, match=words):
            Ledger(path)
    assert foreign.read_bytes() == before
    assert not (tmp_path / "absent.db").exists()
    with pytest.raises(DataError, match="it is not empty"):
        Ledger.create(foreign)


def test_a_newer_format_and_a_missing_table_are_refused(tmp_path: Path) -> None:
    for name, harm, words in (
        (
            "newer",
            "UPDATE about SET value = '99' WHERE name = 'format'",
            "version '99', and this .* up to 1",
        ),
        ("other", "UPDATE about SET value = 'x' WHERE name = 'kind'", "has no entry for it"),
        ("torn", "DROP TABLE taken_back", "tables are missing: taken_back"),
    ):
        path = tmp_path / f"{name}.db"
        Ledger.create(path, names=["cat"])
        with sqlite3.connect(path) as connection:
            connection.execute(harm)
        connection.close()
        with pytest.raises(DataError, match=words):
            Ledger(path)


@pytest.mark.parametrize(
    "harm",
    [
        'UPDATE batches SET changes = \'[{"what": "explode", "of": [], "new": []}]\' WHERE number = 1',
        "UPDATE batches SET changes = '{' WHERE number = 1",
        "UPDATE batches SET kind = 'god' WHERE number = 2",
        "UPDATE batches SET time = 9999999999999999999 WHERE number = 2",
        "DELETE FROM batches WHERE number = 1",
        "DELETE FROM items",
        "INSERT INTO taken_back VALUES (1, 2, -1, -1)",
        "UPDATE statements SET labels = x'00'",
        "UPDATE statements SET batch = 1",
    ],
)
def test_tables_that_somebody_changed_by_hand_are_refused(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "labels.db"
    ledger = Ledger.create(path, names=["cat"])
    ledger.append(["a"], ["cat"], [1], author="anna")
    with sqlite3.connect(path) as connection:
        connection.execute(harm)
    connection.close()
    with pytest.raises(PartlyError):
        everything(path)


def test_a_second_ledger_is_not_made_in_the_place_of_one(place: Callable[[], str]) -> None:
    where = place()
    Ledger.create(where, names=["cat"])
    with pytest.raises(DataError, match="it is not empty"):
        Ledger.create(where)
    again = Ledger(where)
    assert again.labels().names == ("cat",)


def test_nothing_is_written_through_links(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "labels.db", names=["cat"])
    victim = tmp_path / "victim"
    for name, target in (("link.db", "labels.db"), ("new.db", "victim")):
        (tmp_path / name).symlink_to(target)
        for call in (Ledger, Ledger.create):
            with pytest.raises(DataError, match="is a symbolic link"):
                call(tmp_path / name)
    assert not victim.exists()
    shutil.copy(tmp_path / "labels.db", tmp_path / "copy.db")
    (tmp_path / "copy.db-journal").symlink_to(victim)
    with pytest.raises(DataError, match=r"copy\.db-journal: is a symbolic link"):
        Ledger(tmp_path / "copy.db")
    assert not victim.exists()


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It may hold what people said, their names, and digests of passwords. What was there keeps its mode."""
    before = os.umask(0)
    try:
        with Ledger.create_atomically(tmp_path / "labels.db") as ledger:
            ledger.add(["cat"])
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
    finally:
        os.umask(before)
    assert modes == {"labels.db": 0o600, "labels.db-journal": 0o600}
    (tmp_path / "shared.db").touch()
    (tmp_path / "shared.db").chmod(0o660)
    Ledger.create(tmp_path / "shared.db")
    assert stat.S_IMODE((tmp_path / "shared.db").stat().st_mode) == 0o660


def test_a_folder_that_is_read_only(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may write anywhere")
    ledger = Ledger.create(tmp_path / "labels.db", names=["cat"])
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(DataError, match="cannot be written"):
            ledger.append(["a"], ["cat"], [1], author="anna")
    finally:
        tmp_path.chmod(0o700)


# ---------------------------------------------------------------- names


def test_names_are_names_whatever_they_look_like(place: Callable[[], str], tmp_path: Path) -> None:
    where = place()
    ledger = Ledger.create(where, names=HOSTILE)
    for name in HOSTILE:
        ledger.append([name], [name], [1], author=name, run=name, note=name, key=name)
        ledger.append([name], [name], [0], kind="model", run=name, author=name)
        assert [one.label for one in ledger.show(name)] == [name, name]
    labels = ledger.labels()
    assert (labels.names, labels.ids) == (tuple(HOSTILE), tuple(HOSTILE))
    assert labels.summary()["yes"] == len(HOSTILE)
    for name in HOSTILE:
        ledger.undo(kind="person", author=name, by=name, note=name)
        ledger.rename(name, f"{name}!", author=name)
        ledger.split(f"{name}!", [f"{name}?"], author=name)
    assert ledger.labels().summary()["yes"] == 0
    exchange.export(ledger, tmp_path / "all.parquet")
    copy = exchange.restore(place(), tmp_path / "all.parquet")
    assert copy.log() == ledger.log()
    assert copy.labels(models=True) == ledger.labels(models=True)


@pytest.mark.parametrize("name", ["'; DROP.db", "a?mode=memory&at.db", "a%2fb#c.db", "?.db", "file:x.db", "-rf.db"])
def test_a_path_is_a_path_whatever_it_looks_like(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).touch()
    for where in (tmp_path / name, name):
        ledger = Ledger.create(where, names=["cat"]) if not (tmp_path / name).stat().st_size else Ledger(where)
        assert ledger.labels().names == ("cat",)
    assert [path.name for path in tmp_path.iterdir()] == [name]


# ---------------------------------------------------------------- passwords


def test_no_message_shows_a_password(server: str, tmp_path: Path) -> None:
    from partly import data

    url = f"postgresql://{server}"
    told = []
    for wrong in (
        f"{url}/absent",
        f"{url}/postgres",
        url.replace(PASSWORD, f"{PASSWORD}x") + "/postgres",
        f"postgresql://anna:{PASSWORD}@127.0.0.1:1/labels",
        f"postgresql://anna:{PASSWORD}@127.0.0.1:port/labels",
        f"mysql://anna:{PASSWORD}@host/labels",
        f"postgresql://127.0.0.1:1/labels?password={PASSWORD}&connect_timeout=1",
    ):
        with pytest.raises(DataError) as error:
            Ledger(wrong)
        told.append(str(error.value))
        assert error.value.__cause__ is None
    with pytest.raises(DataError, match="PGPASSWORD") as error:
        data.read_labels(f"{url}/postgres")
    told += [str(error.value), repr(Ledger.create(f"{url}/postgres"))]
    assert not [words for words in told if PASSWORD in words]
    assert "anna@127.0.0.1" in told[0]
