"""Keeps the trainer going: starts it, hears what it says, starts it again where it dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from partly.annotate.project import Plan

PAUSE = 5.0  # seconds before one that died is started again
LONG_PAUSE = 60.0  # the same, of one that has said why: somebody must do something about it
STOPPED = "The trainer has stopped"


class Keeper:
    """A trainer for as long as the pages are there."""

    def __init__(self, plan: Plan, pause: float = PAUSE) -> None:
        self._plan, self._pause = plan, pause
        self._words = "The trainer is starting."
        self._over = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)

    def start(self) -> Keeper:
        self._thread.start()
        return self

    def words(self) -> str:
        """What it does."""
        return self._words

    def end(self) -> None:
        """By closing its input; it need not finish anything, since all it knows is in the database."""
        self._over.set()
        process = self.process
        if process is not None:
            process.kill()
        self._thread.join(10)

    def _keep(self) -> None:
        while not self._over.is_set():
            self.process = _started(self._plan)
            if self._over.is_set():  # it ended while this one was made
                self.process.kill()
            assert self.process.stdout is not None
            for line in self.process.stdout:
                with suppress(ValueError):
                    self._words = str(json.loads(line))
            with suppress(BrokenPipeError), self.process:
                pass  # closes its pipes and waits for it
            stopped = self._words.startswith(STOPPED)
            if not stopped:
                self._words = "The trainer died; it starts again. No answer is lost."
            self._over.wait(LONG_PAUSE if stopped else self._pause)


def _started(plan: Plan) -> subprocess.Popen[bytes]:
    import partly

    source = str(Path(partly.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH", ""))))
    # -P: a file of the folder that somebody happens to be in is not imported.
    words = [sys.executable, "-P", "-m", "partly.annotate.trainer"]
    process = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | {"PYTHONPATH": paths}
    )
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # then it has ended, which is seen soon enough
        # By its input and not as an argument, which everybody on the machine could read: a URL may hold a password.
        process.stdin.write(json.dumps(plan.plain()).encode() + b"\n")
        process.stdin.flush()
    return process
