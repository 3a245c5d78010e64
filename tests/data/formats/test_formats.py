"""What holds for every format: write -> read is the identity, and what cannot be read is refused by name."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from mypy import api

from partly import Dataset, Labels
from partly.data import formats, read, read_labels, write, write_labels
from partly.data.protocols import DatasetFormat, LabelFormat
from partly.errors import DataError, SettingError
from partly.items import Arrays, SparseRows, features, sparse_features
from partly.labels.names import fold

FORMATS = [(suffix, form) for suffix in ("csv", "parquet", "tsv.gz", "jsonl.zst") for form in ("wide", "long")]
FORMATS += [("npz", None)]
NASTY = ["007", "NA", "null", "nan", "None", "1", "1.0", "item", "label", "value", "ImageID", "=1+1", "<b>&amp;</b>"]
NASTY += ["#", "'", '"', '""x', "\\", "a.b", "a,b", "é", "🐈"]
NASTY += ["a\nb", "a\r\nb", "\rx", " x ", "\u202egnp", "\ufeffx", "x\u2028y"]
characters = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
words = st.sampled_from(NASTY) | st.text(characters, min_size=1).filter(str.strip)  # Labels refuse blank ones


# ---------------------------------------------------------------- what a format is

HOLDS = ("labels", "items", "dataset")
BUILT_IN = ("digits", "scenes")
# These are never written: they are files of other tools, or a command of their own makes them.
ITEMS_ONLY_READ = ("embedded-images", "feature-folder", "image-folder", "image-table", "text-table")
ONLY_READ = (*BUILT_IN, *ITEMS_ONLY_READ, "labels-npy", "tag-lists")


@pytest.mark.parametrize("name", formats.discover())
def test_a_format_is_one_file_and_its_test(name):
    one = formats.discover()[name]
    module = importlib.import_module(one.read.__module__)
    assert module.__name__ == f"partly.data.formats.{name.replace('-', '_')}"
    assert module.__doc__
    assert module.FORMAT is one
    assert isinstance(one, LabelFormat if one.holds == "labels" else DatasetFormat)
    assert list(inspect.signature(one.recognizes).parameters) == ["path"]
    names = ["names"] if one.holds == "labels" else []
    assert list(inspect.signature(one.read).parameters) == ["path", *names, "semantics"]
    assert (one.write is None) == (name in ONLY_READ)
    if one.write is not None:
        written = "labels" if one.holds == "labels" else "data"
        assert list(inspect.signature(one.write).parameters) == [written, "path"]
    assert Path(__file__).with_name(f"test_{name.replace('-', '_')}.py").exists()


WRONG = """
from pathlib import Path
from typing import Sequence

from partly.data.dataset import Dataset
from partly.data.label_semantics import LabelSemantics
from partly.data.protocols import DatasetFormat, LabelFormat
from partly.labels import Labels

def recognizes(path: Path) -> bool: ...
def read(path: Path, names: Sequence[str] | None, semantics: LabelSemantics) -> Labels: ...
def write(labels: Labels, path: Path) -> None: ...
def read_dataset(path: Path, semantics: LabelSemantics) -> Dataset: ...
def read_without_semantics(path: Path, names: Sequence[str] | None) -> Labels: ...
def write_renamed(data: Labels, path: Path) -> None: ...
def recognize_text(path: str) -> bool: ...

