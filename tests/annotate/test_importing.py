"""Uploaded files are read by another process: whatever they do to it, the server stays."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from annotate.making import ORIGIN, Browser, browser, project
from partly.annotate import importing, upload
from partly.errors import DataError

LONG_NUMBER = b'[{"data": {"item": "item 1"}, "number": ' + b"9" * 5000 + b"}]"  # a known crash of a parser


def sent(one: Browser, content: bytes) -> Any:
    headers = {"origin": ORIGIN, "content-type": "application/json", "x-partly-page": one.page}
    return one.post("/api/import", content=content, headers=headers)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[" * 100_000, b"\xff\xfe", b"[1, 2]", b'{"no": "tasks"}', LONG_NUMBER],
    ids=["empty", "torn", "deep", "bytes", "numbers", "other", "long number"],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes) -> None:
    made = project(tmp_path)
    answer = sent(browser(made), content)
    assert answer.status_code == 422
    assert "/" not in answer.json()["error"]  # no path
    assert made.known() == {}


def replaced(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Another program in the place of the one that reads."""
    command = lambda _, *arguments: ([sys.executable, "-c", code, *arguments], None)  # noqa: E731
    monkeypatch.setattr(importing, "module_command", command)


@pytest.mark.parametrize("code", ["import os; os.kill(os.getpid(), 11)", "raise MemoryError"])
def test_a_process_that_dies_is_no_fault_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    replaced(monkeypatch, code)
    one = browser(project(tmp_path))
    answer = sent(one, b"[]")
    assert (answer.status_code, answer.json()["error"].partition(":")[0]) == (422, "The file cannot be read")
    assert one.get("/label").status_code == 200


def test_a_file_that_takes_too_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replaced(monkeypatch, "import time; time.sleep(600)")
    monkeypatch.setattr(importing, "READ_SECONDS", 0.5)
    answer = sent(browser(project(tmp_path)), b"[]")
    assert (answer.status_code, "takes more than" in answer.json()["error"]) == (422, True)


def test_the_process_has_limits(tmp_path: Path) -> None:
    """Of memory, processor time and output, which it sets itself before it reads."""
    source = (
        "import resource, sys\n"
        "from partly.annotate import upload\n"
        "upload.limit_resources()\n"
        "soft = {name: resource.getrlimit(getattr(resource, f'RLIMIT_{name}'))[0] for name in ('AS', 'CPU', 'FSIZE')}\n"
        "assert soft['CPU'] == upload.CPU_SECONDS and soft['FSIZE'] == upload.OUTPUT_BYTES\n"
        "try:\n"
        "    bytearray(upload.MEMORY_BYTES + (64 << 20))\n"
        "except MemoryError:\n"
        "    sys.exit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", source], check=False).returncode == 7


def test_what_a_file_says(tmp_path: Path) -> None:
    path = tmp_path / "tasks.json"
    chosen = [
        {"from_name": name, "to_name": "item", "type": "choices", "value": {"choices": [label]}}
        for name, label in (("yes", "cat"), ("no", "dog"))
    ]
    tasks = [{"data": {"item": "a"}, "annotations": [{"result": chosen}]}, {"data": {"item": "b"}, "annotations": []}]
    path.write_text(json.dumps(tasks))
    told = upload.read_statements(path)
    assert (told["items"], sorted(told["labels"])) == (["a", "b"], ["cat", "dog"])
    said = {told["labels"][column]: value for column, value in zip(told["column"], told["value"], strict=True)}
    assert (said, told["row"]) == ({"cat": 1, "dog": 0}, [0, 0])
    path.write_text("[]")
    with pytest.raises(DataError, match="not a list of Label Studio tasks"):
        upload.read_statements(path)
