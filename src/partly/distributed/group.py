"""The processes of a run, as one of them sees them: what they add up, agree on and wait for.

torch.distributed is used directly: what accelerate would add, the choice of a device and of a backend, takes two lines
here, and its launcher sets the same variables as torchrun. Where a script has set up processes by itself (an
`Accelerator`, for one), these are taken.
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

from partly.distributed.launched import RankInfo, launched
from partly.errors import PartlyError, SettingError, listing

WAIT = "PARTLY_WAIT"  # minutes after which a process that says nothing is given up; one that ends is noticed at once
MINUTES = 30.0  # where nobody says: the first may have to look at every picture, or to write much, while others wait


class Lost(PartlyError):
    """Another process of the run has ended, or does not answer."""


@dataclass(frozen=True)
class Group(RankInfo):
    """Several processes, or one alone: then all of this is nothing to do."""

    def rows(self, count: int) -> slice:
        """Which of so many rows are this one's: shares as equal as can be, in the order of the processes."""
        each, more = divmod(count, self.count)
        start = self.rank * each + min(self.rank, more)
        return slice(start, start + each + (self.rank < more))

    def total(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in the place of what was in the tensor; the same bits in each of them."""
        if self.count > 1:
            with _told():
                _distributed().all_reduce(tensor)
        return tensor

    def total_of(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The same of an array that nobody else holds."""
        return self.total(torch.from_numpy(array)).numpy() if self.count > 1 else array

    def average(self, tensors: Iterable[Tensor | None]) -> None:
        """Put the mean over all processes in the place of each of these. What is equal everywhere stays as it is."""
        if self.count == 1:
            return
        there = [tensor for tensor in tensors if tensor is not None]
        flat = self.total(torch.cat([tensor.reshape(-1) for tensor in there])).div_(self.count)
        for tensor, part in zip(there, flat.split([tensor.numel() for tensor in there]), strict=True):
            tensor.copy_(part.view_as(tensor))

    def wait(self) -> None:
        """Until all are here."""
        self.total(torch.zeros(1))

    @contextmanager
    def rank_zero_first(self) -> Iterator[None]:
        """First the first, then all others: who comes later finds what it has written."""
        if not self.first:
            self.wait()
        yield
        if self.first:
            self.wait()

    def asked(self, *questions: bool) -> list[bool]:
        """Which of these any of them says yes to."""
        if self.count == 1:
            return list(questions)
        return (self.total(torch.tensor(questions, dtype=torch.float32)) > 0).tolist()

    def assert_consistent(self, on: Mapping[str, Any]) -> None:
        """Refuse, in all of them, where one has other values (plain ones, or tensors) under these names."""
        if self.count == 1:
            return
        marks = torch.tensor([_mark(list(on)), *map(_mark, on.values())])
        size = self.total(torch.tensor([len(marks), len(marks) ** 2]))
        told = ["the number of things to compare"]
        if int(size[1]) * self.count == int(size[0]) ** 2:  # the same in all
            with _told():
                _distributed().broadcast(first := marks.clone(), 0)
            other = self.total((marks != first).long())
            told = [name for name, count in zip(["the names", *on], other.tolist(), strict=True) if count]
        if told:
            raise PartlyError(
                "The processes of this run are not at one; they differ in" + listing(told, len(told)) + "\nGive all of "
                "them the same data, settings and versions, on machines of one kind; the run folder must be one that "
                "all of them see."
            )


ALONE = Group()


@cache
def process_group() -> Group:
    """The processes that a launcher has started, this one among them; they meet when it is first asked for."""
    place = launched()
    if place.count == 1:
        return ALONE
    distributed = _distributed()
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
    """Under names of this attempt: where torchrun has started processes again, those that ended have left theirs."""
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    with _told():
        store, *_ = next(distributed.rendezvous("env://", place.rank, place.count, timeout=wait))
        store.set_timeout(wait)
        named = distributed.PrefixStore(f"partly {attempt}", store)
        distributed.init_process_group(backend, store=named, rank=place.rank, world_size=place.count, timeout=wait)
        # Until all have joined: the first one holds the store, and may end at once, with something that it refuses.
        distributed.all_reduce(torch.zeros(1))


def _distributed() -> Any:
    """Imported by who needs it: alone, nobody does."""
    import torch.distributed

    return torch.distributed


def _minutes() -> float:
    said = os.environ.get(WAIT, "")
    try:
        minutes = float(said or MINUTES)
    except ValueError:
        minutes = 0.0
    if not 0.0 < minutes < 1e6:
        raise SettingError(f"{WAIT}={said!r} should be a number of minutes above 0.")
    return minutes


@contextmanager
def _told() -> Iterator[None]:
    """What goes wrong between processes, told so that somebody can do something about it."""
    try:
        yield
    except RuntimeError as error:
        place, words = launched(), str(error).splitlines()[0]
        words = words.split("] ", 1)[-1].split(". ")[0]  # without the place in the code of gloo, and what it guesses
        raise Lost(
            f"process {place.rank} of {place.count}: another process of this run has ended or does not answer "
            f"({words}). What was saved is intact: start the run again, with any number of "
            "processes, and it goes on from the newest checkpoint in its folder."
        ) from error


def _mark(value: Any) -> int:
    """A number that tells values apart."""
    if isinstance(value, Tensor):
        content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
        sha = hashlib.sha256(f"{value.dtype}{list(value.shape)}".encode())
        sha.update(content)
    else:
        sha = hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode())
    return int.from_bytes(sha.digest()[:8], "big") >> 1
