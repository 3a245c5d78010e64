"""Public names, signatures, commands and options are those of the listing: a change is a decision, and is told."""

from __future__ import annotations

import difflib

import partly
from public.names import LISTING, NAMES, lines


def test_the_public_names_are_as_listed() -> None:
    listed, now = LISTING.read_text("utf-8").splitlines(), list(lines())
    changes = "\n".join(difflib.unified_diff(listed, now, "listed", "now", lineterm="", n=0))
    assert now == listed, f"""{changes}
What is public has changed. Somebody's program may stop: CONTRIBUTING.md says what may change when. If it is meant,
write a line into CHANGELOG.md, and the listing anew: python tests/public/names.py"""


def test_whatever_the_package_offers_is_public() -> None:
    """Every name of `partly` is in docs/api.md, itself or by something inside it."""
    inside = {"data", "items", "networks"}  # rooms whose other names are for those who add to them
    assert {name.split(".")[0] for name in NAMES} | inside == set(partly.__all__)
