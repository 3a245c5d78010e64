# A file that says nothing of itself.

from partly.losses import bce as loss

REJECTED_BY = "check_docstring"

__all__ = ["loss"]
