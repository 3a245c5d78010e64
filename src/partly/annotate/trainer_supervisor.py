"""Keep the trainer process alive: start it, read its status, restart it after a failure."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from partly.annotate.programs import program
from partly.annotate.project import Plan

PAUSE_SECONDS = 5.0  # before the first restart; doubles with every further failure
MAX_PAUSE_SECONDS = 60.0


@dataclass(frozen=True)
class TrainerStatus:
    """What the trainer is doing. `failure` says why it stopped and what to do; it is shown to admins only."""

    text: str = ""
    failure: str | None = None

    def for_person(self, admin: bool) -> str:
        """One sentence for the page of questions."""
        if self.failure is None:
            return self.text
        rest = "See Overview for the reason." if admin else "Please tell an admin."
        return f"The trainer has stopped, so no new questions come for now. Your answers are saved. {rest}"


class Keeper:
    """Runs a trainer for as long as the pages are served."""

    def __init__(self, plan: Plan, pause: float = PAUSE_SECONDS) -> None:
        self._plan, self._pause = plan, pause
        self._status = TrainerStatus("The trainer is starting.")
        self._over = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name="keeper", daemon=True)

    def start(self) -> Keeper:
        self._thread.start()
        return self

    def status(self) -> TrainerStatus:
        return self._status

    def end(self) -> None:
        """Kill the trainer. It need not finish anything, since all of its state is in the database."""
        self._over.set()
        process = self.process
        if process is not None:
            process.kill()
        self._thread.join(10)

    def _keep(self) -> None:
        pause = self._pause
        while not self._over.is_set():
            worked = self._run_once()
            pause = self._pause if worked else min(2 * pause, MAX_PAUSE_SECONDS)
            self._over.wait(pause)

    def _run_once(self) -> bool:
        """Run one trainer until it ends; return whether it has worked meanwhile. The reason of the last failure stays
        until then, since a restarted trainer may fail again."""
        self.process = process = _started(self._plan)
        if self._over.is_set():  # the pages ended while this one was started
            process.kill()
        assert process.stdout is not None
        worked, reason = False, None
        for line in process.stdout:
            message = _message(line)
            worked = worked or message.get("works") is True
            reason = message.get("failure", reason)
            self._status = TrainerStatus(str(message.get("text", "")), None if worked else self._status.failure)
        with suppress(BrokenPipeError), process:
            pass  # closes its pipes and waits for it
        if not self._over.is_set():
            reason = reason or killed(process.returncode)
            self._status = TrainerStatus("", f"{reason}\nThe trainer starts again by itself.")
        return worked


def _message(line: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        found = json.loads(line)
        if isinstance(found, dict):
            return found
    return {}


def killed(code: int) -> str:
    """Say why a process ended that gave no reason itself."""
    if code == -signal.SIGKILL:
        return (
            "The trainer was killed, most likely because memory ran out. Free memory, or choose a smaller method: "
            "partly annotate --method partial-bce."
        )
    return f"The trainer ended with exit code {code}. The console of partly annotate shows more."


def _started(plan: Plan) -> subprocess.Popen[bytes]:
    command, environment = program("partly.annotate.trainer")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # then it has ended, which is seen soon enough
        # By its input and not as an argument, which everybody on the machine could read: a URL may hold a password.
        process.stdin.write(json.dumps(plan.plain()).encode() + b"\n")
        process.stdin.flush()
    return process
