"""Texts as bytes: what goes in comes out again, cut between two letters."""

from __future__ import annotations

import copy
import tempfile
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from partly import Classifier
from partly.errors import DataError
from partly.items import are_texts, as_items, decode_texts, spool_texts, texts
from partly.items.text_rows import MAX_BYTES

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
words = words.filter(str.strip)


@given(st.lists(words, min_size=1, max_size=6), st.data())
def test_what_goes_in_comes_out(all_words: list[str], data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, len(all_words) - 1), max_size=5))
    items = texts(all_words)
    batch = items.take(torch.tensor(rows, dtype=torch.int64))
    assert batch.shape == (len(rows), MAX_BYTES)
    assert decode_texts(batch) == [all_words[row] for row in rows]
    assert decode_texts(items[np.array(rows, np.int64)].take(slice(None)).float()) == [all_words[row] for row in rows]


@pytest.mark.parametrize("letter", ["a", "é", "€", "🐈"])
@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_a_long_text_is_cut_between_two_letters(letter: str, before: int) -> None:
    text = "x" * before + letter * MAX_BYTES
    (found,) = decode_texts(texts([text]).take(slice(None)))
    assert text.startswith(found)
    assert MAX_BYTES - 4 < len(found.encode()) <= MAX_BYTES


def test_what_they_are() -> None:
    items = texts(["one", "two"])
    assert (items.kind, items.shape, items.names, len(items[1:])) == ("texts", (MAX_BYTES,), None, 1)
    assert items.statistics.mean.tolist() == [0.0] * MAX_BYTES
    assert items.statistics.scale.tolist() == [1.0] * MAX_BYTES


def test_the_digest_is_of_all_texts_in_order() -> None:
    some = [["a", "b"], ["b", "a"], ["ab"], ["a", "b", "c"], ["a", "bc"], ["a b"], ["a\n1 b"]]
    digests = [texts(part).digest() for part in some]
    assert len({*digests}) == len(some)
    assert texts(["x", "a", "b"])[1:].digest() == digests[0]
    assert (
        texts(["a" * MAX_BYTES + "b"]).digest() != texts(["a" * MAX_BYTES + "c"]).digest()
    )  # also of what is not read


@pytest.mark.parametrize("bad", ["", "  \n", "a\0b"])
def test_a_text_that_says_nothing_is_refused(bad: str) -> None:
    with pytest.raises(DataError, match=r"(?s)X: texts that are blank or hold a NUL: 1.*item 1"):
        texts(["a", bad])


def test_a_text_that_is_no_unicode_is_refused() -> None:
    with pytest.raises(DataError, match="not valid Unicode"):
        texts(["a\udc80"])


@pytest.mark.parametrize(
    "given", [["a text", "b"], ("a text", "b"), np.array(["a text", "b"]), pd.Series(["a text", "b"])]
)
def test_lists_and_columns_of_texts_are_taken_for_what_they_are(given: Any) -> None:
    items = as_items(given)
    assert items.kind == "texts"
    assert decode_texts(items.take(slice(None))) == ["a text", "b"]


def test_numbers_are_not_taken_for_texts() -> None:
    assert not any(map(are_texts, ([], [[1.0], [2.0]], np.zeros(3), np.array([["a"], ["b"]]), "a text", None)))
    with pytest.raises(DataError, match=r"X: not texts: 2 of 3\n  item 1: nan\n  item 2: None"):
        as_items(["a text", float("nan"), None])


def test_a_classifier_takes_a_list_of_texts() -> None:
    words = ["a red cat", "a blue car", "the cat sleeps", "cars are fast"] * 8
    truth = np.array([[1, 0], [0, 1], [1, 0], [0, 1]] * 8)
    model = Classifier("bce", head="linear", epochs=20, progress=False).fit(words, truth)
    assert model.predict(["red cat", "blue cars"]).tolist() == [[1, 0], [0, 1]]
    with pytest.raises(DataError, match="3 features"):
        model.predict(np.zeros((2, 3)))


def test_spooled_texts_are_the_same_items() -> None:
    said = ["one", "zwei 🐈", "x" * (MAX_BYTES + 5), "last"]
    items, same = texts(said), spool_texts(iter([said[:1], said[1:3], [], said[3:]]))
    assert same.digest() == items.digest()
    assert torch.equal(same.take(slice(None)), items.take(slice(None)))
    assert decode_texts(same[np.array([3, 1])].take(slice(None))) == ["last", "zwei 🐈"]
    assert copy.deepcopy(same).digest() == items.digest()  # as another process gets it


def test_of_spooled_texts_a_block_is_held_at_a_time() -> None:
    class Block(list):
        pass

    alive: weakref.WeakSet[Block] = weakref.WeakSet()

    def blocks() -> Iterator[Block]:
        for i in range(5):
            assert len(alive) <= 1  # the one before
            block = Block([f"text {i}"] * 3)
            alive.add(block)
            yield block

    Block.__hash__ = object.__hash__  # type: ignore[method-assign]
    assert len(spool_texts(blocks())) == 15


def test_where_texts_cannot_be_kept_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(DataError, match=r"table.csv: .* \(No space left on device\)\. Set TMPDIR"):
        spool_texts([["a"]], "table.csv")
