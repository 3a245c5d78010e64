"""Processes that decode: answers in order, the same however many there are, and what happens when one dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from images.making import HOSTILE, folder_of, some_pictures
from partly.errors import SettingError
from partly.images import decoder_pool as module
from partly.images.decoder_pool import DecoderPool, Worker, WorkerDied, get_pool
from partly.images.shared import Shared
from partly.images.worker import answer_request, command


def requests(folder: Path) -> list[dict[str, object]]:
    names = sorted(path.name for path in folder.iterdir())
    show = {"do": "render", "size": 16, "draw": [0, 0], "augmentation": {}}
    return [show | {"places": [[str(folder / name)]], "names": [name]} for name in names]


def watched(monkeypatch: pytest.MonkeyPatch) -> list[Worker]:
    """The workers that are started from now on."""
    started: list[Worker] = []
    monkeypatch.setattr(module, "Worker", lambda: started.append(Worker()) or started[-1])
    return started


@pytest.mark.parametrize("count", [0, 1, 3])
def test_answers_come_in_order_however_many_answer(tmp_path: Path, count: int) -> None:
    asked = requests(some_pictures(tmp_path, 9))
    expected = [answer_request(request)[1] for request in asked]
    assert len(set(expected)) == 9
    for ahead in (0, 2, 100):
        found = [future.result() for future in DecoderPool(count).map_ordered(asked, ahead)]
        assert [pixels for _, pixels in found] == expected


def test_who_stops_listening_leaves_nothing_behind(tmp_path: Path) -> None:
    many = DecoderPool(1)
    answers = many.map_ordered(requests(some_pictures(tmp_path, 9)) * 20, 100)
    assert next(answers).result()[1]
    answers.close()
    assert next(many.map_ordered(requests(tmp_path), 0)).result()[1]  # at once, not after all that was asked before


def test_a_process_that_dies_is_told_of_and_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = watched(monkeypatch)
    one, asked = DecoderPool(1), requests(some_pictures(tmp_path, 2))
    before = one.submit(asked[0]).result()
    os.kill(started[0].process.pid, signal.SIGKILL)
    started[0].process.wait()
    with pytest.raises(WorkerDied, match="status -9"):
        one.submit(asked[0]).result()
    assert one.submit(asked[0]).result() == before
    assert len(started) == 2


def test_ctrl_c_is_for_who_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = watched(monkeypatch)
    one, asked = DecoderPool(1), requests(some_pictures(tmp_path, 2))
    one.submit(asked[0]).result()
    started[0].process.send_signal(signal.SIGINT)
    assert one.submit(asked[1]).result()[1]
    assert len(started) == 1


def test_no_process_outlives_who_asks(tmp_path: Path) -> None:
    some_pictures(tmp_path, 2)
    program = f"""
import os
from pathlib import Path
from partly.images import decoder_pool as crew
start, started = crew.Worker, []
crew.Worker = lambda: started.append(start()) or started[-1]
one = crew.DecoderPool(1)
one.submit({{"do": "inspect", "places": [[{str(tmp_path / "p0.png")!r}]]}}).result()
print(started[0].process.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    pid = int(done.stdout)
    for _ in range(1200):  # two minutes: the machine may be busy
        if not _alive(pid):
            return
        time.sleep(0.1)
    pytest.fail("The worker is still there.")


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_a_bomb_costs_no_memory(tmp_path: Path) -> None:
    """Neither the process that decodes nor the one that asks makes room for what is declared (in the worst case 17
    GB)."""
    bombs = [name for name in HOSTILE if name.startswith(("bomb", "large", "words"))]
    places = [[str(folder_of(tmp_path, {name: HOSTILE[name] for name in bombs}) / name)] for name in bombs]
    worker, before = Worker(), _megabytes("self", "VmRSS")
    try:
        looks = worker.answer({"do": "inspect", "places": places})[0]["infos"]
        assert all(look["reason"] for look in looks)
        for place in places:
            assert "bad" in worker.answer({"do": "render", "size": 224, "draw": None, "places": [place]})[0]
        assert _megabytes(str(worker.process.pid), "VmHWM") < 150
        assert _megabytes("self", "VmRSS") < before + 50
    finally:
        worker.end()


def _megabytes(pid: str, what: str) -> float:
    lines = Path("/proc", pid, "status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(what)).split()[1]) / 1024


def test_a_worker_loads_no_torch_and_has_a_limit() -> None:
    words, environment = command(Shared())
    program = "import sys, partly.images.worker; sys.exit('torch' in sys.modules)"
    assert subprocess.run([*words[:2], "-c", program], env=environment).returncode == 0


def test_how_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARTLY_WORKERS", "3")
    assert get_pool().count == 3
    assert get_pool() is get_pool()
    monkeypatch.setenv("PARTLY_WORKERS", "many")
    with pytest.raises(SettingError, match="PARTLY_WORKERS='many'"):
        get_pool()
    monkeypatch.delenv("PARTLY_WORKERS")
    assert 1 <= get_pool().count <= module.MAX_WORKERS
