"""`partly formats`: list the file formats of data sets, items and labels."""

from __future__ import annotations

import sys
from typing import Any

from partly.cli.app import command
from partly.cli.options import Json
from partly.cli.printing import print_json

HEADINGS = {
    "labels": "Labels (for --labels and `partly convert`)",
    "items": "Items (for DATA, together with --labels)",
    "dataset": "Items with labels (for DATA)",
}


@command("Labels")
def formats(as_json: Json = False) -> None:
    """List the file formats that can be read."""
    from partly.data import formats as catalogue

    every: list[dict[str, Any]] = [
        {
            "name": name,
            "holds": one.holds,
            "endings": list(catalogue.readable_by(one)),
            "writable": one.write is not None,
            "summary": _first_sentence(sys.modules[f"{catalogue.__name__}.{name.replace('-', '_')}"].__doc__ or ""),
        }
        for name, one in catalogue.discover().items()
    ]
    if print_json(every, as_json):
        return
    width = max(len(one["name"]) for one in every)
    for holds, heading in HEADINGS.items():
        rows = [f"  {one['name']:<{width}}  {one['summary']}" for one in every if one["holds"] == holds]
        print("\n".join([heading, *rows, ""]))


def _first_sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0].rstrip(".") + "."
