"""Rank of this process, from the environment variables of torchrun, accelerate and similar launchers."""

from __future__ import annotations

import os
from dataclasses import dataclass

REQUIRED_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


@dataclass(frozen=True)
class RankInfo:
    """Rank of this process and number of processes, in total and on this machine."""

    rank: int = 0
    count: int = 1
    local_rank: int = 0
    local_count: int = 1

    @property
    def first(self) -> bool:
        """True for the process that writes files and prints."""
        return self.rank == 0


def current_rank() -> RankInfo:
    """Return the rank that a launcher has set, or that of a single process."""
    env = os.environ
    if not all(env.get(name) for name in REQUIRED_VARIABLES) or int(env["WORLD_SIZE"]) < 2:
        return RankInfo()
    local = (int(env.get("LOCAL_RANK", "0")), int(env.get("LOCAL_WORLD_SIZE", "1")))
    return RankInfo(int(env["RANK"]), int(env["WORLD_SIZE"]), *local)
