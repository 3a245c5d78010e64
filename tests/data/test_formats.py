"""What holds for every format: write -> read is the identity, and what cannot be read is refused by name."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from partly import Labels
from partly.data import read_labels, write_labels
from partly.errors import DataError, SettingError
from partly.labels.names import fold

FORMATS = [("csv", "wide"), ("csv", "long"), ("parquet", "wide"), ("parquet", "long"), ("npz", None)]
NASTY = ["007", "NA", "null", "nan", "None", "1", "1.0", "item", "label", "value", "ImageID", "=1+1", "<b>&amp;</b>"]
NASTY += ["#", "'", '"', '""x', "\\", "a.b", "a,b", "é", "🐈"]
NASTY += ["a\nb", "a\r\nb", "\rx", " x ", "\u202egnp", "\ufeffx", "x\u2028y"]
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
words = st.sampled_from(NASTY) | st.text(characters, min_size=1).filter(str.strip)  # Labels refuse blank ones


@st.composite
def some_labels(draw):
    """Any labels, dense or sparse, down to no items or no labels at all."""
    ids = draw(st.lists(words, max_size=6, unique=True))
    names = draw(st.lists(words, max_size=5, unique_by=fold))
    z = draw(arrays(np.int8, (len(ids), len(names)), elements=st.sampled_from([-1, 0, 1])))
    return Labels.from_ternary(sp.csr_array(z) if draw(st.booleans()) else z, names=names, ids=ids)


@pytest.mark.parametrize(("suffix", "form"), FORMATS)
@given(labels=some_labels())
@settings(max_examples=25, deadline=None)
def test_write_then_read_is_the_identity(tmp_path_factory, suffix, form, labels):
    assume(form != "wide" or not ("item" in labels.names or labels.names == ("label", "value")))
    path = tmp_path_factory.mktemp("files") / f"labels.{suffix}"
    write_labels(labels, path, form=form)
    assert read_labels(path) == labels
    assert os.listdir(path.parent) == [path.name]


def small(**words):
    return Labels.from_ternary([[1, -1, 0], [0, 0, 0], [0, 1, 1]], names=["cat", "dog", "cow"], **words)


@pytest.mark.parametrize(("suffix", "form"), FORMATS)
def test_without_ids_the_positions_are_the_ids(tmp_path, suffix, form):
    write_labels(small(), tmp_path / f"a.{suffix}", form=form)
    assert read_labels(tmp_path / f"a.{suffix}") == small(ids=["0", "1", "2"])


@pytest.mark.parametrize(("suffix", "form"), FORMATS)
def test_names_choose_the_labels_and_their_order(tmp_path, suffix, form):
    write_labels(small(), tmp_path / f"a.{suffix}", form=form)
    read = read_labels(tmp_path / f"a.{suffix}", names=["cow", "emu", "cat", "dog"])
    assert read.names == ("cow", "emu", "cat", "dog")
    assert read.rows(slice(None)).tolist() == [[0, 0, 1, -1], [0, 0, 0, 0], [1, 0, 0, 1]]
    assert read_labels(tmp_path / f"a.{suffix}", names=["cat", "dog", "cow"]) == small()


@pytest.mark.parametrize(("suffix", "form"), FORMATS)
def test_labels_that_are_not_among_the_names_are_all_told_with_the_nearest(tmp_path, suffix, form):
    write_labels(small(), tmp_path / f"a.{suffix}", form=form)
    with pytest.raises(DataError) as told:
        read_labels(tmp_path / f"a.{suffix}", names=["Cat", "d og", "sheep"])
    lines = str(told.value).splitlines()
    assert len(lines) == 3
    assert lines[0].endswith(": label 'cat' is not among the 3 names. Nearest: 'Cat' (differs in case).")
    assert lines[1].endswith(": label 'dog' is not among the 3 names. Nearest: 'd og' (differs in spaces).")
    assert lines[2].endswith(": label 'cow' is not among the 3 names.")


def test_sparse_labels_are_written_long_unless_told(tmp_path):
    sparse = Labels.from_ternary(sp.csr_array(small().ternary()), names=small().names)
    for labels, form, first in ((small(), None, "cat"), (sparse, None, "label"), (sparse, "wide", "cat")):
        write_labels(labels, tmp_path / "a.csv", form=form)
        assert (tmp_path / "a.csv").read_text().split(",")[1] == f'"{first}"'


@pytest.mark.parametrize("word", ["a\0", "\ud800"])
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_words_that_would_not_come_back_are_not_written(tmp_path, suffix, word):
    with pytest.raises(DataError, match="not valid Unicode: 1"):
        write_labels(Labels.from_ternary([[1]], ids=[word]), tmp_path / f"a.{suffix}")
    assert not os.listdir(tmp_path)


@pytest.mark.parametrize("call", [read_labels, lambda path: write_labels(small(), path)])
def test_suffixes_are_known_or_refused(tmp_path, call):
    for suffix in ("pt", "pth", "pkl", "pickle", "joblib", "PKL"):
        (tmp_path / f"a.{suffix}").write_bytes(b"x")
        with pytest.raises(DataError, match=r"can execute code.*\.csv, \.parquet, \.npz"):
            call(tmp_path / f"a.{suffix}")
    for name in ("a.xlsx", "a", "a.npy"):
        with pytest.raises(DataError, match=r"There is: \.csv, \.parquet, \.npz"):
            call(tmp_path / name)
    write_labels(small(), tmp_path / "a.CSV")
    assert read_labels(tmp_path / "a.CSV") == small()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_only_plain_files_are_opened(tmp_path, suffix):
    folder, pipe = tmp_path / f"folder.{suffix}", tmp_path / f"pipe.{suffix}"
    folder.mkdir()
    os.mkfifo(pipe)
    for path, reason in (
        (folder, "a folder"),
        (pipe, "a pipe or a device"),
        (tmp_path / f"none.{suffix}", "No such file"),
        (tmp_path / f"\0.{suffix}", "null"),
    ):
        with pytest.raises(DataError, match=reason):
            read_labels(path)
    (tmp_path / f"link.{suffix}").symlink_to(tmp_path / f"real.{suffix}")
    write_labels(small(), tmp_path / f"real.{suffix}")
    assert read_labels(tmp_path / f"link.{suffix}") == small()
    assert read_labels(str(tmp_path / f"real.{suffix}")) == small()


def test_a_file_that_may_not_be_read_is_refused(tmp_path, monkeypatch):
    write_labels(small(), tmp_path / "a.csv")

    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)  # the superuser may read everything
    with pytest.raises(DataError, match="Permission denied"):
        read_labels(tmp_path / "a.csv")


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_a_failed_write_leaves_the_old_file_alone(tmp_path, suffix, monkeypatch):
    path = tmp_path / f"a.{suffix}"
    write_labels(small(), path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match="No space left"):
            write_labels(small(ids=["a", "b", "c"]), path)
    assert path.read_bytes() == before
    for nowhere in (tmp_path / "none" / path.name, path / path.name):
        with pytest.raises(DataError, match="cannot be written"):
            write_labels(small(), nowhere)
    (tmp_path / f"folder.{suffix}").mkdir()
    with pytest.raises(DataError, match="cannot be written"):
        write_labels(small(), tmp_path / f"folder.{suffix}")
    assert sorted(os.listdir(tmp_path)) == [f"a.{suffix}", f"folder.{suffix}"]


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_garbage_is_refused_by_name(tmp_path, suffix):
    for garbage in (b"", b"PAR1", b"PK\x03\x04", b"\x80\x04K\x01.", os.urandom(200), b"item,\xff\xfe\n"):
        (tmp_path / f"a.{suffix}").write_bytes(garbage)
        with pytest.raises(DataError, match=rf"a\.{suffix}"):
            read_labels(tmp_path / f"a.{suffix}")


def test_the_form_is_wide_or_long_and_only_for_tables(tmp_path):
    write_labels(small(), tmp_path / "a.npz")
    write_labels(small(), tmp_path / "a.csv")
    for path, form in (("a.npz", "long"), ("a.csv", "tall")):
        with pytest.raises(SettingError, match="'wide' or 'long'"):
            read_labels(tmp_path / path, form=form)
        with pytest.raises(SettingError, match="'wide' or 'long'"):
            write_labels(small(), tmp_path / path, form=form)
