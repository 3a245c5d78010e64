"""What can go wrong, as types. Every message names the place, the value and the way out."""

from __future__ import annotations

import difflib
import math
import signal
from collections.abc import Iterable, Sequence


class PartlyError(ValueError):
    """Something the caller can put right. The base of all errors of this package.

    Examples
    --------
    >>> import partly
    >>> try:
    ...     partly.Labels.from_ternary([[2]])
    ... except partly.PartlyError as error:
    ...     print(type(error).__name__)
    LabelError
    """


class LabelError(PartlyError):
    """Labels that cannot be read without guessing."""


class DataError(PartlyError):
    """A file or an array that is not what it should be."""


class SettingError(PartlyError):
    """A setting that does not exist or has an impossible value."""


class Diverged(PartlyError):
    """Training whose loss or weights are not finite any more."""


class CheckpointError(PartlyError):
    """A run folder that cannot be read, written or resumed."""


class LearnedNothingWarning(UserWarning):
    """A trained model that ranks its own training entries no better than chance."""


class Stopped(Exception):
    """Work was asked to stop (Ctrl-C, SIGTERM) and has saved its state; `code` is what the process ends with."""

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.code = 128 + number


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """' Did you mean 'x'?' where something is near, else what there is."""
    known = list(known)
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), folded, n=1)
    if near:
        return f" Did you mean {folded[near[0]]!r}?"
    rest = f", ... ({len(known)} in all)" if len(known) > 40 else ""
    return f" There is: {', '.join(known[:40]) or 'nothing'}{rest}."


def listing(places: Iterable[str], total: int, most: int = 5) -> str:
    """The first places, one a line, and how many more there are."""
    shown = [f"\n  {place}" for _, place in zip(range(most), places, strict=False)]
    rest = total - len(shown)
    return "".join(shown) + (f"\n  ... and {rest} more" if rest > 0 else "")


def list_names(names: Sequence[str], limit: int = 5) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def within(low: float, high: float, **settings: float) -> None:
    """Refuse settings outside of [low, high], by name."""
    wrong = [f"{name} = {value}" for name, value in settings.items() if not low <= value <= high]
    if wrong:
        ends = f"{low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
        raise SettingError(f"{', '.join(wrong)}: should be {ends}.")
