"""The pins with hashes are the pins without, all there, and nothing but pins."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()


def pins(text: str) -> dict[str, str]:
    found = (re.match(r"([\w.\-]+)==(\S+)", line) for line in text.splitlines())
    return {plain(one[1]): one[2] for one in found if one}


def test_hashed_pins_agree_with_the_others() -> None:
    text = (ROOT / "requirements-annotate.txt").read_text("utf-8")
    hashed, all_ = pins(text), pins((ROOT / "requirements.txt").read_text("utf-8"))
    assert hashed == {name: all_.get(name) for name in hashed}
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]["annotate"]
    assert {plain(re.split(r"[><=]", one)[0]) for one in extra} <= set(hashed)


def test_every_pin_has_hashes_and_nothing_says_where_to_look() -> None:
    lines = (ROOT / "requirements-annotate.txt").read_text("utf-8").splitlines()
    said = [line for line in lines if not line.startswith("#")]
    parts = [one for one in re.split(r"\n(?=\S)", "\n".join(said)) if one]
    for one in parts:
        assert re.fullmatch(r"[\w.\-]+==[\w.]+( \\\n    --hash=sha256:[0-9a-f]{64})+", one), one[:80]
