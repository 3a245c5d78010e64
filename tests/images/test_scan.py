"""One look at each picture, kept by size and time; damage of what is kept costs time and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from images.making import HOSTILE, encoded, folder_of, noise, some_pictures
from partly.images import scan as module
from partly.images.decoder_pool import DecoderPool, WorkerDied
from partly.images.reading import ImageInfo, inspect_image
from partly.images.scan import scan_images
from partly.images.worker import ImageLocation


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What a crew was asked to look at."""
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path / "cache"))
    seen: list[str] = []
    looks = module._inspect

    def counted(places: list[ImageLocation]):
        seen.extend(Path(place.path).name for place in places)
        return looks(places)

    monkeypatch.setattr(module, "_inspect", counted)
    return seen


def old(folder: Path) -> list[ImageLocation]:
    """The files of a folder, as if they had lain there for a while."""
    for path in folder.iterdir():
        os.utime(path, ns=(10**18, 10**18))
    return [ImageLocation(str(path)) for path in sorted(folder.iterdir())]


def test_every_file_has_its_look(tmp_path: Path, asked: list[str]) -> None:
    folder = folder_of(some_pictures(tmp_path / "x", 40), HOSTILE)
    places = old(folder)
    expected = [inspect_image(Path(place.path).read_bytes()) for place in places]
    assert scan_images(places, str(folder)) == expected
    assert len(asked) == len(places)
    assert scan_images(places, str(folder)) == expected
    assert len(asked) == len(places)


def test_what_has_changed_is_looked_at_again(tmp_path: Path, asked: list[str]) -> None:
    folder = some_pictures(tmp_path / "x", 4)
    before = scan_images(old(folder), str(folder))
    changed = folder / "p1.jpg"
    changed.write_bytes(changed.read_bytes()[:-100] + bytes(100))  # as large as it was
    os.utime(changed, ns=(10**18 + 1, 10**18 + 1))
    (folder / "p2.png").write_bytes(encoded(noise(50, 50, 99)))
    os.utime(folder / "p2.png", ns=(10**18, 10**18))  # as old as it was
    asked.clear()
    after = scan_images([ImageLocation(str(path)) for path in sorted(folder.iterdir())], str(folder))
    assert asked == ["p1.jpg", "p2.png"]
    assert [a == b for a, b in zip(before, after, strict=True)] == [True, False, False, True]


def test_a_file_that_is_new_may_still_change(tmp_path: Path, asked: list[str]) -> None:
    folder = some_pictures(tmp_path / "x", 2)
    places = [ImageLocation(str(path)) for path in sorted(folder.iterdir())]
    scan_images(places, str(folder))
    scan_images(places, str(folder))
    assert len(asked) == 4


def test_other_rows_are_added_to_what_is_kept(tmp_path: Path, asked: list[str]) -> None:
    places = old(some_pictures(tmp_path / "x", 4))
    for part in (places[:2], places[1:3], places):
        scan_images(part, "x")
    assert len(asked) == 4


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"format": 1}', None])
def test_damage_of_what_is_kept_costs_only_time(tmp_path: Path, asked: list[str], damage: bytes | None) -> None:
    places = old(some_pictures(tmp_path / "x", 2))
    expected = scan_images(places, "x")
    (kept,) = (tmp_path / "cache" / "surveys").iterdir()
    if damage is None:  # a single letter of it
        whole = json.loads(kept.read_text())
        next(iter(whole["images"].values()))[2]["sha256"] = "0" * 64
        damage = json.dumps(whole).encode()
    kept.write_bytes(damage)
    assert scan_images(places, "x") == expected
    assert len(asked) == 4


def test_a_cache_that_cannot_be_written_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cache").write_text("a file")
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path / "cache"))
    places = old(some_pictures(tmp_path / "x", 2))
    assert [look.reason for look in scan_images(places, "x")] == ["", ""]


def test_the_one_over_which_a_process_dies_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A decoder that crashes takes its process with it, and the others of its question must not be blamed."""
    monkeypatch.setenv("PARTLY_CACHE", str(tmp_path / "cache"))
    places = old(some_pictures(tmp_path / "x", 5))

    class Dying(DecoderPool):
        def _answer(self, request):
            if any("p3" in place[0] for place in request["places"]):
                raise WorkerDied("A process ended (status -11).")
            return super()._answer(request)

    crew = Dying(1)
    monkeypatch.setattr(module, "get_pool", lambda: crew)
    looks = scan_images(places, "x")
    assert [look.reason for look in looks] == ["", "", "", "the decoder crashed. A process ended (status -11).", ""]
    assert looks[4] == inspect_image(Path(places[4].path).read_bytes()) != ImageInfo("")


def test_where_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PARTLY_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/where")
    assert module.cache_folder() == Path("/some/where/partly")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert module.cache_folder() == Path.home() / ".cache" / "partly"
