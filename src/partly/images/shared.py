"""Memory shared by two processes, so that pixels need not pass through a pipe."""

from __future__ import annotations

import mmap
import os
import tempfile


class Shared:
    """An anonymous file that both processes map; it grows on demand. A child maps it by its file descriptor."""

    def __init__(self, number: int | None = None) -> None:
        self.number = _anonymous_file() if number is None else number
        self._map: mmap.mmap | None = None

    def view(self, size: int) -> memoryview:
        """Return the first `size` bytes, readable and writable."""
        if not size:
            return memoryview(b"")  # an empty range cannot be mapped
        if self._map is None or len(self._map) < size:
            if os.fstat(self.number).st_size < size:
                os.ftruncate(self.number, size)
            self._map = mmap.mmap(self.number, 0)
        return memoryview(self._map)[:size]

    def close(self) -> None:
        """Close the file; views stay valid until they are released."""
        self._map = None
        os.close(self.number)


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("pixels")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