LabelFormat(recognizes, read, write, suffixes=(".txt",))
DatasetFormat("items", recognizes, read_dataset)
LabelFormat(recognizes, read_dataset)  # wrong
LabelFormat(recognizes, read_without_semantics)  # wrong
LabelFormat(recognizes, read, write_renamed)  # wrong
LabelFormat(recognize_text, read)  # wrong
DatasetFormat("items", recognizes, read)  # wrong
DatasetFormat("items", recognizes, read_dataset, write)  # wrong
DatasetFormat("labels", recognizes, read_dataset)  # wrong
"""


def test_the_type_checker_refuses_a_wrong_format(tmp_path, monkeypatch):
    script = tmp_path / "script.py"
    script.write_text(WRONG)
    monkeypatch.chdir(Path(__file__).parents[3])
    output, trouble, _ = api.run(["--strict", "--disable-error-code=empty-body", "--no-error-summary", str(script)])
    wrong = [number for number, line in enumerate(WRONG.splitlines(), 1) if "# wrong" in line]
    assert [int(number) for number in re.findall(r"script\.py:(\d+): error", output)] == wrong, output + trouble


def test_formats_are_the_files_of_their_folder():
    stems = {module.name.replace("_", "-") for module in pkgutil.iter_modules(formats.__path__)}
    assert set(formats.discover()) == stems
    listed = {"chexpert", "coco", "label-studio", "ledger-db", "open-images", "tags", "voc-annotations", "voc-sets"}
    assert set(formats.formats("labels")) == {"labels-npy", "labels-npz", "long", "tag-lists", "wide", *listed}
    features = {"feature-arrays", "feature-folder", "feature-table"}
    assert set(formats.formats("items")) == {*features, *ITEMS_ONLY_READ}
    assert set(formats.formats("dataset")) == {"digits", "hugging-face", "mulan", "scenes", "svmlight", "train-test"}


def test_a_file_is_of_one_format_at_most(tmp_path):
    write_labels(small(), tmp_path / "wide.csv", form="wide")
    write_labels(small(), tmp_path / "long.csv", form="long")
    write_labels(small(), tmp_path / "labels.npz")
    np.save(tmp_path / "x.npy", np.eye(3))
    for holds in HOLDS:
        for name in ("wide.csv", "long.csv", "labels.npz", "x.npy", "none.npz", "other.txt", "scenes"):
            found = [one for one in formats.formats(holds).values() if one.recognizes(tmp_path / name)]
            assert len(found) <= 1
            assert formats.of(tmp_path / name, holds) is next(iter(found), None)
    assert formats.of(tmp_path / "wide.csv", "labels") is formats.discover()["wide"]
    assert formats.of(tmp_path / "long.csv", "labels") is formats.discover()["long"]


# ---------------------------------------------------------------- labels


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
    assume(form != "wide" or not ("item" in labels.names or labels.names in (("label",), ("label", "value"))))
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
        with pytest.raises(DataError, match=r"can execute code.*\.csv, \.parquet"):
            call(tmp_path / f"a.{suffix}")
    for name in ("a.docx", "a"):
        with pytest.raises(DataError, match=r"(Available: \.csv, \.parquet|Choose one)"):
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
    for call in (read_labels, lambda path, form: write_labels(small(), path, form=form)):
        with pytest.raises(DataError, match=r"unknown suffix '.npz'"):
            call(tmp_path / "a.npz", form="long")
        with pytest.raises(SettingError, match="There is no form 'tall'"):
            call(tmp_path / "a.csv", form="tall")


# ---------------------------------------------------------------- features

numbers = st.floats(-(2.0**122), 2.0**122, width=32)  # larger features are refused


@st.composite
def some_features(draw, sparse):
    """Any features with ids and names, down to no items at all."""
    ids = draw(st.lists(words, max_size=5, unique=True))
    names = draw(st.lists(words.filter(lambda word: word != "item"), min_size=1, max_size=4, unique_by=fold))
    x = draw(arrays(np.float32, (len(ids), len(names)), elements=numbers | st.just(0.0)))
    items = sparse_features(sp.csr_array(x), names=tuple(names)) if sparse else features(x, names=tuple(names))
    return Dataset(items, Labels.from_full(np.ones((len(ids), 0)), ids=ids))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", "npy"])
@pytest.mark.parametrize("sparse", [False, True])
@given(data=st.data())
@settings(max_examples=25)
def test_write_then_read_of_features_is_the_identity(tmp_path_factory, suffix, sparse, data):
    """But an `.npy` holds the matrix alone, and only an `.npz` holds a sparse one as it is."""
    one = data.draw(some_features(sparse))
    path = tmp_path_factory.mktemp("files") / f"x.{suffix}"
    if suffix == "npy":  # with ids or names it is refused
        bare = SparseRows(one.items.matrix) if sparse else Arrays(one.items.array)
        one = Dataset(bare, Labels.from_full(np.ones((len(bare), 0))))
    write(one, path)
    again = read(path)
    assert type(again.items) is (type(one.items) if suffix == "npz" else Arrays)
    np.testing.assert_array_equal(again.items.take(slice(None)).numpy(), one.items.take(slice(None)).numpy())
    if suffix == "npy":
        assert again.items.names is None
        assert again.labels.ids == tuple(map(str, range(len(one.items))))
    else:
        assert again.items.names == one.items.names
        assert again.labels == one.labels
    if not sparse or suffix == "npz":
        assert again.items.digest() == one.items.digest()
    assert os.listdir(path.parent) == [path.name]


def test_every_format_gives_the_same(tmp_path):
    x = np.array([[1.5, -2.0], [0.0, 1e-3], [3.0, 4.0]])
    (tmp_path / "a.csv").write_text("item,a,b\n007,1.5,-2\nNA,0,1e-3\nz,3.0,+4\n")
    pq.write_table(pa.table({"a": x[:, 0], "item": ["007", "NA", "z"], "b": x[:, 1]}), tmp_path / "a.parquet")
    np.save(tmp_path / "a.npy", x)
    np.savez(tmp_path / "a.npz", features=x, ids=np.array(["007", "NA", "z"]))
    sp.save_npz(tmp_path / "csr.npz", sp.csr_array(x))
    for name in ("a.csv", "a.parquet", "a.npy", "a.npz", "csr.npz"):
        data = read(tmp_path / name)
        found = data.items.take(slice(None)).numpy()
        assert found.dtype == np.float32
        assert found.tolist() == x.astype(np.float32).tolist()
        assert data.labels.ids == (("0", "1", "2") if name in ("a.npy", "csr.npz") else ("007", "NA", "z"))


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz", "npy"])
def test_a_failed_write_of_features_leaves_the_old_file_alone(tmp_path, suffix, monkeypatch):
    path = tmp_path / f"a.{suffix}"
    data = Dataset(features(np.eye(3)), small())
    write(data, path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(DataError, match="No space left"):
            write(data[:2], path)
    assert path.read_bytes() == before
    with pytest.raises(DataError, match="cannot be written"):
        write(data, tmp_path / "none" / path.name)
    assert os.listdir(tmp_path) == [path.name]
