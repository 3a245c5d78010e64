"""`partly annotate` as a process of its own, on a free port."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import partly

STOP_SECONDS = 60
SOURCE = str(Path(partly.__file__).parents[1])


@dataclass
class Running:
    address: str  # http://127.0.0.1:PORT
    link: str  # the address that was printed
    process: subprocess.Popen[str]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def running(folder: Path, *words: str) -> Iterator[Running]:
    """Start the command in a folder, wait for its address, stop it with Ctrl-C in the end."""
    port = free_port()
    paths = os.pathsep.join(filter(None, (SOURCE, os.environ.get("PYTHONPATH", ""))))
    process = subprocess.Popen(
        [sys.executable, "-m", "partly", "annotate", *words, "--port", str(port)],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        link, said = "", []
        assert process.stderr is not None
        for line in process.stderr:
            said.append(line)
            if found := re.search(r"Open (\S+)", line):
                link = found[1]
                break
        assert link, "".join(said)
        yield Running(f"http://127.0.0.1:{port}", link, process)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=STOP_SECONDS)
        assert process.returncode in (0, 130)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()
