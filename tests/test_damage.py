"""Five hundred damages to what is kept: bits, ends, holes, mixed-up files. Each is refused in words of ours, or does no
harm; no model that can be loaded is another one."""

from __future__ import annotations

import random
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from partly import Classifier, data, engine
from partly.comparison import results
from partly.errors import PartlyError
from partly.items import as_items
from partly.labels import Labels
from plans import fit_config

RNG = np.random.default_rng(0)
X = RNG.normal(size=(24, 4)).astype(np.float32)
KNOWN = Labels.from_nan(RNG.choice([1.0, 0.0, np.nan], size=(24, 3)), names=["a", "b", "c"])


# ---------------------------------------------------------------- what is done to a file


def flip(content: bytes, rng: random.Random, _: bytes) -> bytes:
    place = rng.randrange(len(content))
    return content[:place] + bytes([content[place] ^ 1 << rng.randrange(8)]) + content[place + 1 :]


def cut(content: bytes, rng: random.Random, _: bytes) -> bytes:
    return content[: rng.randrange(len(content))]


def lengthen(content: bytes, rng: random.Random, other: bytes) -> bytes:
    return content + other[: rng.randrange(1, 200)]


def blank(content: bytes, rng: random.Random, _: bytes) -> bytes:
    """A block that was never written."""
    start = rng.randrange(len(content))
    size = min(rng.randrange(1, 600), len(content) - start)
    return content[:start] + bytes(size) + content[start + size :]


def swap(content: bytes, rng: random.Random, other: bytes) -> bytes:
    return other


def drop_a_piece(content: bytes, rng: random.Random, _: bytes) -> bytes:
    start = rng.randrange(len(content))
    return content[:start] + content[start + rng.randrange(1, 60) :]


DAMAGES: tuple[Callable[[bytes, random.Random, bytes], bytes], ...] = (flip, cut, lengthen, blank, swap, drop_a_piece)


def harm(folder: Path, others: Path, count: int, look: Callable[[Path], Any], same: Callable[[Any], bool]) -> int:
    """How many damages were refused; each of the rest must leave what is the same."""
    rng = random.Random(count)
    kept = {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}
    wrong = [path.read_bytes() for path in sorted(others.iterdir()) if path.is_file()]
    names, refused = [name for name, content in kept.items() if content], 0
    assert same(look(folder))
    for number in range(count):
        name, damage = names[number % len(names)], DAMAGES[number // len(names) % len(DAMAGES)]
        twin = others / name
        other = twin.read_bytes() if twin.exists() and number % 2 else rng.choice([*wrong, *kept.values()])
        shutil.rmtree(folder)
        folder.mkdir()
        for one, content in kept.items():
            (folder / one).write_bytes(damage(content, rng, other) if one == name else content)
        try:
            with warnings.catch_warnings():  # that an older copy was taken is said
                warnings.simplefilter("ignore", UserWarning)
                found = look(folder)
        except PartlyError:
            refused += 1
        except BaseException as error:
            raise AssertionError(f"{damage.__name__} {name}") from error
        else:
            assert same(found), f"{damage.__name__} {name}"
    return refused


# ---------------------------------------------------------------- what is kept


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run with beliefs, calibrated, and another one of the same kind, with other labels."""
    where = tmp_path_factory.mktemp("models")
    for name, known in (("one", KNOWN), ("other", KNOWN[::-1])):
        recipe = engine.make_config("role", "linear", epochs=1)
        fit_config(recipe, as_items(X), known, folder=where / name)
    return where / "one", where / "other"


def test_models(models: tuple[Path, Path]) -> None:
    """Loaded, a model and its beliefs are what they were."""
    one = Classifier.load(models[0])
    expected, believed = one.predict_proba(X), np.array(one.beliefs_)

    def look(folder: Path) -> tuple[Any, Any]:
        model = Classifier.load(folder)
        return model.predict_proba(X), np.array(model.beliefs_)

    def same(found: tuple[Any, Any]) -> bool:
        return bool((found[0] == expected).all() and (found[1] == believed).all())

    assert harm(*models, 220, look, same) > 60


def test_runs_under_way(tmp_path: Path) -> None:
    """Gone on with, a run ends in the bits that it would have ended in."""
    recipe = engine.make_config("role", "linear", epochs=2, batch_size=8)

    class Enough(Exception):
        pass

    def stop(clock: Any, _: Any) -> None:
        if clock.epoch == 1 and clock.step == 1:
            raise Enough

    for name, known in (("one", KNOWN), ("other", KNOWN[::-1])):
        with pytest.raises(Enough):
            fit_config(recipe, as_items(X), known, folder=tmp_path / name, save_seconds=0.0, callback=stop)
    expected = fit_config(recipe, as_items(X), KNOWN).predict(as_items(X))

    def look(folder: Path) -> Any:
        return fit_config(recipe, as_items(X), KNOWN, folder=folder).predict(as_items(X))

    assert harm(tmp_path / "one", tmp_path / "other", 60, look, lambda found: bool((found == expected).all())) > 5


def test_features_that_were_made(tmp_path: Path) -> None:
    pictures = np.random.default_rng(1).integers(0, 255, (12, 16, 16, 3), np.uint8)
    for name, some in (("one", pictures), ("other", pictures[::-1].copy())):
        engine.make_features(as_items(some), [f"{name} {i}" for i in range(12)], tmp_path / name, "small-conv")
    expected = np.load(tmp_path / "one" / "features.npy")

    def look(folder: Path) -> Any:
        opened = data.read(folder)
        assert opened.items.statistics is not None
        return opened.items.take(slice(None)).numpy(), opened.items.digest()

    assert harm(tmp_path / "one", tmp_path / "other", 60, look, lambda found: found[0].shape == expected.shape) > 20


def test_files_of_labels_and_of_scores(tmp_path: Path) -> None:
    """Of a text nobody can say that a letter is wrong, but what is read are labels."""
    for name, known in (("one", KNOWN), ("other", KNOWN[:7])):
        (tmp_path / name).mkdir()
        for kind in ("csv", "npz", "parquet", "jsonl", "csv.gz"):
            data.write_labels(known, tmp_path / name / f"labels.{kind}")
        data.write_scores(tmp_path / name / "scores.parquet", X, [str(i) for i in range(24)], list("wxyz"))

    def look(folder: Path) -> list[Any]:
        found, told = [], []
        for path in sorted(folder.iterdir()):
            try:
                found.append(data.read_scores(path) if "scores" in path.name else data.read_labels(path))
            except PartlyError as error:
                told.append(error)
        if told:
            raise told[0]
        return found

    assert harm(tmp_path / "one", tmp_path / "other", 100, look, lambda found: len(found) == 6) > 30


def test_result_lines(tmp_path: Path) -> None:
    from comparison.making import lines as made

    for name, scores in (("one", [0.5, 0.6]), ("other", [0.1, 0.2])):
        (tmp_path / name).mkdir()
        for line in made({"bce": scores, "em": scores}):
            results.append(tmp_path / name / "some.jsonl", line)

    def look(folder: Path) -> Any:
        found = results.read(folder / "some.jsonl")
        results.check_consistency(found)
        results.check_protocol(found)
        return found, results.read_failed(folder / "some.jsonl")

    assert harm(tmp_path / "one", tmp_path / "other", 60, look, lambda found: len(found[0]) <= 8) > 20
