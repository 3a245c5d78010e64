"""A file that does not say what it does differently.

Reference
    None, a planted fault.

Known negatives
    An ordinary negative.
"""

from partly.losses import bce as loss

REJECTED_BY = "check_docstring"

__all__ = ["loss"]
