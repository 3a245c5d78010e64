"""`partly formats`."""

from __future__ import annotations

import json

from typer.testing import CliRunner

from partly.cli.main import app
from partly.data import formats


def test_every_format_is_listed_once() -> None:
    text = CliRunner().invoke(app, ["formats"], catch_exceptions=False).stdout
    names = [line.split()[0] for line in text.splitlines() if line.startswith("  ")]
    assert sorted(names) == sorted(formats.discover())
    assert text.index("Labels (") < text.index("Items (") < text.index("Items with labels (")


def test_as_json() -> None:
    found = json.loads(CliRunner().invoke(app, ["formats", "--json"], catch_exceptions=False).stdout)
    wide = next(one for one in found if one["name"] == "wide")
    assert (wide["holds"], wide["writable"]) == ("labels", True)
    assert ".csv" in wide["endings"]
