"""The training loop. It owns the clock, saves at safe points, evaluates, and keeps the best epoch; methods own the
rest."""

from __future__ import annotations

import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from partly import metrics
from partly.clock import Clock
from partly.distributed.group import SINGLE_PROCESS, Group
from partly.engine import checkpoint
from partly.engine.checkpoint import FolderGuard
from partly.engine.prediction import predict_blocks
from partly.errors import CheckpointError, Diverged, Stopped
from partly.items import Items
from partly.labels import Labels, scored
from partly.losses.validation import skip_validation
from partly.method import Method
from partly.networks import Network
from partly.pool import Pool
from partly.registry import is_installed

SAVE_SECONDS = 20.0
ENTRIES_PER_BLOCK = 1 << 18  # entries of which beliefs are worked out at a time
MAX_STORED_PROBABILITIES = 1 << 27  # probabilities of the validation part that are held rather than made twice
OPTIONAL_NUMBERS = ("best_epoch", "best_score")  # of progress: numbers, where there are any
StepCallback = Callable[[Clock, dict[str, float]], None]
Predicted = Callable[[slice], Iterable[npt.NDArray[Any]]]  # probabilities of some rows, block after block


@dataclass
class Progress:
    """Progress of a run besides the state of the method. All of it goes into the record of a checkpoint."""

    history: list[dict[str, Any]] = field(default_factory=list)
    sums: dict[str, float] = field(default_factory=dict)  # of the epoch under way
    seconds: float = 0.0
    best: dict[str, Tensor] | None = None
    best_epoch: int | None = None
    best_score: float | None = None
    last: dict[str, Tensor] | None = None  # of the last epoch, where somebody asked and the best is another one
    finished: bool = False
    notes: dict[str, Any] = field(default_factory=dict)  # what the method tells of its training
    scores: list[float | None] = field(default_factory=list)  # of the validation part, after each epoch


@dataclass(frozen=True)
class Validation:
    """Items that choose the best epoch and are never trained on. Their labels may be partly known."""

    items: Items
    labels: Labels

    def score(self, predicted: Predicted, group: Group = SINGLE_PROCESS) -> tuple[str, float | None]:
        """Return the mAP on known entries, None if it is undefined for every label.

        Without known negatives (single positives), unknown entries count as negatives: this ranks epochs, and it has
        its own name because it is not a mAP. Probabilities come in blocks, and only those of known entries are kept. If
        unknown entries count, all are kept while they are few, and computed twice otherwise.
        """
        rows = group.rows(len(self.labels))
        if self.labels.counts()[1].any():
            name, ap = "mAP", metrics.average_precision(_at_known(predicted(rows), self.labels, group), self.labels)
        else:
            few = math.prod(self.labels.shape) <= MAX_STORED_PROBABILITIES
            blocks = list(predicted(rows)) if few else None
            only = self.labels if self.labels.sparse else Labels.from_positives(sp.csr_array(self.labels.ternary()))
            yes = _at_known(predicted(rows) if blocks is None else blocks, only, group)
            every = predicted(rows) if blocks is None else blocks
            name, ap = "mAP_unknown_as_no", scored.average_precision_against_rest(every, yes, group.total_of)
        defined = ap[~np.isnan(ap)]
        return name, float(defined.mean()) if len(defined) else None

    def memory(self) -> int:
        """Return the bytes that `score` takes."""
        entries, (yes, no) = math.prod(self.labels.shape), map(int, map(np.sum, self.labels.counts()))
        if no:
            return metrics.memory(self.labels)
        return 4 * min(entries, MAX_STORED_PROBABILITIES) + 32 * yes + (0 if self.labels.sparse else entries)


