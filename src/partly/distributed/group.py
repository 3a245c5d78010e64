"""The group of processes of a run: sums, agreement and barriers.

torch.distributed is used directly: accelerate would only choose device and backend, which takes two lines here, and its
launcher sets the same variables as torchrun. Processes that a script has set up itself (an `Accelerator`) are used.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from partly.distributed.launched import RankInfo, current_rank
from partly.errors import PartlyError, SettingError, listing

TIMEOUT_VARIABLE = "PARTLY_WAIT"  # minutes until a silent process is given up; one that ends is noticed at once
MINUTES = 30.0  # default: others wait while the first process scans all images or writes large files


class Lost(PartlyError):
    """Raised when another process of the run has ended or does not answer."""


@dataclass(frozen=True)
class Group(RankInfo):
    """Several processes, or a single one, for which every operation does nothing."""

    def rows(self, count: int) -> slice:
        """Return this process's share of `count` rows, in the order of the processes and as equal as possible."""
        each, more = divmod(count, self.count)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))

    def total(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its sum over all processes, with the same bits in each."""
        if self.count > 1:
            with _explain_errors():
                _import_distributed().all_reduce(tensor)
        return tensor

    def total_of(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the sum of an array over all processes; the array may be overwritten."""
        return self.total(torch.from_numpy(array)).numpy() if self.count > 1 else array

    def average(self, tensors: Iterable[Tensor | None]) -> None:
        """Replace tensors by their means over all processes; equal values keep their bits."""
        if self.count == 1:
            return
        present = [tensor for tensor in tensors if tensor is not None]
        flat = self.total(torch.cat([tensor.reshape(-1) for tensor in present])).div_(self.count)
        for tensor, part in zip(present, flat.split([tensor.numel() for tensor in present]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def wait(self) -> None:
        """Wait for all processes."""
        self.total(torch.zeros(1))

    @contextmanager
    def rank_zero_first(self) -> Iterator[None]:
        """Run in the first process, then in all others, which find what it has written."""
        if not self.first:
            self.wait()
        yield
        if self.first:
            self.wait()

    def any_yes(self, *questions: bool) -> list[bool]:
        """Return for each question whether any process answers yes."""
        if self.count == 1:
            return list(questions)
        return (self.total(torch.tensor(questions, dtype=torch.float32)) > 0).tolist()

    def assert_consistent(self, on: Mapping[str, Any]) -> None:
        """Raise in all processes if one has other values (plain ones, or tensors) under these names."""
        if self.count == 1:
            return
        marks = torch.tensor([_mark(list(on)), *map(_mark, on.values())])
        size = self.total(torch.tensor([len(marks), len(marks) ** 2]))
        different = ["the number of things to compare"]
        if int(size[1]) * self.count == int(size[0]) ** 2:  # the same in all
            with _explain_errors():
                _import_distributed().broadcast(first := marks.clone(), 0)
            other = self.total((marks != first).long())
            different = [name for name, count in zip(["the names", *on], other.tolist(), strict=True) if count]
        if different:
            raise PartlyError(
                "The processes of this run differ in" + listing(different, len(different)) + "\nGive all of "
                "them the same data, settings and versions, on machines of one kind; the run folder must be one that "
                "all of them see."
            )


SINGLE_PROCESS = Group()


@cache
def process_group() -> Group:
    """Return the group of processes that a launcher started; they connect at the first call."""
    place = current_rank()
    if place.count == 1:
        return SINGLE_PROCESS
    distributed = _import_distributed()
    if not distributed.is_initialized():
        _meet(distributed, place, timedelta(minutes=_minutes()))
        atexit.register(distributed.destroy_process_group)
    elif "gloo" not in str(distributed.get_backend_config()):
        raise SettingError(
            f"torch.distributed was set up with {distributed.get_backend_config()}; gloo is needed too, for what is "
            "agreed on. Leave it to partly, or set it up with backend='cpu:gloo,cuda:nccl'."
        )
    return Group(**vars(place))


def _meet(distributed: Any, place: RankInfo, wait: timedelta) -> None:
    """Connect under keys of this attempt: after a restart by torchrun, keys of ended processes are still there."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    with _explain_errors():
        store, *_ = next(distributed.rendezvous("env://", place.rank, place.count, timeout=wait))
        store.set_timeout(wait)
        named = distributed.PrefixStore(f"partly {attempt}", store)
        distributed.init_process_group(backend, store=named, rank=place.rank, world_size=place.count, timeout=wait)
        # Until all have joined: the first one holds the store, and may end at once, with something that it refuses.
        distributed.all_reduce(torch.zeros(1))


def _import_distributed() -> Any:
    """Import torch.distributed, which a single process does not need."""
    import torch.distributed

    return torch.distributed


def _minutes() -> float:
    setting = os.environ.get(TIMEOUT_VARIABLE, "")
    try:
        minutes = float(setting or MINUTES)
    except ValueError:
        minutes = 0.0
    if not 0.0 < minutes < 1e6:
        raise SettingError(f"{TIMEOUT_VARIABLE}={setting!r} should be a number of minutes above 0.")
    return minutes


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Raise errors between processes with advice on what to do."""
    try:
        yield
    except RuntimeError as error:
        place, message = current_rank(), str(error).splitlines()[0]
        message = message.split("] ", 1)[-1].split(". ")[
            0
        ]  # without the place in the code of gloo, and what it guesses
        raise Lost(
            f"process {place.rank} of {place.count}: another process of this run has ended or does not answer "
            f"({message}). What was saved is intact: start the run again, with any number of "
            "processes, and it goes on from the newest checkpoint in its folder."
        ) from error


def _mark(value: Any) -> int:
    """Return a number that identifies a value."""
    if isinstance(value, Tensor):
        content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
        sha = hashlib.sha256(f"{value.dtype}{list(value.shape)}".encode())
        sha.update(content)
    else:
        sha = hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode())
    return int.from_bytes(sha.digest()[:8], "big") >> 1
