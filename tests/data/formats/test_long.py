from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest

from partly import Labels
from partly.data import read_labels, tables, write_labels
from partly.data.formats import long
from partly.errors import DataError
from partly.labels.spellings import SPELLINGS


def refusal(path, content: str, **settings) -> str:
    path.write_text(content, newline="")
    with pytest.raises(DataError) as told:
        read_labels(path, **settings)
    return str(told.value)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "labels.csv"


def test_entries_in_the_order_of_first_appearance(file):
    file.write_text("item,label,value\n007,dog,1\n7,cat,0\n007,cat,1\n007,dog,1\n")
    labels = read_labels(file)
    assert (labels.ids, labels.names) == (("007", "7"), ("dog", "cat"))
    assert labels.ternary().tolist() == [[1, 1], [0, -1]]


def test_tags_without_values_are_yes(file):
    """An item without a tag is there, and nothing is known of it; nobody is known not to have a label."""
    file.write_text("item,label\n007,dog\n7,cat\n007,cat\n8,\n")
    labels = read_labels(file)
    assert (labels.ids, labels.names) == (("007", "7", "8"), ("dog", "cat"))
    assert labels.ternary().tolist() == [[1, 1], [0, 1], [0, 0]]


def test_the_only_label_may_be_called_label(file):
    labels = Labels.from_nan([[1], [0], [np.nan]], names=["label"], ids=["x", "y", "z"])
    write_labels(labels, file)
    assert file.read_text().startswith('"item","label"\n')
    assert read_labels(file) == labels


def test_what_is_written(file):
    labels = Labels.from_ternary([[0, 0], [1, -1], [0, 1]], names=["cat", "dog"], ids=["x", "y", "z"])
    write_labels(labels, file, form="long")
    assert file.read_text().splitlines() == [
        '"item","label","value"',
        ',"cat",',
        ',"dog",',
        '"x",,',
        '"y","cat",1',
        '"y","dog",0',
        '"z","dog",1',
    ]
    write_labels(labels, file.with_suffix(".parquet"), form="long")
    assert pq.read_table(file.with_suffix(".parquet")).to_pydict() == {
        "item": [None, None, "x", "y", "y", "z"],
        "label": ["cat", "dog", None, "cat", "dog", "dog"],
        "value": [None, None, None, 1, 0, 1],
    }


def test_a_blank_value_says_nothing_but_names_its_item_and_label(file):
    file.write_text("item,label,value\nx,cat,\ny,,\n,dog,\n,,\nx,cat,1\n")
    labels = read_labels(file)
    assert (labels.ids, labels.names) == (("x", "y"), ("cat", "dog"))
    assert labels.ternary().tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("value", ["2", "-100", "none", "0.5", "-", "x"])
def test_other_spellings_are_refused(file, value):
    told = refusal(file, f'item,label,value\nx,"c\nat",1\nx,dog,{value}\n')
    assert told.startswith(f"{file}: values that are not {SPELLINGS}: 1\n")
    assert f"\n  {file}:4: {value!r}\n" in told


def test_lines_are_right_in_every_block(file, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1 << 7)
    rows = "item,label,value\n" + "x,cat,1\n" * 100
    assert f"{file}:102: '!'" in refusal(file, f"{rows}x,dog,!\n")
    assert f"{file}:102: no item" in refusal(file, f"{rows},dog,1\n")
    assert f"{file}:102: no, but not in {file}:101" in refusal(file, f"{rows}x,cat,0\n")
    assert f"{file}:102: label 'dog'" in refusal(file, f"{rows}x,dog,0\n", names=["cat"])


def test_a_value_needs_an_item_and_a_label(file):
    told = refusal(file, "item,label,value\nx,cat,1\n,cat,1\nx,,0\nx, ,0\n")
    assert told.startswith(f"{file}: values without an item or without a label: 3\n")
    assert f"\n  {file}:3: no item\n  {file}:4: no label\n  {file}:5: no label\n" in told


def test_contradictions_are_all_told_with_both_lines(file):
    told = refusal(file, "item,label,value\nx,cat,1\nx,dog,0\ny,cat,1\nx,dog,1\nx,cat,1\ny,cat,0\n")
    assert told.startswith(f"{file}: entries that are both yes and no: 2\n")
    assert f"\n  {file}:5: yes, but not in {file}:3\n" in told
    assert f"\n  {file}:7: no, but not in {file}:4\n" in told


