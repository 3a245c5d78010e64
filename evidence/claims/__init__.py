"""Claims of papers as data, and what result lines say of each: holds, does not hold, undecided or not comparable."""

from __future__ import annotations

from pathlib import Path

from evidence import papers
from evidence.claims.cells import Cells
from evidence.claims.cells import read as read_lines
from evidence.claims.rules import Decided, Decision
from evidence.claims.rules import decide as _decide
from evidence.claims.specs import Claim, Comparison, read
from partly.errors import SettingError

__all__ = ["Claim", "Comparison", "Decided", "Decision", "decide", "of_paper", "read"]


def decide(results: str | Path, paper: str = "") -> list[Decided]:
    """Return what the result lines (*.jsonl) of a folder say of every claim, or of those of one paper.

    All claims are decided, whichever are asked for: how many there are corrects the tests.
    """
    asked = {claim.id for claim in of_paper(paper)}
    return [one for one in _decide(read(), Cells(read_lines(Path(results)))) if one.claim.id in asked]


def of_paper(paper: str = "") -> list[Claim]:
    """The claims of one paper, found by a part of its citation (an author, a year); all of them without one."""
    found = [name for name, citation in papers.CITATIONS.items() if paper.casefold() in f"{name} {citation}".casefold()]
    if not found:
        raise SettingError(f"No paper is called {paper!r}. There are: {'; '.join(papers.CITATIONS)}.")
    return [claim for claim in read() if claim.paper in found]
