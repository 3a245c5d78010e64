"""The loop: the same bits however often it is interrupted or watched, and what it does at the end of an epoch."""

# Long because every way to stop and go on needs its own small run.

from __future__ import annotations

import hashlib
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from partly import metrics
from partly.atomic_io import sha256_of
from partly.clock import Clock
from partly.distributed.group import Group
from partly.engine import checkpoint, prediction, training
from partly.errors import CheckpointError, PartlyError, Stopped
from partly.items import Items, as_items
from partly.labels import Labels
from partly.method import EntryState, Method, Task
from partly.methods import find
from partly.pool import Batch, Pool
from plans import task_of

ITEMS, FEATURES, LABELS, BATCH, EPOCHS = 44, 5, 4, 8, 3


def data(seed: int = 0, share: float = 0.6) -> tuple[Items, Labels]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(ITEMS, FEATURES)).astype(np.float32)
    yes = x @ np.random.default_rng(1).normal(size=(FEATURES, LABELS)) > 0
    return as_items(x), Labels.from_nan(np.where(rng.random(yes.shape) < share, yes, np.nan))


class Believer(Method):
    """All that can make resuming hard: two networks, two optimizers, dropout, drifting beliefs, a start of epochs."""

    entry_state = (EntryState("held", fill=0.5),)
    held: Tensor
    moved: Tensor

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        self.first, self.second = (self._network(role) for role in ("first", "second"))
        self.fast = task.make_optimizer(self.first.parameters())
        self.slow = task.make_optimizer(self.second.parameters(), factor=0.1)
        self.register_buffer("moved", torch.zeros((), dtype=torch.int64))

    def _network(self, role: str) -> nn.Module:
        network = self.task.network(role)
        return nn.Sequential(network.features, nn.Dropout(0.5), network.head)

    def begin_epoch(self, pool: Pool, clock: Clock) -> None:
        self.moved += 1
        self.held += 0.01 * torch.rand(self.held.shape)

    def update(self, batch: Batch, clock: Clock) -> dict[str, float]:
        noise = torch.rand(len(batch.x), 1, generator=clock.generator("noise"))
        one, two = self.first(batch.x + 0.01 * noise), self.second(batch.x)
        self.held[batch.index] = 0.9 * self.held[batch.index] + 0.1 * torch.sigmoid(one.detach())
        target = torch.where(batch.z == 0, self.held[batch.index], (batch.z > 0).float())
        loss = binary_cross_entropy_with_logits(one, target) + binary_cross_entropy_with_logits(two, target)
        self.step(loss, clock, self.fast, self.slow)
        return {"loss": loss.item(), "spread": one.std().item()}

    def forward(self, x: Tensor) -> Tensor:
        return (self.first(x) + self.second(x)) / 2

    def beliefs(self, rows: slice = slice(None)) -> Tensor:
        return self.held[rows]


def make(kind: str = "believer", seed: int = 0, epochs: int = EPOCHS, **how: Any) -> tuple[Method, Pool, Clock]:
    x, labels = data()
    head = "linear" if kind == "believer" else "mlp"
    task = task_of(x, LABELS, head=head, lr=0.01, seed=seed, observed=labels, **how)
    pool = Pool(x, labels, BATCH)
    method = Believer(task) if kind == "believer" else find(kind).build(task, find(kind).complete({}))
    return method, pool, Clock(seed, epochs, pool.steps, last=pool.last)


def digest(method: Method) -> str:
    """Of every bit that belongs to a method."""
    sha = hashlib.sha256()
    for name, tensor in sorted((method.weights() | method.entries()).items()):
        sha.update(name.encode() + tensor.contiguous().numpy().tobytes())
    return sha.hexdigest()


class Interrupted(Exception):
    pass


def trained(kind: str = "believer", **more: Any) -> tuple[str, training.Progress]:
    method, pool, clock = make(kind)
    progress = training.train(method, pool, clock, **more)
    return digest(method), progress


