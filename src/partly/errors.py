"""Error types. Every message says what is wrong, where, and what to do."""

from __future__ import annotations

import difflib
import math
import signal
from collections.abc import Iterable, Sequence

MAX_NAMES_SHOWN = 40


class PartlyError(ValueError):
    """Base class of the errors of this package, which the caller can fix.

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
    """Raised when labels cannot be read without guessing."""


class DataError(PartlyError):
    """Raised when a file or an array is not valid input."""


class SettingError(PartlyError):
    """Raised when a setting does not exist or has an invalid value."""


class Diverged(PartlyError):
    """Raised when the loss or the weights of a training run become non-finite."""


class CheckpointError(PartlyError):
    """Raised when a run folder cannot be read, written or resumed."""


class LearnedNothingWarning(UserWarning):
    """Issued when a trained model ranks its own training entries no better than chance."""


class Stopped(Exception):
    """Raised when work was stopped (Ctrl-C, SIGTERM) after saving its state; `code` is the exit code."""

    def __init__(self, message: str, number: int = signal.SIGINT) -> None:
        super().__init__(message)
        self.code = 128 + number


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return " Did you mean 'x'?" for the closest known word, or the list of known words."""
    known = list(known)
    folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(word.casefold(), folded, n=1)
    if near:
        return f" Did you mean {folded[near[0]]!r}?"
    rest = f", ... ({len(known)} in total)" if len(known) > MAX_NAMES_SHOWN else ""
    return f" Available: {', '.join(known[:MAX_NAMES_SHOWN]) or 'none'}{rest}."


def listing(places: Iterable[str], total: int, most: int = 5) -> str:
    """Return the first places, one per line, and the number of the others."""
    listed = [f"\n  {place}" for _, place in zip(range(most), places, strict=False)]
    rest = total - len(listed)
    return "".join(listed) + (f"\n  ... and {rest} more" if rest > 0 else "")


def list_names(names: Sequence[str], limit: int = 5) -> str:
    """Return the first names, and how many more there are."""
    return ", ".join(names[:limit]) + (f" and {len(names) - limit} more" if len(names) > limit else "")


def within(low: float, high: float, **settings: float) -> None:
    """Raise an error that names the settings outside of [low, high]."""
    wrong = [f"{name} = {value}" for name, value in settings.items() if not low <= value <= high]
    if wrong:
        ends = f"{low:g} or more" if high == math.inf else f"from {low:g} to {high:g}"
        raise SettingError(f"{', '.join(wrong)}: should be {ends}.")
