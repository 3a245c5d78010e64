"""The conformance kit: what every method promises, one small check a promise.

A check takes what the catalogue says of a method and raises AssertionError where the method breaks the promise, or
DoesNotApply where it is none that such a method makes. The checks are in order: each takes for granted what those above
it hold, so the first that rejects a method says what is wrong.
"""

# Long because it is one list of independent checks, in the order in which each relies on those above it.

from __future__ import annotations

import dataclasses
import gc
import inspect
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from numbers import Real
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from conformance.bench import (
    BATCH,
    EPOCHS,
    ITEMS,
    LABELS,
    OnDisk,
    WatchedPool,
    bits,
    built,
    copied,
    differing,
    features,
    global_randomness,
    in_case,
    leaves,
    logits_of,
    make_clock,
    make_pool,
    make_task,
    not_finite,
    observed,
    picture_files,
    plain,
    randomness,
    size,
    trained,
    truth,
    x_of,
)
from conformance.digests import in_other_processes
from partly import config, networks, registry
from partly.clock import Clock
from partly.engine import prediction, training
from partly.errors import SettingError, Stopped
from partly.items import as_items, to_absent
from partly.labels import Labels
from partly.method import Method, Task
from partly.methods import MethodInfo
from partly.networks import Network, eval_mode
from partly.optim.optimizers import OPTIMIZERS
from partly.pool import Batch, Pool

Check = Callable[[MethodInfo], None]


class DoesNotApply(Exception):
    """There is nothing here that the method could keep or break."""


def checks() -> dict[str, Check]:
    """Every check, in order, by name."""
    return {name: value for name, value in globals().items() if name.startswith("check_")}


# -------------------------------------------------------------------- the file


def check_docstring(info: MethodInfo) -> None:
    """The file opens with a summary and has the sections of the template."""
    assert info.summary.endswith("."), f"{info.name}: the docstring must open with a one-line summary and a full stop."
    found = registry.sections(info.text)
    for heading in ("Reference", "Known negatives", "Differences from the paper"):
        assert found.get(heading), f"{info.name}: the docstring needs an indented block below the line '{heading}'."


def check_settings(info: MethodInfo) -> None:
    """Settings are keyword-only, annotated and have a default that fits; a wrong name or type is refused by name."""
    given = {"task"} if isinstance(info.make, type) else {"logits", "z", "clock"}
    signature = inspect.signature(info.make, eval_str=True)
    for parameter in (value for name, value in signature.parameters.items() if name not in given):
        say = f"{info.name}: setting {parameter.name}"
        assert parameter.kind is parameter.KEYWORD_ONLY, f"{say} must be keyword-only (put it behind a *)."
        assert parameter.default is not parameter.empty, f"{say} needs a default."
        assert parameter.annotation is not parameter.empty, f"{say} needs a type."
        with in_case(info, f"default of {parameter.name}"):
            info.complete({parameter.name: parameter.default})
        _refuses(info, parameter.name, object())
    _refuses(info, "no_such_setting", 1)


def _refuses(info: MethodInfo, name: str, value: object) -> None:
    said = ""
    with in_case(info, f"setting {name} = {value!r}"):
        try:
            info.complete({name: value})
        except SettingError as error:
            said = str(error)
    assert name in said, f"{info.name}: {name} = {value!r} is not refused by name; said was {said!r}."


# -------------------------------------------------------------------- the same bits


def check_same_seed_same_bits(info: MethodInfo) -> None:
    """Two runs in one process, with the global generators and the time at different places."""
    runs = []
    for elsewhere in (1, 2):
        with global_randomness(elsewhere):
            runs.append(trained(info).state())
    differ = differing(*runs)
    assert not differ, f"{info.name}: the same seed gives other bits in {differ}. Take all randomness from the clock."


def check_same_bits_in_other_processes(info: MethodInfo) -> None:
    """Two processes with different hash seeds (which is where sets and `hash` of texts get their order from)."""
    one, other = (run[str(info.module.__file__)] for run in in_other_processes())
    assert one == other, f"{info.name}: another process gives other bits. Use clock.rng, not `hash` or a set's order."


def check_other_seed_other_weights(info: MethodInfo) -> None:
    """Both the first weights and the trained ones follow the seed."""
    for epochs, what in ((0, "first"), (EPOCHS, "trained")):
        one, other = (trained(info, seed=seed, epochs=epochs).weights() for seed in (0, 1))
        assert differing(one, other), f"{info.name}: the {what} weights are the same for seeds 0 and 1."