@pytest.fixture
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not wait for the disk: nothing here cuts the power."""
    monkeypatch.setattr(os, "fsync", lambda _: None)


# -------------------------------------------------------------------- the same bits


@pytest.mark.parametrize("kind", ["believer", "partial-bce"])
def test_the_same_seed_gives_the_same_bits_and_another_seed_others(kind: str) -> None:
    assert trained(kind)[0] == trained(kind)[0]
    other, pool, _ = make(kind, seed=1)
    training.train(other, pool, Clock(1, EPOCHS, pool.steps))
    assert digest(other) != trained(kind)[0]


@pytest.mark.usefixtures("quick_disk")
@pytest.mark.parametrize("kind", ["believer", "partial-bce"])
@pytest.mark.parametrize("validated", [False, True])
def test_resuming_at_every_safe_point_gives_the_same_bits(tmp_path: Path, kind: str, validated: bool) -> None:
    """Interrupted after every single step, and gone on with objects that know nothing but the folder."""
    x, labels = data(seed=5)
    # Validation that says the opposite prefers an early epoch, so that what is kept for later must survive as well.
    validation = training.Validation(x, Labels.from_ternary(-labels.ternary())) if validated else None
    whole, straight = trained(kind, validation=validation)
    assert straight.best_epoch in ((1, 2) if validated else (None,))
    _, pool, _ = make(kind)
    total = EPOCHS * pool.steps
    for last in range(2, total + 1):  # each start makes one new step and repeats the one whose save was interrupted
        method, pool, clock = make(kind)

        def interrupt(clock: Clock, _: dict[str, float], last: int = last) -> None:
            if clock.epoch * clock.steps + clock.step == last:
                raise Interrupted

        with pytest.raises(Interrupted):
            training.train(
                method, pool, clock, validation=validation, folder=tmp_path, save_seconds=0, callback=interrupt
            )
        found = checkpoint.load(tmp_path)
        assert found is not None
        assert found[1]["epoch"] * pool.steps + found[1]["step"] == last - 1
    resumed, progress = trained(kind, validation=validation, folder=tmp_path, save_seconds=0)
    assert resumed == whole
    assert progress.history == straight.history
    assert len(progress.history) == EPOCHS
    assert (progress.best_epoch, progress.best_score) == (straight.best_epoch, straight.best_score)


OPTIONS: dict[str, dict[str, Any]] = {
    "gathered": {"accumulate": 4},
    "averaged": {"average": 0.9},
    "plateau": {"schedule": "plateau", "schedule_settings": {"gamma": 0.5, "patience": 0}},
    "lowered": {"dtype": "bfloat16"},
    "adam": {"optimizer": "adam", "schedule": "step", "schedule_settings": {"at": [1]}},
    "rmsprop": {"optimizer": "rmsprop", "accumulate": 4, "average": 0.9},
}


@pytest.mark.usefixtures("quick_disk")
@pytest.mark.parametrize("how", ["interrupted", "damaged"])
def test_a_finished_run_that_lacks_its_second_copy_gets_it_when_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Whatever comes between the two copies, and without training anew."""
    save, saved = checkpoint.save, list[bool]()

    def interrupted(folder: Path, tensors: Any, record: Any) -> None:
        if record["progress"]["finished"] and how == "interrupted":
            saved.append(True)
            if len(saved) == 2:
                raise KeyboardInterrupt
        save(folder, tensors, record)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "save", interrupted)
        if how == "interrupted":
            with pytest.raises(KeyboardInterrupt):
                trained(folder=tmp_path)
        else:
            trained(folder=tmp_path)
            newest = checkpoint.records(tmp_path)[-1].with_suffix(".safetensors")
            newest.write_bytes(newest.read_bytes()[:-1])
    before = digest_of_copies(tmp_path)
    assert len(before) == (1 if how == "interrupted" else 2)
    assert len(set(before)) == len(before), "there are no two that are the same"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, progress = trained(folder=tmp_path)
    assert progress.finished
    copies = digest_of_copies(tmp_path)
    assert len(copies) == 2
    assert len(set(copies)) == 1
    assert set(copies) <= set(before)


