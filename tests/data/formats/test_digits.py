"""The built-in digits: what is true of each, by hand; the same bits each time; no item in both parts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import partly
from partly.data.formats.digits import digits, recognizes, to_images
from partly.items import Items


def rows(items: Items) -> np.ndarray:
    return items.take(slice(None)).numpy()


def by_hand(digit: int) -> set[str]:
    true = {str(digit)}
    true |= {"even"} if digit % 2 == 0 else set()
    true |= {"prime"} if digit > 1 and all(digit % d for d in range(2, digit)) else set()
    true |= {"multiple of 3"} if digit % 3 == 0 else set()
    true |= {"above 4"} if digit > 4 else set()
    return true | ({"has a loop"} if digit in (0, 6, 8, 9) else set())


def test_labels_say_what_is_true_of_each() -> None:
    found, digit_of = digits(), {}
    for x, digit in zip(*(load_digits()[name] for name in ("data", "target")), strict=True):
        digit_of[x.astype(np.float32).tobytes()] = int(digit)
    assert found.test is not None
    for part in (found, found.test):
        names, z = part.labels.names, part.labels.rows(slice(None))
        for x, said in zip(rows(part.items), z, strict=True):
            assert {name for name, value in zip(names, said, strict=True) if value == 1} == by_hand(
                digit_of[x.tobytes()]
            )
        assert (z != 0).all()


@pytest.mark.parametrize(("asked", "given"), [(1200, 1200), (40, 40), (10**6, 1297)])
def test_no_item_is_in_both_parts(asked: int, given: int) -> None:
    found = digits(asked)
    assert found.test is not None
    learned, test = ({x.tobytes() for x in rows(part.items)} for part in (found, found.test))
    assert len(found.items) == len(learned) == given
    assert len(test) >= 500
    assert not learned & test


def test_the_same_each_time_and_another_for_another_seed() -> None:
    one, same, other = digits(), digits(), digits(seed=1)
    assert one.items.digest() == same.items.digest() != other.items.digest()
    assert one.labels.digest() == same.labels.digest()


def test_it_is_read_by_its_name() -> None:
    assert recognizes(Path("digits"))
    assert not recognizes(Path("digits.csv"))
    assert partly.read("digits").items.digest() == digits().items.digest()


def test_pictures_are_dark_on_light_and_larger() -> None:
    x = np.zeros((1, 64), np.float32)
    x[0, 9] = 16  # second row, second column
    found = to_images(x)
    assert (found.shape, found.dtype) == ((1, 32, 32, 3), np.uint8)
    assert (found[0, 4:8, 4:8] == 0).all()
    assert (found[0] == 255).sum() == 3 * (32 * 32 - 16)
