from __future__ import annotations

import numpy as np
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from partly import Labels
from partly.data import read_labels, tables, write_labels
from partly.data.formats import wide
from partly.errors import DataError, LabelError
from partly.labels.spellings import SPELLINGS


def refusal(path, content: str, **settings) -> str:
    path.write_text(content, newline="")
    with pytest.raises(DataError) as told:
        read_labels(path, **settings)
    return str(told.value)


@pytest.fixture
def file(tmp_path):
    return tmp_path / "labels.csv"


def test_what_is_written(file):
    labels = Labels.from_ternary([[1, -1], [0, 1]], names=["cat", 'a "dog"'], ids=["007", "NA"])
    write_labels(labels, file)
    assert file.read_text() == '"item","cat","a ""dog"""\n"007",1,0\n"NA",,1\n'
    write_labels(labels, file.with_suffix(".parquet"))
    table = pq.read_table(file.with_suffix(".parquet"))
    assert [str(kind) for kind in table.schema.types] == ["string", "int8", "int8"]
    assert table.to_pydict() == {"item": ["007", "NA"], "cat": [1, None], 'a "dog"': [0, 1]}


@pytest.mark.parametrize("cell", ["2", "-100", "None", "none", "yes!", "1.00", "+1", "0.5", "-", "x", "negative", "."])
def test_other_spellings_are_refused(file, cell):
    told = refusal(file, f"item,cat,dog\nx,1,0\ny,,{cell}\n")
    assert told.startswith(f"{file}: cells that are not {SPELLINGS}: 1\n")
    assert f"\n  {file}:3: label 'dog': {cell!r}\n" in told
    assert "Labels.from_ternary" in told


@pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("Yes", "NO"), ("True", "false"), ("Y", "n"), ("t", "F")])
@pytest.mark.parametrize("unknown", ["", " ", "NA", "n/a", "?", "NaN", "null", "<NA>", "#N/A", "Unknown"])
def test_words_that_leave_nothing_to_guess(file, yes, no, unknown):
    file.write_text(f"item,cat,dog\nx,{yes},{no}\ny,{unknown},{yes}\n")
    assert read_labels(file).ternary().tolist() == [[1, -1], [0, 1]]


def test_further_spellings_of_unknown(file):
    assert "label 'dog': '-'" in refusal(file, "item,cat,dog\nx,1,-\ny,not checked,0\n")
    assert read_labels(file, missing=["-", "Not checked"]).ternary().tolist() == [[1, 0], [0, -1]]
    file.write_text("item,cat,dog\nx,1,-1\ny,9,0\n")
    assert read_labels(file, missing=["-1", "9"]).ternary().tolist() == [[1, 0], [0, -1]]


def test_some_columns_are_labels(file):
    file.write_text("item,a,cat,label_dog,label_cow,b\nx,7,1,0,,z\n")
    for given, expected in {
        "cat": ("cat",),
        "label_cow,cat": ("cat", "label_cow"),
        "label_*": ("label_dog", "label_cow"),
        "cat..label_cow": ("cat", "label_dog", "label_cow"),
    }.items():
        assert read_labels(file, label_columns=given).names == expected
    assert read_labels(file, label_columns=["cat", "label_*"]).ternary().tolist() == [[1, -1, 0]]
    for given in ("cut", "labels_*", "cat..cut"):
        with pytest.raises(DataError, match=r":1: no column is called"):
            read_labels(file, label_columns=given)
    file.write_text('item,"a,b",c\nx,1,0\n')
    assert read_labels(file, label_columns="a,b").names == ("a,b",)


def test_ids_in_another_column(file):
    file.write_text("cat,image\n1,x\n0,y\n")
    labels = read_labels(file, id_column="image")
    assert (labels.names, labels.ids, labels.ternary().tolist()) == (("cat",), ("x", "y"), [[1], [-1]])
    told = refusal(file, "cat,image\n1,x\n0,y\n")
    assert "label 'image': 'x'" in told
    assert "--id-column NAME" in told
    with pytest.raises(DataError, match="Did you mean 'image'"):
        read_labels(file, id_column="imag")
    file.write_text("item,image,cat\n1,x,0\n")
    with pytest.raises(DataError, match="'image' is to hold the ids, but there is also a column 'item'"):
        read_labels(file, id_column="image")


def test_a_column_of_names_is_told_how_names_are_written(file):
    assert "a table with the columns item,label" in refusal(file, 'item,kinds\nx,"cat, dog"\ny,cat\n')
    assert "two columns" not in refusal(file, "item,kinds,cat\nx,cat,1\n")


