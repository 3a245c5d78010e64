"""`partly claims`: what the papers claim, and what result lines say of it."""

from __future__ import annotations

import json
from pathlib import Path

from partly.commands.opening import Say
from partly.comparison import claims as there
from partly.comparison.claims import claim_words as words

USUAL = Path("results")


def claims(results: Path | None, paper: str = "", *, as_json: bool = False, say: Say = print) -> str:
    """The text to print. Where no folder was named and none is here, the claims alone: whoever installed the package
    has no result lines."""
    if results is None and not any(USUAL.glob("*.jsonl")):
        asked = there.of_paper(paper)
        say(
            f"No result lines in ./{USUAL}, so nothing is decided: these are the claims alone. Name a folder with "
            "result lines, such as `results` in a copy of the project: partly claims FOLDER."
        )
        return json.dumps([words.stated(one) for one in asked]) if as_json else words.claimed(asked)
    found = there.decide(results or USUAL, paper)
    return json.dumps([words.plain(one) for one in found]) if as_json else words.terminal(found)
