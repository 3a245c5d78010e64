"""The methods, one paper a file; a file dropped in here (or in a folder named by PARTLY_METHODS) is a method.

`partly.methods()` lists them: this module can be called, because its name is also that of the public function.
"""

from __future__ import annotations

import os
import sys
import types
from typing import Any

__path__ += [folder for folder in os.environ.get("PARTLY_METHODS", "").split(os.pathsep) if folder]


class _Callable(types.ModuleType):
    def __call__(self) -> dict[str, dict[str, Any]]:
        from partly.catalogue import methods

        return methods()


sys.modules[__name__].__class__ = _Callable
