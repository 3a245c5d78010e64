"""One launcher for all tests of several processes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Launch = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="package")
def launch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launch]:
    """launch(count, job, ...): how each process ended and what it said of each job."""
    program = Path(__file__).with_name("launcher.py")
    command = [sys.executable, str(program), str(tmp_path_factory.mktemp("launches"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        asked, answers = process.stdin, process.stdout
        assert asked is not None
        assert answers is not None

        def ask(count: int, *jobs: dict[str, Any]) -> list[dict[str, Any]]:
            print(json.dumps({"count": count, "jobs": jobs}), file=asked, flush=True)
            answer = answers.readline()
            assert answer, "the launcher died; its own words are above"
            seen: list[dict[str, Any]] = json.loads(answer)
            return seen

        yield ask
        asked.close()
