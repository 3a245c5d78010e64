"""Missing labels, filled in to a precision that is promised: `complete`. docs/completion.md has what it rests on."""

from partly.completion.completing import by_answers, by_known, complete
from partly.completion.result import Completion, Found, Terms

__all__ = ["Completion", "Found", "Terms", "by_answers", "by_known", "complete"]
