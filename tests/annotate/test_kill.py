"""The pages are killed while somebody answers: what was acknowledged is in the ledger, once. `killing.py` does it for
as long as asked."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_killed_in_the_middle_of_answers() -> None:
    words = [sys.executable, str(Path(__file__).with_name("killing.py")), "--answers", "20", "--seed", "1"]
    found = json.loads(subprocess.run(words, capture_output=True, text=True, timeout=600, check=True).stdout)
    assert found["kills"] >= 2
    assert (found["acknowledged"], found["statements"], found["lost"], found["twice"]) == (20, 20, 0, 0)