def train(
    method: Method,
    pool: Pool,
    clock: Clock,
    *,
    validation: Validation | None = None,
    folder: Path | None = None,
    save_seconds: float = SAVE_SECONDS,
    callback: StepCallback | None = None,
    keep_entries: bool = False,
    keep_last: bool = False,
    stop_after: int | None = None,
    notes: dict[str, Any] | None = None,
) -> Progress:
    """Train to the last epoch of the clock, and leave the weights of the best epoch (or of the last) in the method.

    With a folder, resume from its newest checkpoint and save at safe points. On SIGINT or SIGTERM, finish the step,
    save and raise `Stopped`. At the end the model and the method's beliefs are saved; with `keep_entries` also its per-
    entry state, so that another run can start from it. `keep_last` keeps the weights of the last epoch in
    `Progress.last`, in memory only.

    Several processes that share a pool all call this, and stop and save at the same step.
    """
    group = pool.group
    guard = None if folder is None else FolderGuard.of(folder)
    progress = Progress() if guard is None else _resume(guard.folder, method, clock, group)
    progress.notes |= notes or {}
    method.notes, clock.scores = progress.notes, progress.scores
    started = time.monotonic() - progress.seconds
    saved = time.monotonic()
    with _stop_requests(folder is not None) as stop, torch.random.fork_rng(devices=[]), skip_validation():
        if validation is not None and _starts_solved(method) and clock.epoch == clock.step == 0:
            _judge_start(method, progress, validation, group)
        end = clock.epochs if stop_after is None else min(stop_after, clock.epochs)
        while clock.epoch < end and not progress.finished:
            for logs in run_epoch(method, pool, clock):
                _add(progress.sums, logs)
                progress.seconds = time.monotonic() - started
                if callback:
                    callback(clock, logs)
                # Asked once: a signal between two questions would be heard and not saved for.
                stopping, due = group.any_yes(bool(stop()), time.monotonic() - saved >= save_seconds and group.first)
                if guard is not None and (stopping or due):
                    _save_together(guard, method, clock, progress, group)
                    saved = time.monotonic()
                if stopping:
                    message = f"Stopped after {clock.step} steps of epoch {clock.epoch + 1}; saved in {folder}."
                    raise Stopped(message, stop() or signal.SIGINT)
            _close_epoch(method, clock, progress, validation, group)
        if not progress.finished:
            method.apply_average()
            if progress.best is not None:
                if keep_last and progress.best_epoch != clock.epochs:
                    progress.last = {key: tensor.clone() for key, tensor in method.state_dict().items()}
                method.load_state_dict(progress.best)
            progress.best, progress.finished = None, True
            group.assert_consistent(method.state())
            if guard is not None and group.first:
                _save_finished(guard, method, clock, progress, keep_entries)
            if number := stop():  # it has waited for what was saved last
                raise Stopped(f"Stopped after the last step; the finished model is in {folder}.", number)
    method.eval()  # for good: what is trained only predicts
    return progress


def _save_finished(guard: FolderGuard, method: Method, clock: Clock, progress: Progress, keep_entries: bool) -> None:
    guard.check()
    folder = guard.folder
    first_beliefs, observed = method.beliefs(slice(0, 0)), method.task.observed
    beliefs = None
    if first_beliefs is not None and observed is not None:
        shape, dtype = (len(method.task.items), method.task.labels), first_beliefs.cpu().numpy().dtype
        beliefs = checkpoint.save_beliefs(folder, shape, dtype, belief_blocks(method), observed.given_ids)
    if observed is not None and method.out_of_fold(slice(0, 0)) is not None:
        checkpoint.save_out_of_fold(folder, observed.shape, out_of_fold_blocks(method))
    for _ in range(checkpoint.KEPT_CHECKPOINTS):  # replaces all others: the model, and a copy of it against damage
        save(folder, method, clock, progress, keep_entries, beliefs)


def belief_blocks(method: Method) -> Iterator[npt.NDArray[np.floating[Any]]]:
    """Yield the method's beliefs about the training entries, block by block; nothing if it has none."""
    return _in_blocks(method, method.beliefs)


def out_of_fold_blocks(method: Method) -> Iterator[npt.NDArray[np.floating[Any]]]:
    """Yield out-of-fold logits of the training entries, block by block."""
    return _in_blocks(method, method.out_of_fold)


