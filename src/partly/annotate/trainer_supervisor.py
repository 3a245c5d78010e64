"""Supervise the trainer process: start it, read its status, restart it after a failure, close it at the end."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from partly.annotate.project import ProjectConfig
from partly.annotate.subprocesses import module_command

RESTART_SECONDS = 5.0  # before the first restart; doubles with every further failure
MAX_RESTART_SECONDS = 60.0
CLOSE_SECONDS = 3.0  # for a trainer to end by itself


@dataclass(frozen=True)
class TrainerStatus:
    """Current activity of the trainer. `failure`: why it stopped and what to do, for admins only."""

    text: str = ""
    failure: str | None = None

    def for_person(self, admin: bool) -> str:
        """Return one sentence for the question page."""
        if self.failure is None:
            return self.text
        action = "See Overview for the reason." if admin else "Please tell an admin."
        return f"The trainer has stopped, so there are no new questions. Your answers are saved. {action}"


class TrainerSupervisor:
    """Keeps a trainer process running while the pages are served."""

    def __init__(
        self, config: ProjectConfig, restart_seconds: float = RESTART_SECONDS, close_seconds: float = CLOSE_SECONDS
    ) -> None:
        self._config, self._restart_seconds, self._close_seconds = config, restart_seconds, close_seconds
        self._status = TrainerStatus("The trainer is starting.")
        self._closing = threading.Event()
        self.process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._supervise, name="trainer-supervisor", daemon=True)

    def start(self) -> TrainerSupervisor:
        self._thread.start()
        return self

    def status(self) -> TrainerStatus:
        return self._status

    def close(self) -> None:
        """Close the trainer's input, which ends it; kill it if it is in the middle of a round.

        A killed trainer loses nothing: all of its state is in the database.
        """
        self._closing.set()
        if (process := self.process) is not None:
            assert process.stdin is not None
            with suppress(BrokenPipeError):
                process.stdin.close()
            try:
                process.wait(self._close_seconds)
            except subprocess.TimeoutExpired:
                process.kill()
        self._thread.join(10)

    def _supervise(self) -> None:
        pause = self._restart_seconds
        while not self._closing.is_set():
            worked = self._run_once()
            pause = self._restart_seconds if worked else min(2 * pause, MAX_RESTART_SECONDS)
            self._closing.wait(pause)

    def _run_once(self) -> bool:
        """Run one trainer until it ends; return whether it has worked. Until then the last failure is shown."""
        self.process = process = _start(self._config)
        if self._closing.is_set():  # closed while this trainer was started
            process.kill()
        assert process.stdout is not None
        worked, reason = False, None
        for line in process.stdout:
            message = _parse_message(line)
            worked = worked or message.get("works") is True
            reason = message.get("failure", reason)
            self._status = TrainerStatus(str(message.get("text", "")), None if worked else self._status.failure)
        with suppress(BrokenPipeError), process:
            pass  # closes the pipes and waits
        if not self._closing.is_set():
            reason = reason or describe_exit(process.returncode)
            self._status = TrainerStatus("", f"{reason}\nThe trainer restarts automatically.")
        return worked


def _parse_message(line: bytes) -> dict[str, Any]:
    with suppress(ValueError):
        message = json.loads(line)
        if isinstance(message, dict):
            return message
    return {}


def describe_exit(code: int) -> str:
    """Return a likely reason for a process that ended without giving one."""
    if code == -signal.SIGKILL:
        return (
            "The trainer was killed, most likely because memory ran out. Free memory, or choose a smaller method: "
            "partly annotate --method partial-bce."
        )
    return f"The trainer ended with exit code {code}. The console of partly annotate shows more."


def _start(config: ProjectConfig) -> subprocess.Popen[bytes]:
    command, environment = module_command("partly.annotate.trainer")
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    assert process.stdin is not None
    with suppress(BrokenPipeError):  # the process has ended already
        # As input, not as an argument that every user of the machine can read: a URL may hold a password.
        process.stdin.write(json.dumps(asdict(config)).encode() + b"\n")
        process.stdin.flush()
    return process
