"""A file that does not say what it does differently.

Paper: none, a planted fault.

Known no: an ordinary negative.
"""

from partly.losses import bce as loss

REJECTED_BY = "check_docstring"

__all__ = ["loss"]
