"""Other spellings of options: singular for plural and the reverse, `--out` for `--run`, names of earlier versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from partly.errors import SettingError

# Where a command writes a run folder or a folder of results: what people say instead.
SAME = {
    **{command: {"--out": "--run"} for command in ("train", "refine")},
    **{command: {"--run": "--out"} for command in ("demo", "features", "compare", "study")},
}
RENAMED: Mapping[str, Mapping[str, str]] = {"train": {"--precision": "--dtype"}}
MECHANISMS = ("auto", "at-random", "not-at-random")  # what `complete --missing` took, which is `--mechanism` now
DIFFERENT = {"--seed": "--seeds N runs each cell with N seeds", "--seeds": "--seed N is the seed of this one run"}


def respelled(command: str, known: Iterable[str], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of a command line with the options as the command spells them, and what to warn of."""
    there, found, warnings = set(known), list[str](), list[str]()
    for place, word in enumerate(words):
        if word == "--":
            return [*found, *words[place:]], warnings
        name, sign, value = word.partition("=")
        if (
            command == "complete"
            and name == "--missing"
            and (value or "".join(words[place + 1 : place + 2])) in MECHANISMS
        ):
            warnings.append(
                "--missing at-random is called --mechanism at-random now; --missing names a spelling of unknown."
            )
            name = "--mechanism"
        elif name.startswith("--") and name not in there:
            name = _spelled(command, name, there, warnings)
        found.append(f"{name}{sign}{value}")
    return found, warnings


def _spelled(command: str, name: str, there: set[str], warnings: list[str]) -> str:
    new = RENAMED.get(command, {}).get(name)
    if new is not None:
        warnings.append(f"{name} is called {new} in `partly {command}` now; the old name will be removed.")
        return new
    others = (SAME.get(command, {}).get(name), f"{name}s", name.removesuffix("s"), name.replace("_", "-"))
    other = next((one for one in others if one in there), name)
    if name in DIFFERENT and other != name:
        raise SettingError(f"`partly {command}` has no {name}: {DIFFERENT[name]}.")
    return other
