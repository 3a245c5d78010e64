"""Other spellings of options: singular for plural and the reverse, `--out` for `--run`, names of earlier versions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from partly.errors import SettingError

# Names that people try for the folder that a command writes.
SYNONYMS = {
    **{command: {"--out": "--run"} for command in ("train", "refine")},
    **{command: {"--run": "--out"} for command in ("demo", "features", "compare", "study")},
}
RENAMED: Mapping[str, Mapping[str, str]] = {"train": {"--precision": "--dtype"}}
MECHANISMS = ("auto", "at-random", "not-at-random")  # former values of `complete --missing`, now of `--mechanism`
CONFUSED_OPTIONS = {
    "--seed": "--seeds N runs each cell with N seeds",
    "--seeds": "--seed N is the seed of this one run",
}
MOVED_COMMANDS = {"claims": "partly claims has moved: run `python -m evidence claims` in a copy of the project."}


def respell(command: str, options: Iterable[str], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the words of a command line with options as the command spells them, and warnings about old names."""
    known, result, warnings = set(options), list[str](), list[str]()
    for place, word in enumerate(words):
        if word == "--":
            return [*result, *words[place:]], warnings
        name, sign, value = word.partition("=")
        following = value or "".join(words[place + 1 : place + 2])
        if command == "complete" and name == "--missing" and following in MECHANISMS:
            warnings.append("--missing at-random is now --mechanism at-random; --missing names a spelling of unknown.")
            name = "--mechanism"
        elif name.startswith("--") and name not in known:
            name = _resolve_spelling(command, name, known, warnings)
        result.append(f"{name}{sign}{value}")
    return result, warnings


def _resolve_spelling(command: str, name: str, known: set[str], warnings: list[str]) -> str:
    new_name = RENAMED.get(command, {}).get(name)
    if new_name is not None:
        warnings.append(f"{name} of `partly {command}` is now {new_name}; the old name will be removed.")
        return new_name
    candidates = (SYNONYMS.get(command, {}).get(name), f"{name}s", name.removesuffix("s"), name.replace("_", "-"))
    spelling = next((one for one in candidates if one in known), name)
    if name in CONFUSED_OPTIONS and spelling != name:
        raise SettingError(f"`partly {command}` has no {name}: {CONFUSED_OPTIONS[name]}.")
    return spelling