# -------------------------------------------------------------------- what is left alone


def check_pool_is_left_alone(info: MethodInfo) -> None:
    """Items, labels, batches and the task's items stay as they are, and nobody keeps a view of them."""
    plain_pool = make_pool()
    pool = WatchedPool(plain_pool.items, plain_pool.labels, BATCH)
    before = bits(x_of(pool.items)), pool.labels.digest()
    method = trained(info, pool)
    assert (bits(x_of(pool.items)), pool.labels.digest()) == before, f"{info.name}: training changes the pool."
    assert bits(x_of(method.task.items)) == before[0], f"{info.name}: training changes the items of the task."
    batches = [(getattr(a, k), getattr(b, k)) for a, b in pool.given for k in ("x", "z", "index")]
    assert all(bits(a) == bits(b) for a, b in batches), f"{info.name}: training writes into a batch. Clone first."
    again = pool.take(torch.arange(len(pool)))
    assert bits(again.z) == bits(torch.from_numpy(observed())), f"{info.name}: training changes the pool's labels."
    view = pool.items.take(slice(None))
    theirs = {part.untyped_storage().data_ptr() for part in (view, *(a for a, _ in batches))}
    kept = [p for p, leaf in leaves(method) if isinstance(leaf, Tensor) and leaf.untyped_storage().data_ptr() in theirs]
    assert not kept, f"{info.name}: {kept} are views of the pool. Clone what has to be kept."


def check_global_randomness_is_left_alone(info: MethodInfo) -> None:
    """Building and training leave the generators of torch, numpy and random where they were, and never seed them."""
    pool = make_pool()
    with global_randomness(3):
        before = randomness()
        trained(info, pool)
        after = randomness()
        moved = [name for name in before if before[name] != after[name]]
        assert not moved, f"{info.name}: moves the global generator of {moved}. Draw from clock.rng or clock.generator."
        with in_case(info, "one epoch by hand"):
            method = built(info, make_task(pool))
            method.train()
            torch.manual_seed(4)
            clock = make_clock(pool)
            method.begin_epoch(pool, clock)
            for _ in method.epoch(pool, clock):
                clock.tick()
        assert torch.initial_seed() == 4, f"{info.name}: calls torch.manual_seed. The loop seeds every step."


def check_forward_has_no_side_effects(info: MethodInfo) -> None:
    """Scoring changes no state, no mode, no generator, no item."""
    pool = make_pool()
    method = trained(info, pool)
    for mode in (True, False):
        method.train(mode)
        items = as_items(x_of(pool.items))
        before = copied(method.state()), _unsaved(info, method), randomness()
        with in_case(info, "scoring"), eval_mode(method), torch.inference_mode():
            method(items.take(slice(None)))
        assert not differing(before[0], method.state()), f"{info.name}: forward changes the method's state."
        after = _unsaved(info, method)
        changed = [path for path in sorted({*before[1], *after}) if before[1].get(path) != after.get(path)]
        assert not changed, f"{info.name}: forward changes {changed}."
        assert before[2] == randomness(), f"{info.name}: forward draws random numbers (dropout that is always on?)."
        assert bits(x_of(items)) == bits(x_of(pool.items)), f"{info.name}: forward writes into its items."


