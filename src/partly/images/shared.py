"""Memory that two processes see: one writes pixels into it, and the other need not have them through a pipe."""

from __future__ import annotations

import mmap
import os
import tempfile


class Shared:
    """A file without a name, mapped by both; it grows when more is asked for. Who is started with its number maps the
    same."""

    def __init__(self, number: int | None = None) -> None:
        self.number = _nameless() if number is None else number
        self._map: mmap.mmap | None = None

    def room(self, size: int) -> memoryview:
        """The first bytes of it, to read and to write."""
        if not size:
            return memoryview(b"")  # nothing cannot be mapped
        if self._map is None or len(self._map) < size:
            if os.fstat(self.number).st_size < size:
                os.ftruncate(self.number, size)
            self._map = mmap.mmap(self.number, 0)
        return memoryview(self._map)[:size]

    def close(self) -> None:
        """What is still looked at stays until nobody does."""
        self._map = None
        os.close(self.number)


def _nameless() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("pixels")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
