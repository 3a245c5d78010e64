"""The code blocks of README, CONTRIBUTING and the guides, as they stand there.

A block is Python or shell: as it says, or, where it says nothing, shell if it begins with a program. One that cannot be
run here begins with the line `# not run in the tests: why`, which readers see too.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
LANGUAGES = {"python": "python", "py": "python", "shell": "shell", "sh": "shell", "bash": "shell", "console": "shell"}
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>`{3,}|~{3,}) *(?P<language>[\w+-]*)[^\n]*\n(?P<body>.*?)^(?P=indent)(?P=fence)",
    re.S | re.M,
)
PROGRAMS = ("partly ", "make ", "pip ", "python ", "torchrun ", "accelerate ", "ray ")
NOT_RUN = re.compile(r"# not run in the tests: (\S.*)")


@dataclass(frozen=True)
class Block:
    """A block of code, and where it is."""

    page: Path
    line: int  # of its first line
    language: str  # "python", "shell", or "" for what is only shown: a file, a picture in letters, what is printed
    body: str

    @property
    def not_run(self) -> str | None:
        """Why it cannot be run, where it says so."""
        found = NOT_RUN.match(self.body)
        return found and found[1]

    @property
    def commands(self) -> list[list[str]]:
        """The commands of a block of shell, each as words."""
        lines = re.sub(r"\\\n", " ", self.body).splitlines()
        return [words for words in (shlex.split(line, comments=True) for line in lines) if words]


def blocks(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    return [_block(page, text, found) for found in FENCE.finditer(text)]


def _block(page: Path, text: str, found: re.Match[str]) -> Block:
    indent = len(found["indent"])
    body = "".join(line[indent:] if line.strip() else line for line in found["body"].splitlines(keepends=True))
    unsaid = "shell" if not found["language"] and body.startswith(PROGRAMS) else ""
    line = text.count("\n", 0, found.start("body")) + 1
    return Block(page, line, LANGUAGES.get(found["language"], unsaid), body)
