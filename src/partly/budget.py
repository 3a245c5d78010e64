"""Memory limits: what this process may use, and how much an untrusted file may expand.

A reader counts what it is about to use:

    budget = Budget(path)            # or Budget(name, size), for bytes without a file of their own
    budget.unpack(count)             # bytes that came out of a compressed stream
    budget.hold(count)               # bytes of memory: arrays, texts, N x L entries
    budget.hold_rows(count)          # items or labels: each has a name

A file may expand MAX_EXPANSION times; FREE_BYTES are always allowed. Held memory must also fit into the available
memory.
"""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from partly.errors import DataError, SettingError

MAX_EXPANSION, EXPANSION_VARIABLE = 100, "PARTLY_MOST_EXPANSION"  # the environment variable overrides the number
FREE_BYTES = 1 << 28
PIECE_BYTES = 1 << 24  # of text decoded at a time
ROW_BYTES = 64  # of a name and its list entries
MEMORY_SHARE = 0.6  # of the available memory for one file or run


class Budget:
    """Memory budget of reading one file. Every method raises a DataError before the limit is exceeded.

    Parameters
    ----------
    source
        The file; or a name for messages, if `size` is given.
    size
        Bytes that are read; by default the size of the file. Without a size only the memory limit applies.
    """

    def __init__(self, source: Path | str, size: int | None = None) -> None:
        self.source, self.size = source, size
        if size is None:
            with suppress(OSError, ValueError):
                self.size = Path(source).stat().st_size
        self.held = self.unpacked = 0
        self._limit = self._memory = -1.0  # looked up when first needed

    def unpack(self, count: int) -> None:
        """Count bytes that came out of a compressed stream."""
        self.unpacked += count
        self._check_expansion(self.unpacked)

    def hold(self, count: int) -> None:
        """Count bytes of memory that are about to be taken."""
        self.held += count
        if self.held <= FREE_BYTES:
            return
        self._check_expansion(self.held)
        if self._memory < 0:
            self._memory = MEMORY_SHARE * available()[0]
        if self.held > self._memory:
            raise DataError(
                f"{self.source}: needs {_size(self.held)} of memory, and {_size(available()[0])} are available, of "
                f"which {MEMORY_SHARE:.0%} may be taken. Use a larger machine, or fewer items or labels at a time."
            )

    def hold_rows(self, count: int) -> None:
        """Count the memory of the names of items or labels."""
        self.hold(count * ROW_BYTES)

    def _check_expansion(self, total: int) -> None:
        if total <= FREE_BYTES or self.size is None:
            return
        if self._limit < 0:
            self._limit = _max_expansion()
        if total > self._limit * self.size:
            times = math.ceil(total / max(1, self.size))
            raise DataError(
                f"{self.source}: its {_size(self.size)} would become {_size(total)} or more, {times} times as much; up "
                f"to {self._limit:g} times is allowed. If you know who made the file, set "
                f"{EXPANSION_VARIABLE}={times} or higher in the environment."
            )


def decode_dictionaries(batch: Any, budget: Budget) -> Iterator[Any]:
    """Yield an Arrow batch with its dictionary columns decoded, in pieces of about PIECE_BYTES.

    Read text columns as dictionaries (`read_dictionary=`), because a few bytes of a Parquet file can stand for a long
    text in every row; this counts the bytes before they are allocated.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    budget.unpack(batch.num_rows * batch.num_columns)
    batch.validate(full=True)  # text that is not UTF-8, for example
    coded = [j for j, column in enumerate(batch.columns) if pa.types.is_dictionary(column.type)]
    sizes = np.zeros(batch.num_rows, np.int64)
    for column in (batch.column(j) for j in coded):
        lengths = np.append(pc.binary_length(column.dictionary).fill_null(0).to_numpy(zero_copy_only=False), 0)
        sizes += lengths[column.indices.fill_null(len(lengths) - 1).to_numpy(zero_copy_only=False)]
    budget.unpack(int(sizes.sum()))
    ends = np.flatnonzero(np.diff(np.cumsum(sizes) // PIECE_BYTES)) + 1
    for start, stop in pairwise([0, *ends.tolist(), batch.num_rows]):
        piece = batch.slice(start, stop - start)
        columns = [column.dictionary_decode() if j in coded else column for j, column in enumerate(piece.columns)]
        yield pa.record_batch(columns, names=batch.schema.names)


def _max_expansion() -> float:
    text = os.environ.get(EXPANSION_VARIABLE, str(MAX_EXPANSION))
    try:
        return float(text)
    except ValueError:
        raise SettingError(
            f"{EXPANSION_VARIABLE}={text!r} in the environment: must be a number, such as 200."
        ) from None


def _size(count: float) -> str:
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def available(root: Path = Path("/")) -> tuple[int, str]:
    """Return the bytes that this process may use, and their source: the machine, a control group, or `ulimit -v`."""
    limits = [(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), "this machine")]
    limits += [(size, "this process's control group") for size in _control_groups(root)]
    soft = resource.getrlimit(resource.RLIMIT_AS)[0]
    if soft != resource.RLIM_INFINITY:
        with suppress(OSError, ValueError):
            pages = int((root / "proc/self/statm").read_text().split()[0])
            limits.append((max(0, soft - pages * os.sysconf("SC_PAGE_SIZE")), "`ulimit -v`, beside what is in use"))
    return min(limits)


def _control_groups(root: Path) -> Iterator[int]:
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # no Linux
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, name = ("memory", "memory.limit_in_bytes") if controllers else (".", "memory.max")
        group = root / "sys/fs/cgroup" / top / path.lstrip("/")
        for folder in (group, *group.parents[: len(Path(path).parts)], root / "sys/fs/cgroup" / top):
            with suppress(OSError, ValueError):  # missing, or "max"
                yield int((folder / name).read_text())