def test_a_label_that_is_not_among_the_names_is_told_where_it_first_stands(file):
    rows = "".join(f"i{k},tabby cat,1\n" for k in range(4125))
    names = ["tabby cat", *(f"label {k}" for k in range(79))]
    told = refusal(
        file, f"item,label,value\n{rows}x,Tabby cat,1\nx,tabbycat,1\ny,Tabby cat,0\nx,zebra,1\n", names=names
    )
    assert told.splitlines() == [
        f"{file}:4127: label 'Tabby cat' is not among the 80 names. Nearest: 'tabby cat' (differs in case).",
        f"{file}:4128: label 'tabbycat' is not among the 80 names. Nearest: 'tabby cat' (differs in spaces).",
        f"{file}:4130: label 'zebra' is not among the 80 names.",
    ]


def test_of_many_strange_labels_only_the_first_few_are_looked_up(file, monkeypatch):
    asked = []
    place = tables.CsvTable.place
    monkeypatch.setattr(tables.CsvTable, "place", lambda self, row: asked.append(row) or place(self, row))
    told = refusal(file, "item,label,value\n" + "".join(f"x,strange {k},1\n" for k in range(100)), names=["cat"])
    assert len(told.splitlines()) == 6
    assert told.endswith("... and 95 more")
    assert asked == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("Cafe\u0301", "'Café' (differs in Unicode form)"),
        (" CAFE\u0301", "'Café' (differs in case, spaces or Unicode form)"),
        ("Cafés", "'Café'."),
    ],
)
def test_what_the_nearest_name_differs_in(file, word, nearest):
    assert nearest in refusal(file, f"item,label,value\nx,{word},1\n", names=["Café"])


def test_labels_that_differ_in_case_only_are_refused(file):
    assert refusal(file, "item,label,value\nx,cat,1\ny,Cat,1\n").startswith(f"{file}: Label names must differ by more")


def test_columns_that_are_missing(file):
    told = refusal(file, "item,cat\nx,1\n", form="long")
    assert told.startswith(f"{file}:1: this form needs the columns item, label, value. The file begins with item, cat.")


def test_other_columns_are_left_alone_when_the_form_is_told(file):
    file.write_text("label,who,item,value\ncat,me,x,1\n")
    assert read_labels(file, form="long").ternary().tolist() == [[1]]


def test_a_header_alone_means_nothing(file):
    file.write_text("item,label,value\n")
    assert read_labels(file).shape == (0, 0)
    assert read_labels(file, names=["cat"]).shape == (0, 1)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_large_file_is_read_block_by_block(tmp_path, suffix, monkeypatch):
    rng = np.random.default_rng(1)
    z = np.where(rng.random((3000, 40)) < 0.1, rng.choice([-1, 1], (3000, 40)), 0)
    labels = Labels.from_ternary(z, names=[f"label {j}" for j in range(40)], ids=[f"item {i}" for i in range(3000)])
    monkeypatch.setattr(long, "GROUP_ROWS", 1000)
    write_labels(labels, tmp_path / f"a.{suffix}", form="long")
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1 << 14)
    monkeypatch.setattr(tables, "BLOCK_CELLS", 3 * 700)
    sizes = []
    coded = long.encode_texts
    monkeypatch.setattr(long, "encode_texts", lambda words, codes: sizes.append(len(words)) or coded(words, codes))
    assert read_labels(tmp_path / f"a.{suffix}") == labels
    assert len(sizes) >= 20
    assert max(sizes) <= 1000


def test_rows_that_only_name_an_item_or_a_label_say_nothing_of_an_entry(file):
    file.write_text("item,label,value\n,cat,\n,dog,\nx,,\ny,cat,1\nz,dog,-1\n")
    assert read_labels(file, uncertain="unknown").rows(slice(None)).tolist() == [[0, 0], [1, 0], [0, 0]]
    no = read_labels(file, absent="no", uncertain="unknown")
    assert no.rows(slice(None)).tolist() == [[-1, -1], [1, -1], [-1, 0]]
