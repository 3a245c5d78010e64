"""Trainers that are killed, stopped and doubled, for real.

Importing torch takes seconds, a fork of a process that has imported it milliseconds: this file, run as a script, is a
parent that imports once, forks a trainer again and again, does harm to it and prints what it saw, as JSON.
"""

# Long because it holds the trainers that are killed beside the tests that kill them.

from __future__ import annotations

import json
import mmap
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

STOPPED, REFUSED, BROKEN = 3, 4, 5  # exit codes of trainers


# -------------------------------------------------------------------- the tests


Harm = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def harm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harm]:
    """Ask the parent for one kind of harm; what it saw."""
    command = [sys.executable, __file__, str(tmp_path_factory.mktemp("runs"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asked, answers = process.stdin, process.stdout
        assert asked is not None
        assert answers is not None

        def ask(kind: str) -> dict[str, Any]:
            print(kind, file=asked, flush=True)
            answer = answers.readline()
            assert answer, "the parent died; its own words are above"
            seen: dict[str, Any] = json.loads(answer)
            return seen

        yield ask
        asked.close()


def test_killed_at_any_moment(harm: Harm) -> None:
    """SIGKILL after random times, saving at every step, until several runs are through."""
    seen = harm("killed")
    assert seen["kills"] >= 30
    assert seen["unreadable"] == []
    assert seen["lost"] == []
    assert seen["kills_before_the_first_save"] < seen["kills"]
    assert len(seen["finished"]) >= 2
    assert set(seen["finished"]) == {seen["unbroken"]}


def test_killed_at_every_disk_call(harm: Harm) -> None:
    """SIGKILL before, after and in the middle of every write, sync, rename and removal of a whole run."""
    seen = harm("killed_at_disk_calls")
    assert seen["kills"] >= 60
    assert seen["unreadable"] == []
    assert seen["leftovers"] == []
    assert set(seen["finished"]) == {seen["unbroken"]}
    assert len(seen["finished"]) == seen["kills"]


def test_stopped_by_signals(harm: Harm) -> None:
    seen = harm("stopped")
    assert seen["codes"] == [STOPPED] * len(seen["codes"])
    assert len(seen["codes"]) == 6
    assert seen["saved_at"] == seen["stopped_at"]
    assert seen["finished"] == [seen["unbroken"]] * 2


def test_two_trainers_in_one_folder(harm: Harm) -> None:
    seen = harm("doubled")
    assert seen["second"] == REFUSED
    assert seen["changed"] == []
    assert seen["third"] == seen["unbroken"]


def test_everything_that_writes_is_killed() -> None:
    """Some of what `killing.py` does for as long as asked: methods, compare, refine, query, features, predict."""
    script = Path(__file__).with_name("killing.py")
    done = subprocess.run([sys.executable, script, "--kills", "40"], capture_output=True, text=True, check=False)
    seen = json.loads(done.stdout or "null")
    assert seen is not None, done.stderr
    assert seen["wrong"] == []
    assert seen["kills"] >= 40


# -------------------------------------------------------------------- the parent


class Parent:
    """Forks trainers and watches them. `steps` is shared memory: a trainer writes how many steps it has made."""

    def __init__(self, folder: Path) -> None:
        import numpy as np
        import torch

        from partly import engine
        from partly.items import as_items

        torch.set_num_threads(1)  # threads do not survive a fork
        # An optimizer imports more, once instead of each time.
        engine.build_method(engine.make_config("bce", "linear"), as_items(np.zeros((2, 2))), 2)
        self.folder = folder
        self.shared = mmap.mmap(-1, 8)

    @property
    def steps(self) -> int:
        return int.from_bytes(self.shared[:8], "little")

    def start(self, name: str, head: str, prepare: Callable[[], None] | None, save_seconds: float) -> int:
        self.shared[:8] = bytes(8)
        child = os.fork()
        if child:
            return child
        from partly.errors import CheckpointError, Stopped

        try:
            if prepare:
                prepare()
            self.train(self.folder / name, head, save_seconds)
            os._exit(0)
        except Stopped:
            os._exit(STOPPED)
        except CheckpointError:
            os._exit(REFUSED)
        except BaseException as error:
            print(repr(error), file=sys.stderr, flush=True)
            os._exit(BROKEN)

    def train(self, folder: Path, head: str, save_seconds: float) -> None:
        import numpy as np

        from partly import engine
        from partly.clock import Clock
        from partly.items import as_items
        from partly.labels import Labels

        rng = np.random.default_rng(0)
        x = as_items(rng.normal(size=(48, 6)).astype(np.float32))
        labels = Labels.from_nan(rng.choice([1.0, 0.0, np.nan], size=(48, 3)))

        def watch(clock: Clock, _: dict[str, float]) -> None:
            self.shared[:8] = (clock.epoch * clock.steps + clock.step).to_bytes(8, "little")

        config = engine.make_config(
            "partial-bce", head, epochs=4 if head == "mlp" else 2, batch_size=8 if head == "mlp" else 16
        )
        plan = engine.resolve(config, (x, labels), (x[:20], labels[:20]))
        engine.fit(plan, folder=folder, save_seconds=save_seconds, callback=watch)

    def finish(self, name: str, head: str = "mlp") -> str:
        """Let a trainer run to its end; the digest of what it leaves."""
        assert exit_code(self.start(name, head, None, 1000.0)) == 0
        return self.result(name)

    def result(self, name: str) -> str:
        from partly import engine

        fitted = engine.load(self.folder / name)
        record = max((self.folder / name).glob("checkpoint-*.json")).read_text().splitlines()
        return f"{json.loads(chr(10).join(record[:-1]))['tensors_sha256']} {fitted.progress.history}"

    def position(self, name: str, per_epoch: int = 6) -> int:
        """Steps in the newest checkpoint. Whole, or an exception: a kill must not damage anything."""
        from partly.engine import checkpoint

        found = checkpoint.load(self.folder / name)
        if found is None:
            return 0
        if found[2]:
            raise RuntimeError(f"fell back: {found[2]}")
        return int(found[1]["epoch"] * per_epoch + found[1]["step"])


def ended(child: int) -> bool:
    """Without reaping it: its exit code can still be asked for, and a signal to it hits nobody else."""
    return os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def wait_for_step(parent: Parent, child: int, step: int) -> None:
    while parent.steps < step:
        assert not ended(child), f"the trainer ended before step {step}"
        time.sleep(0.0005)


def exit_code(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def killed(parent: Parent) -> dict[str, Any]:
    rng = random.Random(1)
    kills = early = number = 0
    unreadable: list[str] = []
    lost: list[str] = []
    finished: list[str] = []
    before = 0
    while kills < 40 or len(finished) < 2:
        name = f"run {number}"
        child = parent.start(name, "mlp", None, save_seconds=0.0)
        # Mostly right behind a step, so that the save after it is hit; sometimes at any time, the start included.
        wanted = before + rng.randint(1, 4)
        until = time.monotonic() + (rng.uniform(0.0, 0.3) if rng.random() < 0.3 else 60.0)
        while parent.steps < wanted and time.monotonic() < until and not ended(child):
            time.sleep(0.0005)
        time.sleep(rng.uniform(0.0, 0.03))
        os.kill(child, signal.SIGKILL)
        if exit_code(child) == 0:  # it was faster
            finished.append(parent.result(name))
            number, before = number + 1, 0
            continue
        kills += 1
        try:
            after = parent.position(name)
        except Exception as error:
            unreadable.append(repr(error))
            continue
        early += after == 0
        # A step is watched before it is saved: all steps before the last one seen were saved.
        if after < max(before, parent.steps - 1):
            lost.append(f"{name}: at {after} after {parent.steps} steps, {before} before")
        before = after
    return {
        "kills": kills,
        "kills_before_the_first_save": early,
        "unreadable": unreadable,
        "lost": lost,
        "finished": finished,
        "unbroken": parent.finish("unbroken"),
    }


def killed_at_disk_calls(parent: Parent) -> dict[str, Any]:
    unbroken = parent.finish("unbroken, linear", "linear")
    unreadable: list[str] = []
    leftovers: list[str] = []
    finished: list[str] = []
    call = 0
    while True:
        call += 1
        name = f"call {call}"
        code = exit_code(parent.start(name, "linear", lambda call=call: kill_at(call), save_seconds=0.0))
        if code == 0:  # the run makes no more calls than that
            break
        assert code == -signal.SIGKILL, code
        try:
            parent.position(name)
            finished.append(parent.finish(name, "linear"))
        except Exception as error:
            unreadable.append(f"{name}: {error!r}")
        leftovers += [f"{name}: {path.name}" for path in (parent.folder / name).glob(".*") if path.name != ".lock"]
    seen = {"kills": call - 1, "unreadable": unreadable, "leftovers": leftovers}
    return seen | {"finished": finished, "unbroken": unbroken}


def kill_at(call: int) -> None:
    """Make this process die at its n-th disk call; in the middle of a write, where that is one."""
    from partly import atomic_io

    left = call

    def count() -> None:
        nonlocal left
        left -= 1
        if not left:
            os.kill(os.getpid(), signal.SIGKILL)

    def dying(original: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*arguments: Any, **more: Any) -> Any:
            count()
            return original(*arguments, **more)

        return wrapped

    import io

    class Dying(io.FileIO):
        def write(self, content: Any) -> int:
            super().write(content[: len(content) // 2])
            count()
            return super().write(content[len(content) // 2 :])

    atomic_io.open = dying(lambda path, mode, **how: (Dying if mode == "xb" else open)(path, mode, **how))  # type: ignore[attr-defined]
    os.fsync = dying(lambda _: None)  # type: ignore[assignment]
    os.replace = dying(os.replace)
    Path.unlink = dying(Path.unlink)  # type: ignore[method-assign]


def stopped(parent: Parent) -> dict[str, Any]:
    """SIGINT and SIGTERM at three steps of a run each; a save is due only because of them."""
    codes, stopped_at, saved_at, finished = [], [], [], []
    for number in (signal.SIGINT, signal.SIGTERM):
        name = number.name
        for step in (2, 6, 13):
            child = parent.start(name, "mlp", None, save_seconds=1000.0)
            wait_for_step(parent, child, step)
            os.kill(child, number)
            codes.append(exit_code(child))
            stopped_at.append(parent.steps)
            saved_at.append(parent.position(name))
        finished.append(parent.finish(name))
    seen = {"codes": codes, "stopped_at": stopped_at, "saved_at": saved_at, "finished": finished}
    return seen | {"unbroken": parent.finish("unbroken")}


def doubled(parent: Parent) -> dict[str, Any]:
    """A second trainer while the first one holds still, and a third after the first was killed."""

    def contents() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in (parent.folder / "both").iterdir()}

    first = parent.start("both", "mlp", None, save_seconds=0.0)
    wait_for_step(parent, first, 4)
    os.kill(first, signal.SIGSTOP)
    os.waitpid(first, os.WUNTRACED)
    before = contents()
    second = exit_code(parent.start("both", "mlp", None, save_seconds=0.0))
    after = contents()
    changed = [name for name in before | after if before.get(name) != after.get(name)]
    os.kill(first, signal.SIGKILL)
    os.waitpid(first, 0)
    third = parent.finish("both")
    return {"second": second, "changed": changed, "third": third, "unbroken": parent.finish("unbroken")}


if __name__ == "__main__":
    parent = Parent(Path(sys.argv[1]))
    for line in sys.stdin:
        print(json.dumps(globals()[line.strip()](parent)), flush=True)
