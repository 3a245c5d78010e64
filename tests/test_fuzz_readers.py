"""A short run of `fuzz_readers.py` on every format; `make attack` runs the long one."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

from fuzz_readers import mutate

SCRIPT = Path(__file__).with_name("fuzz_readers.py")


def test_mutated_files_are_read_or_refused() -> None:
    done = subprocess.run([sys.executable, SCRIPT, "--mutations", "1500"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " mutations, 0 failures" in done.stdout


def test_mutations_are_reproducible_and_change_the_file() -> None:
    content = bytes(range(200))
    mutated = [mutate(content, random.Random(f"0:x:{number}")) for number in range(50)]
    assert mutated == [mutate(content, random.Random(f"0:x:{number}")) for number in range(50)]
    assert sum(one != content for one in mutated) >= 45
