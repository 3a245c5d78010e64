from __future__ import annotations

import errno
import io
import json
import os

import pytest

from comparison.making import line
from partly.comparison import results
from partly.comparison.protocol import PROTOCOL, ProtocolError
from partly.errors import CheckpointError, DataError


def test_what_is_appended_is_read(tmp_path):
    path = tmp_path / "a.jsonl"
    assert results.read(path) == []
    made = [line(seed=seed) for seed in range(3)]
    for one in made:
        results.append(path, one)
    assert results.read(path) == made


def test_a_torn_last_line_does_not_count_and_does_not_swallow_the_next(tmp_path):
    path = tmp_path / "a.jsonl"
    first, second, third = (line(seed=seed) for seed in range(3))
    results.append(path, first)
    whole = path.read_bytes()
    torn = json.dumps(second).encode() + b"\n"
    for cut in (1, 20, len(torn) // 2, len(torn) - 1):
        path.write_bytes(whole + torn[:cut])
        assert results.read(path) == [first]
        results.append(path, third)
        assert results.read(path) == [first, third]


def test_a_line_of_which_a_half_could_be_written(tmp_path, monkeypatch):
    """What is opened with a buffer writes again when it is closed, behind the half. Here a raw file does what a disk
    may: half, then an error, and then all is well."""
    path, first, second = tmp_path / "a.jsonl", line(seed=0), line(seed=1)
    results.append(path, first)
    failed = []

    class Weak(io.FileIO):
        def write(self, content):
            if failed:
                return super().write(content)
            failed.append(super().write(content[: len(content) // 2]))
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def opened(path, mode, buffering=-1, opener=None):
        raw = Weak(path, mode, opener=opener)
        return raw if buffering == 0 else io.BufferedRandom(raw)

    with monkeypatch.context() as patch:
        patch.setattr(results, "open", opened, raising=False)
        with pytest.raises(CheckpointError, match="Input/output error"):
            results.append(path, second)
    assert failed
    assert results.read(path) == [first]
    results.append(path, second)
    assert results.read(path) == [first, second]


def test_a_file_of_nothing_but_a_torn_line(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"data": "ti')
    assert results.read(path) == []
    results.append(path, line())
    assert results.read(path) == [line()]


@pytest.mark.parametrize("bad", [b"not json", b"[]", b"{}", b"\xff\xfe", b'"text"'])
def test_a_damaged_line_is_refused_with_its_place(tmp_path, bad):
    path = tmp_path / "a.jsonl"
    good = json.dumps(line()).encode()
    path.write_bytes(good + b"\n" + bad + b"\n" + good + b"\n")
    with pytest.raises(DataError, match=r"a\.jsonl:2: not a result record"):
        results.read(path)


def test_the_settled_file_does_not_depend_on_the_order(tmp_path):
    made = [line(method, seed) for method in ("bce", "partial-bce") for seed in range(3)]
    for name, order in (("a", made), ("b", made[::-1])):
        results.write_sorted(tmp_path / name, order)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert sorted(results.read(tmp_path / "a"), key=results.key_of) == sorted(made, key=results.key_of)


@pytest.mark.parametrize("name", results.KEY)
def test_every_part_of_the_key_tells_cells_apart(name):
    other = {"seed": 7, "tune": 3, "settings": {"value": 2.0}, "recipe": {"epochs": 9}}.get(name, "other")
    assert results.key_of(line(data_digest="d")) != results.key_of(line(data_digest="d") | {name: other})


def test_time_and_memory_are_not_part_of_the_key():
    assert results.key_of(line()) == results.key_of(line(seconds=9.0, training_seconds=9.0, memory_mb=9.0))


def test_lines_that_belong_together():
    made = [line(method, seed) for method in ("bce", "partial-bce") for seed in range(2)]
    results.check_consistency(
        [*made, line("bce", 0, scenario="uniform:0.1"), line("bce", 0, data="other"), line(validation="partial")]
    )
    results.check_consistency([])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"protocol": PROTOCOL + 1}, "another protocol"),
        ({"data_digest": "other"}, "other data under the same name"),
        ({"mask_sha256": "other"}, r"another mask: \('tiny', 'uniform:0.5', 0\)"),
        ({}, "the same cell twice"),
    ],
)
def test_lines_that_do_not_belong_together_are_refused(change, words):
    method = "partial-bce" if change else "bce"
    with pytest.raises(ProtocolError, match=f"(?s)cannot be compared.*{words}.*different folders"):
        results.check_consistency([line("bce"), line(method, **change)])


def test_lines_of_an_older_protocol_alone_are_read_and_not_gone_on_from():
    old = [line(protocol=0), line(seed=1, protocol=0)]
    results.check_consistency(old)
    with pytest.raises(ProtocolError, match="have protocol 0"):
        results.check_protocol(old)
    results.check_protocol([line()])


def test_a_new_line_is_checked_without_reading_the_earlier_ones():
    reads = []

    class CountedLine(dict):
        def __getitem__(self, name):
            reads.append(name)
            return super().__getitem__(name)

    check = results.ConsistencyCheck(CountedLine(line(seed=seed)) for seed in range(50))
    assert reads
    reads.clear()
    check.add(line(seed=50))
    assert not reads
    for change, words in (({"seed": 50}, "the same cell twice"), ({"seed": 51, "protocol": 0}, "another protocol")):
        with pytest.raises(ProtocolError, match=words):
            check.add(line(**change))
