"""Pins with hashes agree with requirements.txt, every pin has hashes, and floors exclude versions with known holes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
HASHED = ("requirements-hashed.txt", "requirements-annotate.txt", "requirements-torch-cpu.txt")


def normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.partition("[")[0]).lower()


def pins(file: str) -> dict[str, str]:
    matches = (
        re.match(r"([\w.\-]+)(?:\[\w+\])?==(\S+)", line) for line in (ROOT / file).read_text("utf-8").splitlines()
    )
    return {normalize(match[1]): match[2] for match in matches if match}


def test_hashed_pins_agree_with_the_others() -> None:
    plain = pins("requirements.txt")
    assert pins("requirements-hashed.txt") == plain
    assert pins("requirements-torch-cpu.txt") == {"torch": plain["torch"]}
    annotate = pins("requirements-annotate.txt")
    assert annotate == {name: plain.get(name) for name in annotate}
    extra = PROJECT["optional-dependencies"]["annotate"]
    assert {normalize(re.split(r"[><=]", requirement)[0]) for requirement in extra} <= set(annotate)


@pytest.mark.parametrize("file", HASHED)
def test_every_pin_has_hashes_and_nothing_says_where_to_look(file: str) -> None:
    lines = [line for line in (ROOT / file).read_text("utf-8").splitlines() if not line.startswith("#")]
    for pin in filter(None, re.split(r"\n(?=\S)", "\n".join(lines))):
        assert re.fullmatch(r"[\w.\-]+==[\w.]+( \\\n    --hash=sha256:[0-9a-f]{64})+", pin), pin[:80]


def test_actions_are_pinned_by_commit() -> None:
    used = [
        (path.name, action)
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
        for action in re.findall(r"uses: (\S+)", path.read_text("utf-8"))
    ]
    assert used
    assert not [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one[1])]


@pytest.mark.parametrize(
    ("package", "floor", "advisory"),
    [
        ("torch", (2, 10), "CVE-2026-24747"),
        ("pillow", (12, 3), "CVE-2026-59205"),
        ("starlette", (1, 3, 1), "CVE-2025-62727"),
        ("jinja2", (3, 1, 6), "CVE-2025-27516"),
    ],
)
def test_floors_exclude_known_vulnerabilities(package: str, floor: tuple[int, ...], advisory: str) -> None:
    extras = (requirement for extra in PROJECT["optional-dependencies"].values() for requirement in extra)
    pattern = re.compile(rf"{package}>=([\d.]+)")
    allowed = [match[1] for match in map(pattern.match, [*PROJECT["dependencies"], *extras]) if match]
    assert allowed, package
    assert all(tuple(map(int, version.split("."))) >= floor for version in allowed), advisory