def digest_of_copies(folder: Path) -> list[str]:
    return [sha256_of(path.with_suffix(".safetensors")) for path in checkpoint.records(folder)]


@pytest.mark.usefixtures("quick_disk")
@pytest.mark.parametrize(
    ("kind", "option"),
    [
        *(("believer", option) for option in OPTIONS if option != "lowered"),
        *(("co-teaching", option) for option in ("averaged", "lowered")),  # two networks
        ("role", "gathered"),  # it moves estimates of entries between the steps
    ],
)
def test_with_any_option_resuming_at_every_safe_point_gives_the_same_bits(
    tmp_path: Path, kind: str, option: str
) -> None:
    small = {} if kind == "believer" else {"head_settings": {"hidden": 8}}
    how = OPTIONS[option] | small
    x, labels = data(seed=5)
    validation = training.Validation(x, Labels.from_ternary(-labels.ternary()))
    plain, whole = (make(kind, **more) for more in (small, how))
    for method, pool, clock in (plain, whole):
        training.train(method, pool, clock, validation=validation)
    assert digest(plain[0]) != digest(whole[0])  # the option makes a difference
    for last in range(2, EPOCHS * whole[1].steps + 1):
        method, pool, clock = make(kind, **how)

        def interrupt(clock: Clock, _: dict[str, float], last: int = last) -> None:
            if clock.epoch * clock.steps + clock.step == last:
                raise Interrupted

        with pytest.raises(Interrupted):
            training.train(
                method, pool, clock, validation=validation, folder=tmp_path, save_seconds=0, callback=interrupt
            )
    method, pool, clock = make(kind, **how)
    training.train(method, pool, clock, validation=validation, folder=tmp_path)
    assert digest(method) == digest(whole[0])


def weights_at_every_step(**more: Any) -> list[str]:
    method, pool, clock = make("partial-bce")
    seen: list[str] = []
    training.train(method, pool, clock, callback=lambda *_: seen.append(digest(method)), **more)
    return seen


@pytest.mark.usefixtures("quick_disk")
def test_evaluating_watching_and_saving_change_no_weight(tmp_path: Path) -> None:
    alone = weights_at_every_step()
    assert len(set(alone)) == EPOCHS * 6
    assert weights_at_every_step(validation=training.Validation(*data(seed=5))) == alone
    assert weights_at_every_step(folder=tmp_path, save_seconds=0) == alone


def test_a_watcher_that_draws_random_numbers_and_predicts_changes_no_weight() -> None:
    method, pool, clock = make("partial-bce")

    def nosy(*_: object) -> None:
        torch.rand(7)
        np.random.rand(3)  # noqa: NPY002
        random.random()
        prediction.predict(method, pool.items)

    training.train(method, pool, clock, callback=nosy)
    assert digest(method) == trained("partial-bce")[0]


def test_a_progress_bar_changes_no_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    from partly.engine import progress_bar

    monkeypatch.setattr(progress_bar, "visible", lambda: True)
    with progress_bar.progress_callback("method", "head", EPOCHS) as watch:
        assert watch is not None
        shown, _ = trained("partial-bce", callback=watch)
    assert shown == trained("partial-bce")[0]


def test_training_neither_reads_nor_moves_the_global_generators() -> None:
    first, _ = trained()
    torch.manual_seed(99)
    np.random.seed(99)  # noqa: NPY002
    before = torch.random.get_rng_state(), np.random.get_state()[1].tolist()  # noqa: NPY002
    second, _ = trained()
    assert first == second
    assert torch.equal(torch.random.get_rng_state(), before[0])
    assert np.random.get_state()[1].tolist() == before[1]  # noqa: NPY002