def check_scores_do_not_depend_on_batching(info: MethodInfo) -> None:
    """Logits are [B, L] floats; an item's are the same alone, in any company, and in any order."""
    x = features()
    method = trained(info)
    with in_case(info, "scoring in pieces"):
        whole = logits_of(method, x)
        assert whole.shape == (ITEMS, LABELS), f"logits of shape {list(whole.shape)}, not [{ITEMS}, {LABELS}]"
        assert whole.is_floating_point(), f"logits are {whole.dtype}"
        for batch_size in (1, 5):
            pieces = torch.cat([logits_of(method, part) for part in x.split(batch_size)])
            torch.testing.assert_close(pieces, whole, rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(logits_of(method, x.flip(0)).flip(0), whole, rtol=1e-5, atol=1e-5)


# -------------------------------------------------------------------- what has to be kept


def check_sparse_labels_same_bits(info: MethodInfo) -> None:
    """Sparse labels are the same labels: a method sees them through batches only."""
    z = observed()
    sparse = Pool(as_items(features()), Labels.from_ternary(sp.csr_array(z)), BATCH)
    differ = differing(trained(info).state(), trained(info, sparse, "sparse labels").state())
    assert not differ, f"{info.name}: sparse labels give other bits in {differ}."


def check_items_from_disk(info: MethodInfo) -> None:
    """Items that lie in a file are the same items: a method asks for a batch of them at most, and never for all."""
    pool = make_pool()
    with tempfile.TemporaryDirectory() as folder:
        items = OnDisk.written(pool.items, Path(folder) / "items")
        method = trained(info, Pool(items, pool.labels, BATCH), "items on disk")
        scores = prediction.logits(method, items, BATCH)
    in_memory = trained(info, pool)
    differ = differing(in_memory.state(), method.state())
    assert not differ, f"{info.name}: items on disk give other bits in {differ}."
    same = np.array_equal(scores, prediction.logits(in_memory, pool.items, BATCH))
    assert same, f"{info.name}: items on disk have other logits."


def check_truth_is_not_in_the_room(info: MethodInfo) -> None:
    """A batch holds x, z, index and the caller's weights, and no more; what hides under an unknown entry changes
    nothing."""
    if info.kind.needs_truth:
        raise DoesNotApply("an oracle, and it says so")
    fields = [field.name for field in dataclasses.fields(Batch)]
    assert fields == ["x", "z", "index", "weights"], "Batch has other fields."
    runs = []
    for hidden in (truth(), np.where(observed() == 0, -truth(), truth())):
        pool = make_pool()
        for name in ("truth", "full_labels", "targets", "y"):
            object.__setattr__(pool, name, torch.from_numpy(hidden))
        runs.append(trained(info, pool).state())
    differ = differing(*runs)
    assert not differ, f"{info.name}: the truth behind unknown entries changes {differ}. Use the batch's z only."


def check_resume_same_bits(info: MethodInfo) -> None:
    """A run that is stopped and started anew at every safe point, through real files, ends in the same bits."""
    pool = make_pool()
    whole = built(info, make_task(pool))
    expected = training.train(whole, pool, make_clock(pool))
    with tempfile.TemporaryDirectory() as folder, in_case(info, "resuming"):
        for _ in range(EPOCHS * pool.steps):
            try:
                again = built(info, make_task(pool))
                training.train(again, pool, make_clock(pool), folder=Path(folder), callback=_stop)
            except Stopped:
                continue
            raise AssertionError("the loop did not stop when it was asked to")
        method = built(info, make_task(pool))
        progress = training.train(method, pool, make_clock(pool), folder=Path(folder))
    differ = differing(whole.state(), method.state())
    assert not differ, f"{info.name}: resuming at safe points gives other bits in {differ}."
    assert progress.history == expected.history, f"{info.name}: resuming gives another history."


def _stop(clock: Clock, logs: dict[str, float]) -> None:
    assert callable(signal.getsignal(signal.SIGTERM)), "the loop does not listen"  # else it would end this process
    signal.raise_signal(signal.SIGTERM)


def check_all_state_is_saved(info: MethodInfo) -> None:
    """What training changes is a parameter, a buffer, kept for entries, or an optimizer: never a plain attribute or a
    global."""
    pool = make_pool()
    with in_case(info, "training"):
        method = built(info, make_task(pool))
        before = _unsaved(info, method)
        training.train(method, pool, make_clock(pool))
        method.train()
        after = _unsaved(info, method)
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    assert not changed, (
        f"{info.name}: training changes {changed}, which is not in state(). Make it a buffer (register_buffer), "
        "state of the entries (keep) or an optimizer that is an attribute of the method, or compute it from the clock."
    )


def _unsaved(info: MethodInfo, method: Method) -> dict[str, object]:
    """Everything that the method and its file hold, except what goes into a checkpoint."""
    saved = {id(tensor) for tensor in (*method.state_dict(keep_vars=True).values(), *method.entries().values())}
    saved |= {id(optimizer) for optimizer in method.optimizers().values()}
    saved |= {id(method.notes)}  # the loop saves them
    groups = [
        {k: v for k, v in group.items() if k not in ("params", "lr")}  # lr is set from the clock at every step
        for optimizer in method.optimizers().values()
        for group in optimizer.param_groups
    ]
    root = {"method": method, "groups": groups, "file": _globals(info)}
    return {path: plain(value) for path, value in leaves(root, saved)}


def _globals(info: MethodInfo) -> dict[str, object]:
    names = {name: value for name, value in vars(info.module).items() if not name.startswith("__")}
    own = [value for value in names.values() if isinstance(value, type) and value.__module__ == info.module.__name__]
    return names | {f"class {kind.__name__}": dict(vars(kind)) for kind in own}


def check_settled(info: MethodInfo) -> None:
    """Whether an epoch may be the best one follows from settings, clock and saved state. Asking changes nothing, a yes
    stays a yes, and by the last of a few epochs the method is what it is named for."""
    pool = make_pool()
    said: list[bool] = []
    with in_case(info, "settled"):
        method = built(info, make_task(pool))

        def ask(clock: Clock, logs: dict[str, float]) -> None:
            if clock.step < clock.steps:
                return
            before = copied(method.state()), _unsaved(info, method), randomness(), dataclasses.astuple(clock)
            answer = method.may_be_best(clock)
            assert type(answer) is bool, f"it says {answer!r}, which is neither True nor False"
            after = method.state(), _unsaved(info, method), randomness(), dataclasses.astuple(clock)
            same = not differing(before[0], after[0]) and before[1:] == after[1:]
            assert same, "asking changes the method, the clock or a generator"
            again = built(info, make_task(pool))
            again.load_state(copied(method.state()))
            assert again.may_be_best(clock) is answer, "a method that goes on from what is saved says otherwise"
            said.append(answer)

        training.train(method, pool, make_clock(pool), callback=ask)
        assert said == sorted(said), f"epochs may be the best: {said}; a yes must stay a yes"
        assert said[-1], f"not even the last of {EPOCHS} epochs may be the best one"


def check_loads_from_weights_alone(info: MethodInfo) -> None:
    """A finished model is its weights: rebuilt without items and labels, or rid of them, it gives the same logits."""
    pool = make_pool()
    method = trained(info, pool)
    before = bits(logits_of(method, x_of(pool.items)))
    with in_case(info, "loading"):
        again = built(info, _only_to_predict(pool))
        again.load_state(copied(method.weights()))
        same = bits(logits_of(again, x_of(pool.items))) == before
    assert same, (
        f"{info.name}: a rebuilt model with the same weights gives other logits. Keep what it needs in buffers."
    )
    with in_case(info, "finished"):
        method.strip_training_state()
        same = bits(logits_of(method, x_of(pool.items))) == before
    assert same, f"{info.name}: without what was there to train it gives other logits."


def check_model_is_without_training_state(info: MethodInfo) -> None:
    """What is kept for training entries is no part of the model, and is not there where there is only to predict."""
    weights, held = [], []
    for items in (ITEMS, 2 * ITEMS):
        pool = make_pool(observed(items))
        found = trained(info, pool, epochs=1)
        grown = {name for name in found.weights() if _grown(found, name)}
        whole = [name for name in grown if found.weights()[name].shape == pool.labels.shape]
        assert not whole, f"{info.name}: {whole} may grow, but not with items x labels. Use `keep`."
        weights.append({name: tensor for name, tensor in found.weights().items() if name not in grown})
        with in_case(info, "only to predict"):
            method = built(info, _only_to_predict(pool))
        bounded = {id(tensor) for name, tensor in method.state_dict(keep_vars=True).items() if _grown(method, name)}
        held.append(sum(size(leaf) for _, leaf in leaves(method, bounded)))
        there = {name: list(kept.shape) for name, kept in method.entries().items() if len(kept)}
        assert not there, f"{info.name}: {there} are kept for training items that are not there."
    one, other = ({name: (tensor.dtype, tensor.shape) for name, tensor in some.items()} for some in weights)
    grown = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    assert not grown, f"{info.name}: {grown} of the model depend on the number of items. Use `keep`."
    assert held[0] == held[1], f"{info.name}: to predict, it holds {held} bytes for {ITEMS} and {2 * ITEMS} items."


def _grown(method: Method, name: str) -> bool:
    """Whether a tensor is of a part that the method says to follow the size of the data, up to some bound."""
    return (
        name.removeprefix("method.").startswith(method.variable_size_modules) if method.variable_size_modules else False
    )


def _only_to_predict(pool: Pool) -> Task:
    """The task of a model that was trained on these items, and is loaded."""
    return dataclasses.replace(make_task(pool), items=to_absent(pool.items), observed=None)


# -------------------------------------------------------------------- the solved start


def check_solved_start(info: MethodInfo) -> None:
    """From a solved start: a method scores as the baseline until it learns, stays there at a rate of 0, and gives the
    same bits twice, resumed and loaded."""
    pool = make_pool()
    task = make_task(pool, head="kernel", start="solved")
    if not info.starts_solved(task):
        raise DoesNotApply(f"{info.name} has no network that could start there")
    with in_case(info, "from a solved start"):
        whole = built(info, task)
        start = whole.task.start
        assert start is not None
        x = x_of(pool.items)
        still = built(
            info, dataclasses.replace(whole.task, start=dataclasses.replace(start, contrast=start.no_contrast))
        )
        wanted = logits_of(start.baseline.method, x)
        assert torch.allclose(logits_of(still, x), wanted, atol=1e-4), "untrained, it does not score as the baseline"
        still.lr_factor = 0.0
        training.train(still, pool, make_clock(pool))
        assert torch.allclose(logits_of(still, x), wanted, atol=1e-4), "at a rate of 0 it leaves the baseline"
        training.train(whole, pool, make_clock(pool))
        with tempfile.TemporaryDirectory() as folder:
            with suppress(Stopped):
                training.train(built(info, task), pool, make_clock(pool), folder=Path(folder), callback=_stop_half_way)
            again = built(info, task)
            training.train(again, pool, make_clock(pool), folder=Path(folder))
        loaded = built(info, dataclasses.replace(task, items=to_absent(pool.items), observed=None))
        loaded.load_state(copied(whole.weights()))
    differ = differing(whole.state(), again.state())
    assert not differ, f"{info.name}: resuming from a solved start gives other bits in {differ}."
    same = bits(logits_of(loaded, x)) == bits(logits_of(whole, x))
    assert same, f"{info.name}: from a solved start, a rebuilt model with the same weights gives other logits."


# -------------------------------------------------------------------- learning


def check_heads(info: MethodInfo) -> None:
    """Every head that there is."""
    for head in networks.heads():
        _stays_finite(info, make_pool(), f"head {head}", head=head)


def check_pictures(info: MethodInfo) -> None:
    """Small colour pictures instead of features."""
    pictures = np.random.default_rng(5).integers(0, 256, (ITEMS, 16, 16, 3), dtype=np.uint8)
    if "pictures" not in info.kind.kinds:
        raise DoesNotApply("it says that it does not learn from pictures")
    _stays_finite(info, make_pool(items=as_items(pictures)), "pictures", head="mlp")


def check_picture_files(info: MethodInfo) -> None:
    """Pictures in files, decoded and augmented in other processes: a run that is stopped half-way and goes on ends in
    the bits of one that is not, and scoring changes nothing. Who does not learn from pictures says so."""
    pool = make_pool(items=picture_files())
    if "pictures" not in info.kind.kinds:
        said = ""
        try:
            built(info, make_task(pool))
        except SettingError as error:
            said = str(error)
        assert "not from pictures" in said, f"{info.name}: pictures are not refused by name; said was {said!r}."
        return
    whole = trained(info, pool, "pictures in files")
    with tempfile.TemporaryDirectory() as folder, in_case(info, "pictures in files, resumed"):
        stopped = 0
        for watch in (_stop_half_way, None):
            method = built(info, make_task(pool))
            try:
                training.train(method, pool, Clock(0, EPOCHS, method.steps(pool)), folder=Path(folder), callback=watch)
            except Stopped:
                stopped += 1
        assert stopped == 1, "the loop did not stop when it was asked to"
        one, other = (prediction.logits(method, pool.items) for _ in range(2))
    differ = differing(whole.state(), method.state())
    assert not differ, f"{info.name}: resuming or scoring pictures in files gives other bits in {differ}."
    assert one.tobytes() == other.tobytes(), f"{info.name}: pictures in files are scored otherwise the second time."


def _stop_half_way(clock: Clock, logs: dict[str, float]) -> None:
    if 2 * (clock.epoch * clock.steps + clock.step) >= clock.epochs * clock.steps:
        _stop(clock, logs)


def check_logs(info: MethodInfo) -> None:
    """Every safe point reports numbers, the loss among them, and there are as many as the pool has batches, or as the
    method says."""
    seen: list[dict[str, Any]] = []
    method = trained(info, callback=lambda clock, logs: seen.append(logs))
    assert len(seen) == EPOCHS * method.steps(make_pool()), f"{info.name}: {len(seen)} safe points in {EPOCHS} epochs."
    for logs in seen:
        assert "loss" in logs, f"{info.name}: update reports no 'loss' but {sorted(logs)}."
        wrong = {name: value for name, value in logs.items() if type(value) is not float}
        assert not wrong, f"{info.name}: update must report floats (use .item()); got {wrong}."


def check_known_labels_matter(info: MethodInfo) -> None:
    """Turning every known yes into a no, or every known no into a yes, changes the weights."""
    z = observed()
    as_is = trained(info).weights()
    for value, word in ((1, "yes"), (-1, "no")):
        turned = trained(info, make_pool(np.where(z == value, -z, z), as_items(features()))).weights()
        assert differing(as_is, turned), f"{info.name}: turning every known {word} changes nothing."


def check_learns(info: MethodInfo) -> None:
    """With every entry known and an easy task, what is yes ends above what is no."""
    z = truth()
    method = trained(info, make_pool(z), head="linear", epochs=10, lr=0.05)
    logits = logits_of(method, features()).numpy()
    yes, no = logits[z == 1].mean(), logits[z == -1].mean()
    assert yes > no, f"{info.name}: after training yes scores {yes:.3f} and no {no:.3f} on average."


def check_optimizers(info: MethodInfo) -> None:
    """Every optimizer works, and the learning rate is the task's: at 0 no network changes."""
    pool = make_pool()
    if not list(built(info, make_task(pool)).parameters()):
        raise DoesNotApply("it has nothing that an optimizer could change")
    allow_zero = {"lr": (Real, 0.0, "a number, 0 or more")}  # a caller cannot ask for 0, a test can
    for name in OPTIMIZERS:
        with mock.patch.dict(config.NUMBERS, allow_zero):
            first, last, still = (
                copied(_network_weights(trained(info, pool, name, optimizer=name, epochs=epochs, lr=lr)))
                for epochs, lr in ((0, 1e-3), (1, 1e-3), (1, 0.0))
            )
        assert differing(first, last), f"{info.name}: {name} changes no network."
        assert not not_finite(last), f"{info.name}: {name} makes {not_finite(last)} infinite."
        moved = [key for key in first if not torch.allclose(first[key], still[key], rtol=1e-5)]
        assert not moved, f"{info.name}: at learning rate 0 {name} changes {moved}. Take optimizers from the task."


def _network_weights(method: Method) -> dict[str, Tensor]:
    nets = {name: module for name, module in method.named_modules() if isinstance(module, Network)}
    return {f"{name}.{key}": value for name, net in nets.items() for key, value in net.named_parameters()}


def check_beliefs(info: MethodInfo) -> None:
    """Beliefs are N x L in [0, 1], and equal what was observed where something was, at every safe point and at the end;
    some rows of them are rows of all. Their size is declared."""
    pool = make_pool()
    seen: list[Tensor] = []
    with in_case(info, "beliefs"):
        method = built(info, make_task(pool))

        def look(clock: Clock, logs: dict[str, float]) -> None:
            beliefs = method.beliefs()
            seen.extend([] if beliefs is None else [beliefs.clone()])

        training.train(method, pool, make_clock(pool), callback=look)
        in_blocks = list(training.belief_blocks(method))
    if not seen and not in_blocks:
        raise DoesNotApply("it believes nothing")
    with in_case(info, "beliefs"):
        points = EPOCHS * method.steps(pool)
        assert len(seen) == points, f"they are there at {len(seen)} of {points} safe points"
        last = torch.from_numpy(np.concatenate(in_blocks))
        declared = info.kind.belief_memory(make_task(pool), info.complete({}))
        assert last.nbytes == declared, f"they take {last.nbytes} bytes, but {declared} are declared"
        for beliefs in (*seen, last):
            _sound(beliefs, torch.from_numpy(observed()))
        for rows in (slice(None), slice(3, 9), slice(0, 0)):
            torch.testing.assert_close(method.beliefs(rows), last[rows])


def _sound(beliefs: Tensor, z: Tensor) -> None:
    assert beliefs.shape == z.shape, f"shape {list(beliefs.shape)}, not {list(z.shape)}"
    assert beliefs.is_floating_point(), f"they are {beliefs.dtype}"
    assert ((beliefs >= 0) & (beliefs <= 1)).all(), "some are not in [0, 1]"
    assert (beliefs[z == 1] == 1).all(), "some contradict an observed yes"
    assert (beliefs[z == -1] == 0).all(), "some contradict an observed no"


# -------------------------------------------------------------------- awkward input


def check_finite_when_little_is_known(info: MethodInfo) -> None:
    """Rows, columns, batches and whole pools of which nothing is known, or only yes, or only no."""
    z = observed()
    row, column, no_yes, no_no, half = (z.copy() for _ in range(5))
    row[1] = column[:, 1] = half[: ITEMS // 2] = 0
    no_yes[:, 1] = np.minimum(z[:, 1], 0)
    no_no[:, 1] = np.maximum(z[:, 1], 0)
    cases = {
        "a row of which nothing is known": row,
        "a column of which nothing is known": column,
        "a column without yes": no_yes,
        "a column without no": no_no,
        "half of the items unknown": half,
        "only yes known": np.maximum(z, 0),
        "only no known": np.minimum(z, 0),
        "everything known": truth(),
        "nothing known": np.zeros_like(z),
    }
    for case, labels in cases.items():
        # Small batches, so that some hold nothing that is known.
        _stays_finite(info, make_pool(labels, as_items(features()), BATCH // 2), case)


def check_finite_on_small_pools(info: MethodInfo) -> None:
    """A batch of one, a last batch of one, one item, one label."""
    cases = {
        "batches of one": make_pool(batch_size=1),
        "a last batch of one": make_pool(batch_size=ITEMS - 1),
        "one item": make_pool(observed(items=1)),
        "one item of which nothing is known": make_pool(np.zeros((1, LABELS), np.int8)),
        "one label": make_pool(observed(labels=1)),
    }
    for case, pool in cases.items():
        _stays_finite(info, pool, case)


def check_finite_on_extreme_features(info: MethodInfo) -> None:
    """Huge, tiny and constant features, and one item far from all others."""
    scales = torch.tensor([1e30, 1e-30, 1e6, 1e-6, 0.0, 1.0])
    outlier = features()
    outlier[0] = 1e20
    for case, x in {"features of every scale": features() * scales, "an outlier of 1e20": outlier}.items():
        _stays_finite(info, make_pool(items=as_items(x)), case)


def check_finite_for_extreme_logits(info: MethodInfo) -> None:
    """Losses start from logits, so that even a network gone wild has a finite loss and gradient."""
    pool = make_pool()
    with in_case(info, "logits of 1e4"):
        method = built(info, _Loud(**vars(make_task(pool))))
        training.train(method, pool, make_clock(pool))
    assert not not_finite(method.weights()), f"{info.name}: logits of 1e4 make {not_finite(method.weights())} infinite."


class _Loud(Task):
    """Networks whose first logits are in the ten thousands."""

    def network(self, *args: Any, **options: Any) -> Network:
        network = super().network(*args, **options)
        with torch.no_grad():
            for parameter in network.head.parameters():
                parameter *= 1e5
        return network


def _stays_finite(info: MethodInfo, pool: Pool, case: str, **task: Any) -> None:
    method = trained(info, pool, case, epochs=1, **task)
    with in_case(info, case):
        logits = logits_of(method, x_of(pool.items))
    assert logits.shape == pool.labels.shape, f"{info.name}, {case}: logits of shape {list(logits.shape)}."
    wrong = not_finite(method.weights() | {"logits": logits})
    assert not wrong, f"{info.name}, {case}: {wrong} not finite. Select known entries before computing on them."


# -------------------------------------------------------------------- memory


def check_entry_bytes(info: MethodInfo) -> None:
    """What is kept for items x labels is what `memory` declares, so that a run can be refused in time."""
    held, said = {}, {}
    for shape in ((n, m) for n in (ITEMS, 2 * ITEMS) for m in (LABELS, 2 * LABELS)):
        pool = make_pool(observed(*shape))
        method = trained(info, pool, epochs=1, head="linear")
        root = {"method": method, "file": _globals(info)}
        bounded = [id(tensor) for name, tensor in method.state_dict(keep_vars=True).items() if _grown(method, name)]
        held[shape] = sum(size(leaf) for _, leaf in leaves(root, [id(pool.labels), *bounded]))  # the labels are no copy
        said[shape] = info.memory(make_task(pool, head="linear"), info.complete({}))[0]
    kept, declared = (_per_entry(of_shape) for of_shape in (held, said))
    assert kept == declared, f"{info.name}: keeps {kept:g} bytes per entry, but declares {declared:g}."


def _per_entry(of_shape: dict[tuple[int, int], int]) -> float:
    """Bytes per entry: what depends on items alone, on labels alone or on neither falls out of the mixed difference."""
    one, wide, long, both = (of_shape[n, m] for n in (ITEMS, 2 * ITEMS) for m in (LABELS, 2 * LABELS))
    return (both - wide - long + one) / (ITEMS * LABELS)


def check_memory_does_not_grow(info: MethodInfo) -> None:
    """As many tensors and other things are alive after the fourth epoch as after the second."""
    pool = make_pool()
    counts: dict[int, tuple[int, int]] = {}
    gc.freeze()  # what is there already need not be looked through
    try:
        with in_case(info, "four epochs"):
            method = built(info, make_task(pool))

            def count(clock: Clock, logs: dict[str, float]) -> None:
                if clock.step == clock.steps:
                    gc.collect()
                    tensors = sum(issubclass(type(thing), Tensor) for thing in gc.get_objects())
                    counts[clock.epoch + 1] = tensors, sum(1 for _ in leaves(method))

            training.train(method, pool, make_clock(pool, epochs=4), callback=count)
    finally:
        gc.unfreeze()
    assert counts[4] == counts[2], (
        f"{info.name}: {counts[2]} tensors and things held after two epochs, {counts[4]} after four."
    )


# -------------------------------------------------------------------- methods that are a loss function


def check_loss_is_pure(info: MethodInfo) -> None:
    """A loss function changes neither logits nor z, and says the same twice."""
    _must_be_a_loss(info)
    logits, z = _loss_input()
    given = logits.clone(), z.clone()
    first, again = _loss(info, *given), _loss(info, *given)
    assert (bits(given[0]), bits(given[1])) == (bits(logits), bits(z)), f"{info.name}: loss writes into its input."
    assert bits(first) == bits(again), f"{info.name}: loss gives two values for the same input."


def check_loss_is_equivariant(info: MethodInfo) -> None:
    """Items and labels in another order: the same loss, and the same entries in that order."""
    _must_be_a_loss(info)
    logits, z = _loss_input()
    rows, columns = (torch.from_numpy(np.random.default_rng(6).permutation(n)) for n in logits.shape)
    loss, mixed = _loss(info, logits, z), _loss(info, logits[rows][:, columns], z[rows][:, columns])
    with in_case(info, "items and labels in another order"):
        torch.testing.assert_close(mixed.mean(), loss.mean(), rtol=1e-9, atol=1e-9)
        if loss.shape == logits.shape:
            torch.testing.assert_close(mixed, loss[rows][:, columns], rtol=1e-9, atol=1e-9)


def check_loss_does_not_leak_what_it_ignores(info: MethodInfo) -> None:
    """Where the logits of unknown entries do not count, not even NaN there reaches the value or the gradient."""
    _must_be_a_loss(info)
    logits, z = _loss_input()
    value, gradient = _value_and_gradient(info, logits, z)
    if bits(_value_and_gradient(info, torch.where(z == 0, 3.0, logits), z)[0]) != bits(value):
        raise DoesNotApply("unknown entries count")
    for hidden in (float("nan"), float("inf")):
        leaked = _value_and_gradient(info, torch.where(z == 0, hidden, logits), z)
        same = bits(leaked[0]) == bits(value) and bits(leaked[1]) == bits(gradient)
        assert same, (
            f"{info.name}: a logit of {hidden} under an unknown entry leaks. Select, do not multiply by a mask."
        )


def _must_be_a_loss(info: MethodInfo) -> None:
    if isinstance(info.make, type):
        raise DoesNotApply("more than a loss function")


def _loss_input() -> tuple[Tensor, Tensor]:
    logits = np.random.default_rng(7).normal(scale=2, size=(ITEMS, LABELS))
    return torch.from_numpy(logits), torch.from_numpy(observed())


def _loss(info: MethodInfo, logits: Tensor, z: Tensor) -> Tensor:
    clock = (
        (Clock(0, epochs=4, steps=3, epoch=2, step=1),) if "clock" in inspect.signature(info.make).parameters else ()
    )
    with in_case(info, "the loss function by itself"):
        return info.make(logits, z, *clock)


def _value_and_gradient(info: MethodInfo, logits: Tensor, z: Tensor) -> tuple[Tensor, Tensor]:
    logits = logits.clone().requires_grad_()
    value = _loss(info, logits, z).mean()
    value.backward()
    assert logits.grad is not None
    return value.detach(), logits.grad