def _in_blocks(method: Method, of: Callable[[slice], Tensor | None]) -> Iterator[npt.NDArray[np.floating[Any]]]:
    count, step = len(method.task.items), max(1, ENTRIES_PER_BLOCK // method.task.labels)
    for start in range(0, count, step):
        part = of(slice(start, min(start + step, count)))
        if part is not None:
            yield method.enforce_hierarchy(part).cpu().numpy()


def run_epoch(method: Method, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
    """Run the rest of the current epoch. Every yield is a safe point, with the clock at the next step."""
    method.train()
    if clock.step == 0:
        _seed(next(clock.seeds("begin")))
        method.begin_epoch(pool, clock)
    steps = method.epoch(pool, clock)
    for seed in clock.seeds("step"):
        # Dropout and the like draw from torch's global generator: it is set anew for each step, never carried over.
        _seed(seed)
        logs = next(steps, None)
        if logs is None:
            return
        if not math.isfinite(logs.get("loss", 0.0)):
            raise Diverged(
                f"The loss is {logs['loss']} in epoch {clock.epoch + 1}, step {clock.step + 1}. "
                f"Lower lr, or look for extreme values among the features{_formula(method)}."
            )
        clock.tick()
        yield logs


def _formula(method: Method) -> str:
    """Return a hint to the file of a method from outside the package."""
    path = getattr(sys.modules.get(type(method).__module__), "__file__", None)
    return "" if path is None or is_installed(path) else f", or for NaN in the formulas of {path}"


def _starts_solved(method: Method) -> bool:
    """Return whether a method that took no step is a solved model: on features, or with a warm head on a backbone."""
    warm = any(isinstance(part, Network) and part.warm for part in method.modules())
    return method.task.start is not None or warm


def _judge_start(method: Method, progress: Progress, validation: Validation, group: Group) -> None:
    """Make the solved start a candidate for the best epoch, as epoch 0."""
    name, score = validation.score(lambda rows: predict_blocks(method, validation.items[rows]), group)
    if score is not None:
        progress.notes.setdefault("start", {})[f"validation_{name}"] = score
        progress.best_score, progress.best_epoch = score, 0
        progress.best = {key: tensor.clone() for key, tensor in method.state_dict().items()}


def _close_epoch(method: Method, clock: Clock, progress: Progress, validation: Validation | None, group: Group) -> None:
    lost = non_finite(method)
    if lost:
        raise Diverged(
            f"The weights are not finite any more after epoch {clock.epoch + 1} ({', '.join(lost[:3])}): training has "
            f"diverged. Lower lr, or look for extreme values among the features{_formula(method)}."
        )
    line: dict[str, Any] = {"epoch": clock.epoch + 1}
    line |= {name: total / max(clock.step, 1) for name, total in progress.sums.items()}
    if validation is not None:
        with method.use_average():
            name, score = validation.score(lambda rows: predict_blocks(method, validation.items[rows]), group)
        line[f"validation_{name}"] = score
        progress.scores.append(score)
        better = score is not None and (progress.best_score is None or score > progress.best_score)
        # Where no epoch is settled (the run is too short) the last one is kept.
        if better and (method.may_be_best(clock) or (progress.best is None and clock.epoch + 1 == clock.epochs)):
            progress.best_score, progress.best_epoch = score, clock.epoch + 1
            with method.use_average():
                progress.best = {key: tensor.clone() for key, tensor in method.state_dict().items()}
    progress.history.append(line)
    progress.sums = {}
    clock.next_epoch()


def non_finite(method: Method) -> list[str]:
    """Return the names of parameters that are not finite and of buffers with NaN; a buffer may be infinite."""
    learned = dict(method.named_parameters())
    fine = {name: t.isfinite() if name in learned else ~t.isnan() for name, t in method.state_dict().items()}
    return [name for name, finite in fine.items() if not finite.all()]


def _at_known(parts: Iterable[npt.NDArray[Any]], labels: Labels, group: Group) -> Any:
    """Gather scores of known entries, where each process has computed its rows."""
    if group.count == 1:
        return scored.gather_known(scored.enumerate_rows(parts), labels)
    rows, z = group.rows(len(labels)), labels.ternary()
    local_scores = scored.gather_known(scored.enumerate_rows(parts), labels[rows])
    if not labels.sparse:
        whole = np.zeros(labels.shape, local_scores.dtype)
        whole[rows] = local_scores
        return group.total_of(whole)
    values = np.zeros(z.nnz, local_scores.dtype)
    values[z.indptr[rows.start] : z.indptr[rows.stop]] = local_scores.data
    return sp.csr_array((group.total_of(values), z.indices, z.indptr), shape=z.shape)


def _resume(folder: Path, method: Method, clock: Clock, group: Group) -> Progress:
    with group.rank_zero_first():
        newest = checkpoint.load(folder)
        if group.first:
            checkpoint.clean(folder)
    group.assert_consistent(
        {"the newest checkpoint in the run folder": None if newest is None else newest[1]["tensors_sha256"]}
    )
    if newest is None:
        return Progress()
    tensors, record, problems = newest
    if problems:
        warnings.warn(f"{folder}: went on from an older checkpoint: {'; '.join(problems)}", stacklevel=3)
    best = {k.removeprefix("best."): tensors[k].clone() for k in tensors if k.startswith("best.")}
    progress = progress_of(folder, record, best or None)
    if progress.finished and group.first:
        checkpoint.add_copies(folder)
    method.load_state(tensors)
    clock.epoch, clock.step = record["epoch"], record["step"]
    return progress


def progress_of(folder: Path, record: dict[str, Any], best: dict[str, Tensor] | None = None) -> Progress:
    """Return the progress in the record of a checkpoint."""
    fields, defaults = record.get("progress"), vars(Progress())
    kinds = {name: type(value) for name, value in defaults.items() if name not in ("best", *OPTIONAL_NUMBERS)}
    numbers = all(type(record.get(name)) is int and record[name] >= 0 for name in ("epoch", "step"))
    if not numbers or not isinstance(fields, dict) or not fields.keys() <= defaults.keys() - {"best"}:
        raise CheckpointError(f"{folder}: the record of the checkpoint is none of a run. Restore it from a copy.")
    wrong = [name for name, kind in kinds.items() if not isinstance(fields.get(name, defaults[name]), kind)]
    wrong += [name for name in OPTIONAL_NUMBERS if not isinstance(fields.get(name), int | float | None)]
    if wrong:
        raise CheckpointError(
            f"{folder}: the record of the checkpoint says what cannot be: {', '.join(wrong)}. Restore it from a copy."
        )
    return Progress(**fields, best=best)


def _save_together(guard: FolderGuard, method: Method, clock: Clock, progress: Progress, group: Group) -> None:
    """Save in the first process, if all processes have the same state."""
    group.assert_consistent(method.state())
    if group.first:
        guard.check()
        save(guard.folder, method, clock, progress)


def save(
    folder: Path,
    method: Method,
    clock: Clock,
    progress: Progress,
    keep_entries: bool = False,
    beliefs: dict[str, Any] | None = None,
) -> None:
    """Save a checkpoint. That of a finished run is the model, without training state."""
    finished = method.weights() | (method.entries() if keep_entries else {})
    tensors = finished if progress.finished else method.state()
    best = {f"best.{name}": tensor for name, tensor in (progress.best or {}).items()}
    plain = {name: value for name, value in vars(progress).items() if name not in ("best", "last")}
    record = {"epoch": clock.epoch, "step": clock.step, "progress": plain, "beliefs": beliefs}
    checkpoint.save(folder, tensors | best | method.first_stage(), record)


@contextmanager
def _stop_requests(wanted: bool) -> Iterator[Callable[[], int]]:
    """Turn SIGINT and SIGTERM into a function that returns the number of the signal received, or 0."""
    received: list[int] = []
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield lambda: 0
        return
    old = {s: signal.signal(s, lambda number, _: received.append(number)) for s in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: received[0] if received else 0
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)


def _seed(seed: int) -> None:
    # Not torch.manual_seed: where no GPU is in use it formats a stack trace at each call, half a millisecond a step.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(seed)


def _add(sums: dict[str, float], logs: dict[str, float]) -> None:
    for name, value in logs.items():
        sums[name] = sums.get(name, 0.0) + value
