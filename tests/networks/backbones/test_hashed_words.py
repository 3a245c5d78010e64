"""A bag of hashed words: the mean of the vectors of the words, whatever their case and order."""

from __future__ import annotations

import zlib

import torch

from partly.items import texts
from partly.networks import backbones


def test_a_text_is_the_mean_of_its_words() -> None:
    made = backbones.find("hashed-words").make((4096,), places=50, width=6)
    said = ["A cat; a DOG!", "dog a CAT a", "... !?", "ünïcode"]
    found = made(texts(said).take(slice(None)))
    assert found.shape == (4, 6)
    places = [1 + zlib.crc32(word.encode()) % 50 for word in ("a", "cat", "a", "dog")]
    torch.testing.assert_close(found[0], made.words.weight[places].mean(dim=0))
    torch.testing.assert_close(found[0], found[1])
    assert found[2].tolist() == [0.0] * 6  # no words
    assert made(texts(["... !?"]).take(slice(None))).tolist() == [[0.0] * 6]
    torch.testing.assert_close(found[3], made.words.weight[1 + zlib.crc32("ünïcode".encode()) % 50])


def test_bytes_may_come_as_numbers() -> None:
    made = backbones.find("hashed-words").make((4096,))
    x = texts(["one", "two"]).take(slice(None))
    assert torch.equal(made(x), made(x.float()))
    assert (made.width, made.size, made.normalizes) == (128, None, True)