def test_all_wrong_cells_are_counted_over_all_blocks_and_the_lines_are_right(file, monkeypatch):
    monkeypatch.setattr(tables, "BLOCK_BYTES", 1 << 7)
    cells = [0] * 100 + [i % 10 for i in range(100)]
    told = refusal(file, "item,cat\n" + "".join(f'"{i}\n{i}",{cell}\n' for i, cell in enumerate(cells)))
    # of the rows from 100 on 102, 103, 104, 105 and 106 are the first wrong ones; a row takes two lines, the header one
    assert f"{SPELLINGS}: 80\n" in told
    assert [line for line in told.splitlines() if ": label" in line] == [
        f"  {file}:{2 + 2 * (100 + i)}: label 'cat': '{i}'" for i in (2, 3, 4, 5, 6)
    ]


def test_items_without_id_or_with_one_id(file):
    told = refusal(file, "item,cat\n7,1\n007,1\n7,1\n ,0\n,1\n7,0\n")
    assert told.startswith(f"{file}: items without an id, or with the id of an earlier one: 4\n")
    assert f"\n  {file}:4: '7', as in {file}:2\n  {file}:5: blank\n  {file}:6: blank\n  {file}:7: '7', as in " in told


def test_a_table_without_ids_has_positions(file):
    file.write_text("cat,dog\n1,0\n,1\n")
    assert read_labels(file) == Labels.from_ternary([[1, -1], [0, 1]], names=["cat", "dog"])


def test_the_header_decides_and_the_form_overrules_it(file):
    file.write_text("item,label,value\n1,1,1\n")
    assert read_labels(file).names == ("1",)
    assert read_labels(file, form="wide").names == ("label", "value")
    file.write_text("item,value,label\n1,1,1\n")
    assert read_labels(file).names == ("value", "label")
    assert read_labels(file, form="long").names == ("1",)


@pytest.mark.parametrize("names", [("label", "value"), ("item",), ("cat", "item")])
def test_names_that_would_make_a_wide_file_ambiguous_are_not_written(file, names):
    labels = Labels.from_ternary(np.ones((2, len(names))), names=names)
    with pytest.raises(DataError, match="form='long'"):
        write_labels(labels, file, form="wide")
    assert not file.exists()
    write_labels(labels, file, form="long")
    assert read_labels(file) == labels


def test_a_blank_label_name_is_refused(file):
    assert refusal(file, "item,cat,\nx,1,1\n").startswith(f"{file}: ")


def test_the_line_of_a_label_that_is_not_among_the_names(file):
    told = refusal(file, "item,Tabby cat\nx,1\n", names=["tabby cat", "dog"])
    assert told == f"{file}:1: label 'Tabby cat' is not among the 2 names. Nearest: 'tabby cat' (differs in case)."


def test_names_themselves_are_checked(file):
    file.write_text("item,cat\nx,1\n")
    for names in (["cat", "Cat"], "cat"):
        with pytest.raises(LabelError):
            read_labels(file, names=names)


def test_no_labels_at_all(file):
    file.write_text("item\nx\ny\n")
    assert read_labels(file).shape == (2, 0)


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_many_blocks_and_the_smaller_of_dense_and_sparse(tmp_path, suffix, monkeypatch):
    for module, name, value in (
        (tables, "BLOCK_BYTES", 1 << 8),
        (tables, "BLOCK_CELLS", 1 << 6),
        (wide, "GROUP_CELLS", 1 << 7),
        (wide, "MAX_DENSE_CELLS", 1000),
    ):
        monkeypatch.setattr(module, name, value)
    rng = np.random.default_rng(0)
    for share, sparse in ((0.05, True), (0.9, False)):
        z = np.where(rng.random((300, 7)) < share, rng.choice([-1, 1], (300, 7)), 0)
        z[:30] = 1  # blocks of both kinds in one file
        labels = Labels.from_ternary(sp.csr_array(z))
        write_labels(labels, tmp_path / f"a.{suffix}", form="wide")
        read = read_labels(tmp_path / f"a.{suffix}")
        assert read == labels
        assert read.sparse is sparse


def test_minus_one_is_uncertain_and_the_caller_says_what_that_means(file):
    content = "item,cat,dog\nx,1,-1\ny,,-1.0\n"
    told = refusal(file, content)
    assert told.startswith(f"{file}: cells that are -1, neither yes nor no: 2\n")
    assert f"{file}:2: label 'dog': '-1'" in told
    assert "--uncertain unknown or --uncertain yes or --uncertain no (in Python uncertain=" in told
    for absent in (None, "unknown", "no"):
        nothing = -1 if absent == "no" else 0
        for word, z in (("unknown", 0), ("yes", 1), ("no", -1)):
            labels = read_labels(file, absent=absent, uncertain=word)
            assert labels.ternary().tolist() == [[1, z], [nothing, z]]
