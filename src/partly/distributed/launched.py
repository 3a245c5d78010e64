"""What torchrun, accelerate and others of their kind say of this process, in the environment. Nothing is imported."""

from __future__ import annotations

import os
from dataclasses import dataclass

NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class RankInfo:
    """Which process this is, of how many; and the same among those of its machine."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1

    @property
    def first(self) -> bool:
        """The one that writes files and talks to people."""
        return self.rank == 0


def launched() -> RankInfo:
    """Alone, unless a launcher has started several processes."""
    said = os.environ
    if not all(said.get(name) for name in NEEDED) or int(said["WORLD_SIZE"]) < 2:
        return RankInfo()
    local = (int(said.get("LOCAL_RANK", "0")), int(said.get("LOCAL_WORLD_SIZE", "1")))
    return RankInfo(int(said["RANK"]), int(said["WORLD_SIZE"]), *local)