def test_another_process_with_another_hash_seed_gives_the_same_bits() -> None:
    places = [str(folder) for folder in Path(__file__).parents[:2]]
    script = f"import sys; sys.path[:0] = {places!r}; import test_training as t; t.report()"
    other = {"PYTHONHASHSEED": "1" if os.environ.get("PYTHONHASHSEED") != "1" else "2"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=os.environ | other, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == digests()


def report() -> None:
    """For the test above: what training gives in a process of its own."""
    torch.set_num_threads(1)
    print(*digests())


def digests() -> list[str]:
    validation = training.Validation(*data(seed=5))
    return [trained()[0], trained("partial-bce", validation=validation)[0]]


# -------------------------------------------------------------------- epochs and their scores


class Scripted(Method):
    """Says what it is told to: in epoch e its scores are `scale[e]` times the first labels' truth."""

    def __init__(self, task: Task, scale: list[float], logs: list[dict[str, float]] | None = None) -> None:
        super().__init__(task)
        self.scale, self.logs = scale, logs
        self.register_buffer("age", torch.tensor(0))

    def epoch(self, pool: Pool, clock: Clock) -> Iterator[dict[str, float]]:
        for step in range(clock.step, clock.steps):
            if step == clock.steps - 1:
                self.age += 1
            yield self.logs[step] if self.logs else {"loss": 1.0}

    def forward(self, x: Tensor) -> Tensor:
        return x[:, :LABELS] * self.scale[int(self.age) - 1]


def scripted(
    scale: list[float], labels: Labels, logs: list[dict[str, float]] | None = None, keep_last: bool = False
) -> Any:
    x = as_items(np.where(labels.rows(slice(None)) == 1, 1.0, -1.0))
    method = Scripted(task_of(x, LABELS), scale, logs)
    clock = Clock(0, len(scale), len(logs) if logs else 2)
    validation = training.Validation(x, labels)
    progress = training.train(method, Pool(x, labels), clock, validation=validation, keep_last=keep_last)
    return method, progress


def full() -> Labels:
    return Labels.from_full(np.random.default_rng(0).integers(0, 2, (30, LABELS)))


def test_the_best_epoch_is_kept() -> None:
    method, progress = scripted([-1.0, 1.0, 0.0, -1.0], full())
    assert progress.best_epoch == 2
    assert progress.best_score == 1.0
    assert int(method.age) == 2
    scores = [line["validation_mAP"] for line in progress.history]
    assert scores[1] == 1.0
    assert max(scores[0], *scores[2:]) < 1.0
    assert [line["epoch"] for line in progress.history] == [1, 2, 3, 4]
    assert progress.best is None  # it lives in the method now


def test_the_last_epoch_is_kept_beside_the_best_for_who_asks() -> None:
    for scale, age in (([0.0, 1.0, -1.0], 3), ([-1.0, 0.0, 1.0], None)):
        method, progress = scripted(scale, full(), keep_last=True)
        assert (None if progress.last is None else int(progress.last["age"])) == age  # nothing, where it is the best
        assert int(method.age) == progress.best_epoch
    assert scripted([0.0, 1.0, -1.0], full())[1].last is None


def test_of_equal_epochs_the_first_is_kept() -> None:
    assert scripted([0.0, 1.0, 2.0, 3.0], full())[1].best_epoch == 2


class Phased(Scripted):
    """As it is told to, and settled from some epoch on, counted from 0."""

    def __init__(self, task: Task, scale: list[float], first: int) -> None:
        super().__init__(task, scale)
        self.first = first

    def may_be_best(self, clock: Clock) -> bool:
        assert clock.step == clock.steps  # the steps are over, and the epoch is not
        return clock.epoch >= self.first


@pytest.mark.parametrize(
    ("scale", "first", "best"),
    [
        ([1.0, -1.0, 1.0, -1.0], 0, 1),
        ([1.0, -1.0, 1.0, -1.0], 1, 3),  # the first epoch scores best, and may not be chosen
        ([1.0, -1.0, 1.0, -1.0], 3, 4),
        ([1.0, -1.0, 1.0, -1.0], 4, 4),  # none may: the last is kept
    ],
)
def test_an_epoch_that_is_not_settled_is_never_the_best(scale: list[float], first: int, best: int) -> None:
    labels = full()
    x = as_items(np.where(labels.rows(slice(None)) == 1, 1.0, -1.0))
    method = Phased(task_of(x, LABELS), scale, first)
    progress = training.train(method, Pool(x, labels), Clock(0, 4, 2), validation=training.Validation(x, labels))
    assert (progress.best_epoch, int(method.age)) == (best, best)
    assert progress.best_score == progress.history[best - 1]["validation_mAP"]
    assert progress.history[0]["validation_mAP"] == 1.0


def test_without_validation_the_last_epoch_is_kept() -> None:
    labels = full()
    x = as_items(np.zeros((30, LABELS)))
    method = Scripted(task_of(x, LABELS), [1.0] * 3)
    progress = training.train(method, Pool(x, labels), Clock(0, 3, 2))
    assert int(method.age) == 3
    assert progress.best_epoch is None
    assert progress.history == [{"epoch": e, "loss": 1.0} for e in (1, 2, 3)]


def test_a_validation_score_that_is_not_defined_chooses_nothing() -> None:
    nothing = Labels.from_nan(np.full((30, LABELS), np.nan))
    method, progress = scripted([1.0, 1.0, 1.0], nothing)
    assert int(method.age) == 3
    assert progress.best_epoch is None
    expected = [{"epoch": e, "loss": 1.0, "validation_mAP_unknown_as_no": None} for e in (1, 2, 3)]
    assert progress.history == expected


def test_validation_with_only_yes_goes_by_its_own_name() -> None:
    truth = full()
    only_yes = Labels.from_positives(truth.rows(slice(None)) == 1)
    scores = np.random.default_rng(1).random(truth.shape)
    name, score = training.Validation(as_items(np.zeros((30, 1))), only_yes).score(lambda rows: [scores[rows]])
    assert name == "mAP_unknown_as_no"
    assert score == metrics.evaluate(scores, truth)["mAP"]


@pytest.mark.parametrize("sparse", [False, True])
def test_validation_never_needs_all_probabilities_at_once(monkeypatch: pytest.MonkeyPatch, sparse: bool) -> None:
    """Where unknown entries count, they are made twice rather than held: the same bits."""
    rng = np.random.default_rng(1)
    yes, scores, asked = (rng.random((30, 4)) < 0.2).astype(np.int8), rng.random((30, 4), np.float32), list[slice]()
    only_yes = Labels.from_positives(sp.csr_array(yes) if sparse else yes)
    validation = training.Validation(as_items(np.zeros((30, 1))), only_yes)

    def predicted(rows: slice) -> list[np.ndarray]:
        asked.append(rows)
        return [scores[rows][start : start + 7] for start in range(0, 30, 7)]

    held = validation.score(predicted)
    assert len(asked) == 1
    monkeypatch.setattr(training, "MAX_STORED_PROBABILITIES", 0)
    assert validation.score(predicted) == held
    assert len(asked) == 3
    assert held[1] == pytest.approx(metrics.evaluate(scores, Labels.from_full(yes))["mAP"])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("only_yes", [False, True])
def test_validation_by_two_processes_is_that_of_one(sparse: bool, only_yes: bool) -> None:
    """Each works out its rows; threads stand for the processes."""
    rng = np.random.default_rng(1)
    z, scores = rng.choice([-1, 0, 1], (31, 4), p=[0.2, 0.6, 0.2]), rng.random((31, 4), np.float32)
    z = np.maximum(z, 0) if only_yes else z
    labels = Labels.from_ternary(sp.csr_array(z) if sparse else z)
    validation = training.Validation(as_items(np.zeros((31, 1))), labels)
    barrier, given = threading.Barrier(2), dict[int, np.ndarray]()

    class Half(Group):
        def total_of(self, array: np.ndarray) -> np.ndarray:
            given[self.rank] = array.copy()
            barrier.wait()
            total = given[0] + given[1]
            barrier.wait()
            return total

    def predicted(rows: slice) -> list[np.ndarray]:
        return [scores[rows][:5], scores[rows][5:]]

    with ThreadPoolExecutor(2) as both:
        found = list(both.map(lambda rank: validation.score(predicted, Half(rank=rank, count=2)), range(2)))
    assert found == [validation.score(predicted)] * 2


def test_validation_on_partly_known_labels_counts_the_known_entries() -> None:
    labels = data(seed=3)[1]
    scores = np.random.default_rng(1).random(labels.shape)
    name, score = training.Validation(as_items(np.zeros((ITEMS, 1))), labels).score(lambda rows: [scores[rows]])
    assert name == "mAP"
    assert score == pytest.approx(metrics.evaluate(scores, labels)["mAP"], abs=1e-12)


def test_history_holds_the_mean_of_what_the_steps_said() -> None:
    logs = [{"loss": 1.0, "kept": 0.0}, {"loss": 2.0, "kept": 1.0}, {"loss": 6.0, "kept": 0.5}]
    _, progress = scripted([1.0], full(), logs)
    line = progress.history[0]
    assert (line["epoch"], line["loss"], line["kept"]) == (1, 3.0, 0.5)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_loss_that_is_not_finite_stops_with_place_and_way_out(bad: float) -> None:
    with pytest.raises(PartlyError, match=rf"The loss is {bad} in epoch 1, step 2\. Lower lr"):
        scripted([1.0], full(), [{"loss": 1.0}, {"loss": bad}])


# -------------------------------------------------------------------- eval_mode


@pytest.mark.parametrize("mode", [True, False])
def test_predicting_has_no_side_effects(mode: bool) -> None:
    method, pool, _ = make("partial-bce")
    method.train(mode)
    before = digest(method), torch.random.get_rng_state()
    first = prediction.predict(method, pool.items)
    assert first.shape == (ITEMS, LABELS)
    assert (prediction.predict(method, pool.items) == first).all()  # no dropout
    assert method.training is mode
    assert digest(method) == before[0]
    assert torch.equal(torch.random.get_rng_state(), before[1])
    np.testing.assert_allclose(prediction.predict(method, pool.items, batch_size=7), first, rtol=1e-5)
    np.testing.assert_allclose(1 / (1 + np.exp(-prediction.logits(method, pool.items).astype(float))), first, rtol=1e-5)
    assert prediction.predict(method, pool.items[:0]).shape == (0, LABELS)


def test_batches_of_narrow_features_hold_more_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as keep features, or scores, at one size; never very few, nor all of them."""
    method, pool, _ = make("partial-bce")
    many = as_items(np.tile(pool.items.take(slice(None)).numpy(), (5000 // ITEMS + 1, 1))[:5000])

    def sizes() -> list[int]:
        return [len(block) for block in prediction.predict_blocks(method, many)]

    assert sizes() == [4096, 904]
    monkeypatch.setattr(prediction, "CACHED_NUMBERS", 1000 * FEATURES)  # there are fewer labels than features
    assert sizes() == [1000] * 5
    monkeypatch.setattr(prediction, "CACHED_NUMBERS", 1)
    assert sizes() == [256] * 19 + [136]


# -------------------------------------------------------------------- run folders


@pytest.mark.usefixtures("quick_disk")
def test_a_finished_run_is_not_trained_again(tmp_path: Path) -> None:
    first, pool, clock = make()
    progress = training.train(first, pool, clock, folder=tmp_path)

    def never(*_: object) -> None:
        raise AssertionError("a step was made")

    again, pool, clock = make()
    loaded = training.train(again, pool, clock, folder=tmp_path, callback=never)
    assert all(torch.equal(tensor, again.weights()[name]) for name, tensor in first.weights().items())
    assert loaded.finished
    assert loaded.history == progress.history


@pytest.mark.usefixtures("quick_disk")
def test_a_finished_run_holds_the_model_and_no_optimizer(tmp_path: Path) -> None:
    method, pool, clock = make()
    training.train(method, pool, clock, folder=tmp_path, validation=training.Validation(*data(seed=5)))
    found = checkpoint.load(tmp_path)
    assert found is not None
    assert set(found[0]) == {f"method.{name}" for name in method.state_dict()}


@pytest.mark.usefixtures("quick_disk")
@pytest.mark.parametrize("kind", ["json", "safetensors"])
def test_damage_falls_back_says_so_and_ends_in_the_same_bits(tmp_path: Path, kind: str) -> None:
    interrupted(tmp_path, after=9)
    newest = max(tmp_path.glob(f"checkpoint-*.{kind}"))
    newest.write_bytes(newest.read_bytes()[:-20])
    with pytest.warns(UserWarning, match="older checkpoint") as caught:
        resumed, _ = trained(folder=tmp_path)
    assert len(caught) == 1
    assert str(tmp_path) in str(caught[0].message)
    assert newest.name in str(caught[0].message)
    assert resumed == trained()[0]


@pytest.mark.usefixtures("quick_disk")
def test_damage_everywhere_is_an_error_and_nothing_is_overwritten(tmp_path: Path) -> None:
    interrupted(tmp_path, after=9)
    for path in tmp_path.glob("*.safetensors"):
        path.write_bytes(path.read_bytes()[:-20])
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    method, pool, clock = make()
    with pytest.raises(CheckpointError, match=re.escape(f"{tmp_path}: no checkpoint can be read")):
        training.train(method, pool, clock, folder=tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.usefixtures("quick_disk")
def test_a_full_disk_stops_training_and_freeing_it_lets_it_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interrupted(tmp_path, after=9)
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "atomic_write", _full)
        method, pool, clock = make()
        with pytest.raises(CheckpointError, match=re.escape(f"{tmp_path}: cannot write (No space left on device)")):
            training.train(method, pool, clock, folder=tmp_path, save_seconds=0)
    assert trained(folder=tmp_path)[0] == trained()[0]


def _full(path: Path) -> None:
    raise OSError(28, os.strerror(28))


def interrupted(folder: Path, after: int) -> None:
    """Leave a run in the folder that stopped so many steps in, saved at every step but the last."""

    def watch(clock: Clock, _: dict[str, float]) -> None:
        if clock.epoch * clock.steps + clock.step == after:
            raise Interrupted

    method, pool, clock = make()
    with pytest.raises(Interrupted):
        training.train(method, pool, clock, folder=folder, save_seconds=0, callback=watch)


@pytest.mark.usefixtures("quick_disk")
def test_saving_happens_no_more_often_than_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(training.time, "monotonic", lambda: now[0])
    saved: list[int] = []
    save = checkpoint.save
    monkeypatch.setattr(checkpoint, "save", lambda *a: (saved.append(int(now[0])), save(*a)))

    def tick(*_: object) -> None:
        now[0] += 1.0

    trained(folder=tmp_path, save_seconds=5.0, callback=tick)
    assert saved == [5, 10, 15, 18, 18]  # 18 steps; the last two are the finished model


# -------------------------------------------------------------------- stopping


@pytest.mark.usefixtures("quick_disk")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("step", [1, 6, 11])
def test_a_signal_finishes_the_step_saves_and_leaves(tmp_path: Path, number: signal.Signals, step: int) -> None:
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    steps: list[int] = []

    def watch(clock: Clock, _: dict[str, float]) -> None:
        steps.append(clock.epoch * clock.steps + clock.step)
        if steps[-1] == step:
            signal.raise_signal(number)
            signal.raise_signal(number)  # impatience changes nothing

    method, pool, clock = make()
    with pytest.raises(Stopped, match="saved in") as caught:
        training.train(method, pool, clock, folder=tmp_path, callback=watch)
    assert str(tmp_path) in str(caught.value)
    assert caught.value.code == 128 + number
    assert steps == list(range(1, step + 1))
    found = checkpoint.load(tmp_path)
    assert found is not None
    assert found[1]["epoch"] * pool.steps + found[1]["step"] == step
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers
    assert trained(folder=tmp_path)[0] == trained()[0]


@pytest.mark.usefixtures("quick_disk")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_last_save_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    original = checkpoint.save

    def interrupted(*given: Any) -> None:
        signal.raise_signal(number)
        original(*given)

    monkeypatch.setattr(checkpoint, "save", interrupted)
    method, pool, clock = make()
    with pytest.raises(Stopped, match="the finished model is in") as caught:
        training.train(method, pool, clock, folder=tmp_path)
    assert caught.value.code == 128 + number
    found = checkpoint.load(tmp_path)
    assert found is not None
    assert found[1]["progress"]["finished"]
    assert len(checkpoint.records(tmp_path)) == 2
    monkeypatch.undo()
    whole, pool, clock = make()
    training.train(whole, pool, clock)
    assert all(torch.equal(found[0][name], value) for name, value in whole.weights().items())


@pytest.mark.usefixtures("quick_disk")
def test_weights_that_are_not_finite_end_an_epoch(tmp_path: Path) -> None:
    """The loss of a step is that of the weights before it: it may be fine while they are lost."""
    method, pool, clock = make()

    def watch(clock: Clock, logs: dict[str, float]) -> None:
        assert np.isfinite(logs["loss"])
        if clock.epoch == 1 and clock.step == clock.steps:
            next(method.parameters()).data[0] = float("nan")

    with pytest.raises(PartlyError, match=r"not finite any more after epoch 2 \(.*weight.*\): training has diverged"):
        training.train(method, pool, clock, folder=tmp_path, callback=watch)
    found = checkpoint.load(tmp_path)
    assert found is None or all(found[0][name].isfinite().all() for name in found[0])


@pytest.mark.usefixtures("quick_disk")
def test_a_signal_that_comes_while_the_loop_looks_is_saved_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between asking whether to stop and stopping: the next step is finished, saved and left after."""
    now = time.monotonic

    def ticking() -> float:
        if len(steps) == 3:
            signal.raise_signal(signal.SIGTERM)
        return now()

    steps: list[int] = []
    method, pool, clock = make()
    monkeypatch.setattr(training.time, "monotonic", ticking)
    with pytest.raises(Stopped):
        training.train(method, pool, clock, folder=tmp_path, callback=lambda clock, _: steps.append(clock.step))
    found = checkpoint.load(tmp_path)
    assert found is not None
    assert found[1]["step"] == len(steps)


def test_without_a_folder_ctrl_c_is_an_ordinary_interrupt() -> None:
    method, pool, clock = make()
    with pytest.raises(KeyboardInterrupt):
        training.train(method, pool, clock, callback=lambda *_: signal.raise_signal(signal.SIGINT))


@pytest.mark.usefixtures("quick_disk")
def test_handlers_come_back_after_an_error(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    interrupted(tmp_path, after=2)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.usefixtures("quick_disk")
def test_training_in_another_thread_gives_the_same_bits(tmp_path: Path) -> None:
    result: list[str] = []
    thread = threading.Thread(target=lambda: result.append(trained(folder=tmp_path)[0]))
    thread.start()
    thread.join()
    assert result == [trained()[0]]


# -------------------------------------------------------------------- memory


MEMORY = """
import sys, tempfile
from pathlib import Path
import numpy as np, psutil, torch
from partly import engine
from partly.items import as_items
from partly.labels import Labels

torch.set_num_threads(1)
rng = np.random.default_rng(0)
x = as_items(rng.normal(size=(2000, 64)).astype(np.float32))
labels = Labels.from_nan(np.where(rng.random((2000, 20)) < 0.3, rng.integers(0, 2, (2000, 20)), np.nan))
resident = {}

def watch(clock, logs):
    if clock.step == clock.steps:
        resident[clock.epoch + 1] = psutil.Process().memory_info().rss

config = engine.make_config("partial-bce", epochs=20, batch_size=250)
plan = engine.resolve(config, (x, labels), (x[:500], labels[:500]))
with tempfile.TemporaryDirectory() as folder:
    engine.fit(plan, folder=Path(folder), save_seconds=0.2, callback=watch)
print(resident[3], resident[20])
"""


def test_memory_does_not_grow_with_the_epochs() -> None:
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    early, late = map(int, done.stdout.split())
    assert early > 50e6
    assert late <= 1.02 * early
