"""svmlight: files of scikit-learn, of libsvm's pages and of the extreme classification repository."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

import partly
from partly import Dataset, Labels
from partly.errors import DataError
from partly.items import features


def test_lines(tmp_path):
    (tmp_path / "a.svm").write_text("0,4 1:0.5 3:2\n 2:1\n4 1:1\n")
    with pytest.raises(DataError, match=r"an svmlight file lists positives.*--absent"):
        partly.read(tmp_path / "a.svm")
    data = partly.read(tmp_path / "a.svm", absent="no")
    assert data.labels.names == ("0", "4")
    assert data.labels.ternary().tolist() == [[1, 1], [-1, -1], [-1, 1]]
    assert data.items.take(slice(None)).tolist() == [[0.5, 0, 2], [0, 1, 0], [1, 0, 0]]
    assert partly.read(tmp_path / "a.svm", absent="unknown").labels.rows(slice(None)).tolist()[1] == [0, 0]


def test_a_first_line_that_counts(tmp_path):
    (tmp_path / "a.txt").write_text("2 4 3\n1 0:1 2:0.5\n0,2 1:1\n")
    data = partly.read(tmp_path / "a.txt", absent="no")
    assert data.items.shape == (4,)
    assert data.labels.names == ("0", "1", "2")
    assert data.labels.ternary().tolist() == [[-1, 1, -1], [1, -1, 1]]


def test_a_label_beyond_the_counts_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text("1 3 2\n5 0:1 1:2\n")
    with pytest.raises(DataError, match=r"a\.txt: the label 5 is beyond the 2 labels that the file declares"):
        partly.read(tmp_path / "a.txt", absent="no")


@pytest.mark.parametrize("line", ["1 x:1", "1 1:x", "1.5 1:1", "-1 1:1"])
def test_what_is_no_line(tmp_path, line):
    (tmp_path / "a.svm").write_text(f"1 1:1\n{line}\n")
    with pytest.raises(DataError, match=r"a\.svm"):
        partly.read(tmp_path / "a.svm", absent="no")


def test_the_real_tool_reads_and_writes_the_same(tmp_path):
    x = np.array([[0, 1.5, 0], [2, 0, 1e-3]], np.float32)
    data = Dataset(features(x), Labels.from_full([[1, 0, 1], [0, 0, 1]], ids=["a", "b"]))
    partly.write(data, tmp_path / "a.svm")
    found, listed = load_svmlight_file(str(tmp_path / "a.svm"), multilabel=True, zero_based=True)
    np.testing.assert_array_equal(found.toarray().astype(np.float32), x)
    assert listed == [(0.0, 2.0), (2.0,)]
    dump_svmlight_file(x, np.array([[1, 0, 1], [0, 0, 1]]), str(tmp_path / "b.svm"), multilabel=True, zero_based=False)
    again = partly.read(tmp_path / "b.svm", absent="no")
    np.testing.assert_array_equal(again.items.take(slice(None)).numpy(), x)
    assert again.labels.names == ("0", "2")
