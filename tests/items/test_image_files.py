"""Pictures in files: pixels by hand; neither order, nor batches, nor the number of processes changes one."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from images.making import encoded, folder_of, noise, some_pictures
from partly import Labels
from partly.clock import Clock, Draw
from partly.errors import DataError, SettingError
from partly.images.augmentation import Augmentation
from partly.images.reading import render_image
from partly.images.worker import ImageLocation
from partly.items import ImageFiles, ImageSource, features, is_decoded, resize_like, stream_batches
from partly.pool import Pool

COUNT = 20


def make(folder: Path) -> ImageFiles:
    names = sorted(path.name for path in folder.iterdir())
    return ImageFiles(ImageSource([ImageLocation(str(folder / name)) for name in names], names, str(folder)))


@pytest.fixture(scope="module")
def items(tmp_path_factory: pytest.TempPathFactory) -> ImageFiles:
    return make(some_pictures(tmp_path_factory.mktemp("pictures"), COUNT)).resize(16)


def by_hand(items: ImageFiles, row: int, draw: Draw | None = None) -> torch.Tensor:
    content, name = Path(items.source.places[row].path).read_bytes(), items.source.names[row]
    augmentation = items.augmentation
    viewer = None
    if draw is not None and augmentation is not None:
        viewer = lambda w, h: augmentation.view(w, h, draw, name)  # noqa: E731
    return torch.from_numpy(render_image(content, items.shape[1], viewer).copy()).permute(2, 0, 1)


def test_what_they_are(items: ImageFiles) -> None:
    assert (items.kind, items.shape, items.names, len(items)) == ("pictures", (3, 16, 16), None, COUNT)
    assert ImageFiles(items.source).shape == (3, 128, 128)
    assert ImageFiles(items.source).size is None
    with pytest.raises(SettingError, match="size = 8"):
        items.resize(8)


def test_pixels_by_hand(items: ImageFiles) -> None:
    batch = items.take(torch.tensor([5, 0, 19, 5]))
    assert batch.dtype == torch.uint8
    assert torch.equal(batch, torch.stack([by_hand(items, row) for row in (5, 0, 19, 5)]))
    assert torch.equal(items.take(slice(2, 4)), torch.stack([by_hand(items, row) for row in (2, 3)]))
    assert items.take(slice(0, 0)).shape == (0, 3, 16, 16)


def test_a_view_of_a_view(items: ImageFiles) -> None:
    some = items[np.array([9, 3, 12])][1:]
    assert len(some) == 2
    assert some.size == 16
    assert torch.equal(some.take(slice(None)), torch.stack([by_hand(items, row) for row in (3, 12)]))


@given(
    order=st.permutations(range(COUNT)),
    batch=st.integers(1, COUNT),
    workers=st.sampled_from(["0", "1", "2"]),
    seed=st.integers(0, 2),
    epoch=st.integers(0, 2),
)
def test_neither_order_nor_batches_nor_processes_change_a_picture(
    items: ImageFiles, order: list[int], batch: int, workers: str, seed: int, epoch: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PARTLY_WORKERS", workers)
        changed = items.augment(Augmentation())
        parts = torch.tensor(order).split(batch)
        found = list(changed.stream(parts, Draw(seed, epoch)))
    assert [len(part) for part in found] == [len(part) for part in parts]
    for row, picture in zip(order, torch.cat(found), strict=True):
        assert torch.equal(picture, _remembered(changed, row, seed, epoch))


_REMEMBERED: dict[tuple[int, int, int], torch.Tensor] = {}


def _remembered(items: ImageFiles, row: int, seed: int, epoch: int) -> torch.Tensor:
    if (row, seed, epoch) not in _REMEMBERED:
        _REMEMBERED[row, seed, epoch] = by_hand(items, row, Draw(seed, epoch))
    return _REMEMBERED[row, seed, epoch]


def test_a_view_has_the_draws_of_the_whole(items: ImageFiles) -> None:
    """An item is its name, not its place: so those held out do not change what is drawn for the others."""
    changed = items.augment(Augmentation())
    whole = next(changed.stream([torch.tensor([7, 9])], Draw(0, 0)))
    some = next(changed[np.array([9, 7])].stream([torch.tensor([1, 0])], Draw(0, 0)))
    assert torch.equal(whole, some)


def test_without_a_draw_nothing_is_changed(items: ImageFiles) -> None:
    changed = items.augment(Augmentation())
    assert torch.equal(changed.take(slice(None)), items.take(slice(None)))
    assert torch.equal(next(items.stream([slice(None)], Draw(0, 0))), items.take(slice(None)))
    assert not torch.equal(next(changed.stream([slice(None)], Draw(0, 0))), items.take(slice(None)))
    again = changed.augment(None)
    assert torch.equal(next(again.stream([slice(None)], Draw(0, 0))), items.take(slice(None)))


def test_a_pool_changes_what_is_learned_from_and_nothing_else(items: ImageFiles) -> None:
    changed = items.augment(Augmentation())
    pool = Pool(changed, Labels.from_full(np.eye(COUNT)), 6)
    plain = items.take(slice(None))
    for batch in pool.in_order():
        assert torch.equal(batch.x, plain[batch.index])
    clock = Clock(3, epochs=2, steps=pool.steps, epoch=1)
    whole = list(pool.batches(clock))
    for batch in whole:
        expected = [by_hand(changed, row, Draw(3, 1)) for row in batch.index.tolist()]
        assert torch.equal(batch.x, torch.stack(expected))
    clock.step = 2  # as a run that goes on
    for one, other in zip(pool.batches(clock), whole[2:], strict=True):
        assert torch.equal(one.x, other.x)


def test_statistics_weigh_every_picture_alike(tmp_path: Path) -> None:
    images = [noise(40, 30), noise(90, 20, 1)]
    items = make(folder_of(tmp_path, {f"{i}.png": encoded(image) for i, image in enumerate(images)}))
    parts = [np.asarray(image).reshape(-1, 3).astype(float) for image in images]
    mean = np.mean([part.mean(axis=0) for part in parts], axis=0)
    scale = np.sqrt(np.mean([((part - mean) ** 2).mean(axis=0) for part in parts], axis=0))
    np.testing.assert_allclose(items.statistics.mean, mean)
    np.testing.assert_allclose(items.statistics.scale, scale)
    np.testing.assert_allclose(items[1:].statistics.mean, parts[1].mean(axis=0))


def test_the_digest_is_of_names_and_contents(items: ImageFiles, tmp_path: Path) -> None:
    folder = some_pictures(tmp_path, 3)
    made, rows = make(folder), ["p0.png", "p1.jpg", "p2.png"]
    shas = [hashlib.sha256((folder / name).read_bytes()).hexdigest() for name in rows]
    text = "pictures 3" + "".join(f"\n{name!r} {sha}" for name, sha in zip(rows, shas, strict=True))
    assert made.digest() == hashlib.sha256(text.encode()).hexdigest() == made.resize(50).digest()
    others = [make(folder)[:2].digest(), make(folder)[::-1].digest(), items.digest()]
    (folder / "p0.png").rename(folder / "p3.png")
    others.append(make(folder).digest())
    (folder / "p3.png").write_bytes(encoded(noise(40, 50, 99)))
    others.append(make(folder).digest())
    assert len({made.digest(), *others}) == 6


def test_bad_ones_are_told_by_position(tmp_path: Path) -> None:
    items = make(folder_of(some_pictures(tmp_path, 3), {"a.jpg": b"text", "z.png": b""}))
    assert items.unreadable() == {
        0: "a.jpg: not an image (it is text, 'text'...); supported: JPEG, PNG, GIF, WEBP, BMP, TIFF, PPM",
        4: "z.png: the file is empty",
    }
    assert items[1:4].unreadable() == {}
    assert list(items[np.array([2, 4])].unreadable()) == [1]


def test_one_that_goes_bad_later_is_named(tmp_path: Path) -> None:
    items = make(some_pictures(tmp_path, 3))
    (tmp_path / "p1.jpg").unlink()
    with pytest.raises(DataError, match=r"p1\.jpg: cannot be read \(No such file"):
        items.take(slice(None))


def test_others_are_shown_as_those_of_training(items: ImageFiles) -> None:
    plain = features(np.eye(3))
    assert resize_like(ImageFiles(items.source), items).shape == (3, 16, 16)
    assert resize_like(plain, items) is plain
    assert resize_like(items, plain) is items
    assert is_decoded(items)
    assert not is_decoded(plain)


def test_streamed_is_take_for_all_others() -> None:
    plain = features(np.eye(5))
    parts = [torch.tensor([3, 1]), torch.tensor([0])]
    for one, part in zip(stream_batches(plain, parts, Draw(0, 0)), parts, strict=True):
        assert torch.equal(one, plain.take(part))
