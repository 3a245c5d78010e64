"""What is written in a format of the field is read again, as far as the format can say it, and nothing else."""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import partly
from partly import Dataset, Labels
from partly.data import read_labels, write_labels
from partly.items import features, sparse_features
from partly.labels.names import fold

ALL_THREE = {"coco": "a.json", "label-studio": "a.json.gz", "chexpert": "a.csv.zst", "open-images": "a.parquet"}
ALL_THREE |= {"voc-sets": "train.txt"}
ONLY_YES = {"tags": "a.tsv", "voc-annotations": "folder"}
odd = st.sampled_from(["007", "NA", "=1+1", "<b>&amp;", "'", '"x', "a,b", "é", "🐈", "a.b", "{1}", "%", "?"])
words = odd | st.text(st.characters(categories=["L", "N", "P"]), min_size=1, max_size=8).filter(
    lambda word: not set(word) & {"/", "\\"}  # become names of files in one format
)


@st.composite
def some_labels(draw, values=(-1, 0, 1), ids=True):
    items = (
        draw(st.integers(1, 5)) if not ids else len(named := draw(st.lists(words, min_size=1, max_size=5, unique=True)))
    )
    names = draw(st.lists(words, min_size=1, max_size=4, unique_by=fold))
    z = draw(arrays(np.int8, (items, len(names)), elements=st.sampled_from(values)))
    return Labels.from_ternary(z, names=names, ids=named if ids else None)


def entries(labels):
    """What is known, whatever the order of items and labels."""
    rows, columns, values = labels.entries()
    return {(labels.ids[i], labels.names[j], int(v)) for i, j, v in zip(rows, columns, values, strict=True)}


@pytest.fixture(autouse=True)
def silent():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*this format cannot hold")
        yield


@pytest.mark.parametrize("form", ALL_THREE)
@given(labels=some_labels())
@settings(max_examples=15, deadline=None)
def test_yes_no_and_unknown(form, labels):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ALL_THREE[form]
        write_labels(labels, path, form=form)
        again = read_labels(path)
        assert entries(again) == entries(labels)
        if form in ("coco", "chexpert"):
            assert again == labels
        if form != "open-images":
            assert again.ids == labels.ids
            assert read_labels(path, names=labels.names) == labels


@pytest.mark.parametrize("form", ONLY_YES)
@pytest.mark.parametrize(("absent", "values"), [("unknown", (0, 1)), ("no", (-1, 1))])
@given(data=st.data())
@settings(max_examples=15, deadline=None)
def test_only_yes(form, absent, values, data):
    labels = data.draw(some_labels(values))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / ONLY_YES[form]
        write_labels(labels, path, form=form)
        assert read_labels(path, names=labels.names, absent=absent) == labels


@pytest.mark.parametrize(("form", "name"), [("mulan", "a.arff"), ("svmlight", "a.svm.gz"), ("hugging-face", "folder")])
@pytest.mark.parametrize(("absent", "values"), [("unknown", (0, 1)), ("no", (-1, 1)), (None, (-1, 0, 1))])
@given(data=st.data())
@settings(max_examples=8, deadline=None)
def test_items_with_labels(form, name, absent, values, data):
    labels = data.draw(some_labels(values, ids=form != "mulan"))
    numbers = st.floats(-(2.0**122), 2.0**122, width=32)  # larger features are refused
    x = data.draw(arrays(np.float32, (len(labels), 3), elements=numbers | st.just(0.0)))
    sparse = data.draw(st.booleans())
    names = ("f 1", "f'2", "\\f,3")
    items = sparse_features(sp.csr_array(x), names=names) if sparse else features(x, names=names)
    both = {-1, 0} <= set(labels.rows(slice(None)).ravel().tolist())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        if form == "svmlight" and both:
            with pytest.raises(partly.PartlyError, match="could not be told apart"):
                partly.write(Dataset(items, labels), path)
            return
        partly.write(Dataset(items, labels), path, form=form)
        complete = 0 not in labels.rows(slice(None))
        again = partly.read(path, absent=absent or ("no" if complete else "unknown"))
        assert again.labels == labels
        np.testing.assert_array_equal(again.items.take(slice(None)).numpy(), x)
        if form != "hugging-face":
            assert again.items.names == names
