"""The pictures of the gallery: each one exists, is used and is small."""

from __future__ import annotations

import re

from pages.blocks import ROOT

DOCS = ROOT / "docs"
PICTURE_BYTES, ALL_BYTES = 150_000, 1_500_000


def test_every_picture_of_the_gallery_exists_and_is_small() -> None:
    named = set(re.findall(r"\]\((gallery/[\w-]+\.png)\)", (DOCS / "gallery.md").read_text("utf-8")))
    files = {path.relative_to(DOCS).as_posix(): path.stat().st_size for path in (DOCS / "gallery").glob("*.png")}
    assert named
    assert named == set(files)
    assert max(files.values()) < PICTURE_BYTES
    assert sum(files.values()) < ALL_BYTES
