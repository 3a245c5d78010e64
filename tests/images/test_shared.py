"""Memory that two processes see: what one writes the other reads, also after it has grown."""

from __future__ import annotations

import subprocess
import sys

from partly.images.shared import Shared


def test_what_another_process_writes_is_there() -> None:
    shared = Shared()
    shared.view(4)[:] = b"abcd"
    program = f"from partly.images.shared import Shared; Shared({shared.number}).view(10_000)[:] = b'x' * 10_000"
    subprocess.run([sys.executable, "-c", program], pass_fds=[shared.number], check=True)
    assert bytes(shared.view(4)) == b"xxxx"
    assert bytes(shared.view(10_000)) == b"x" * 10_000  # more than was mapped here


def test_nothing_needs_no_room() -> None:
    assert bytes(Shared().view(0)) == b""


def test_who_still_looks_may_go_on() -> None:
    shared = Shared()
    seen = shared.view(3)
    seen[:] = b"abc"
    shared.close()
    assert bytes(seen) == b"abc"
