"""Fill in missing labels with a guaranteed precision: `complete`. docs/completion.md explains the guarantee."""

from partly.completion.completer import certify_by_answers, certify_by_known, complete
from partly.completion.result import Certification, Completion, Terms

__all__ = ["Certification", "Completion", "Terms", "certify_by_answers", "certify_by_known", "complete"]
