"""MULAN's ARFF with its list of labels, and MEKA's without one."""

from __future__ import annotations

import pytest

import partly
from partly.errors import DataError

HEAD = "% a comment\n@relation 'emotions'\n\n@attribute 'a b' numeric\n@attribute kind {x,y}\n@attribute sad {0,1}\n"
HEAD += "@ATTRIBUTE glad {0,1}\n@data\n"
XML = '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="sad"><label name="glad"/></label></labels>'


@pytest.fixture
def file(tmp_path):
    (tmp_path / "emotions.xml").write_text(XML)
    return tmp_path / "emotions.arff"


def test_dense_and_sparse_rows(file):
    file.write_text(HEAD + "1.5,y,1,0\n-2,x,0,0\n")
    with pytest.raises(DataError, match=r"no label is \?.*--absent"):
        partly.read(file)
    data = partly.read(file, absent="no")
    assert data.items.names == ("a b", "kind")
    assert data.items.take(slice(None)).tolist() == [[1.5, 1], [-2, 0]]
    assert (data.labels.names, data.labels.ternary().tolist()) == (("sad", "glad"), [[1, -1], [-1, -1]])
    assert data.hierarchy.parents == {"glad": "sad"}
    file.with_name("emotions-train.arff").write_text(HEAD + "{0 1.5, 1 y, 2 1}\n{}\n")
    sparse = partly.read(file.with_name("emotions-train.arff"), absent="unknown")
    assert sparse.items.take(slice(None)).tolist() == [[1.5, 1], [0, 0]]
    assert sparse.labels.rows(slice(None)).tolist() == [[1, 0], [0, 0]]


def test_where_there_is_a_question_mark_nothing_is_left_open(file):
    file.write_text(HEAD + "1.5,y,1,?\n-2,x,0,0\n")
    assert partly.read(file).labels.rows(slice(None)).tolist() == [[1, 0], [-1, -1]]


def test_meka_counts_its_labels(tmp_path):
    for count, names in (("-C 1", ["a b"]), ("-C -2", ["sad", "glad"])):
        head = HEAD.replace("emotions", f"emotions: {count}").replace("numeric", "{0,1}").replace("{x,y}", "numeric")
        (tmp_path / "a.arff").write_text(head + "1,2,1,0\n")
        assert list(partly.read(tmp_path / "a.arff", absent="no").labels.names) == names
    (tmp_path / "a.arff").write_text(HEAD + "1,x,1,0\n")
    with pytest.raises(DataError, match=r"cannot tell which attributes are labels. Name them in a.xml"):
        partly.read(tmp_path / "a.arff", absent="no")


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("1,x,1", ":9: 3 cells for 4 attributes"),
        ("1,z,1,0", ":9: attribute 'kind': 'z' is not one of"),
        ("1,x,2,0", ":9: attribute 'sad': '2' is not one of"),
        ("{9 1}", ":9: a sparse row is"),
        ("?,x,1,0", "missing"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(file, row, told):
    file.write_text(HEAD + row + "\n")
    with pytest.raises(DataError, match=told):
        partly.read(file, absent="no")
