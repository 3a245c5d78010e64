"""Batch files: requests as JSON lines for a provider's batch interface, and its file of replies."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from partly.atomic_io import open_regular
from partly.errors import DataError
from partly.teachers.chat.client import OK
from partly.teachers.chat.replies import Replies
from partly.teachers.chat.send import MAX_REPLY_BYTES

URL = "/v1/chat/completions"
ID = re.compile(r"[0-9a-f]{64}")


@dataclass
class Collected:
    """Lines of a file by outcome: kept, failed at the provider, of unknown requests, or damaged."""

    kept: int = 0
    failed: int = 0
    foreign: int = 0
    damaged: int = 0


class BatchWriter:
    """Writes each request once, in the order of the calls."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.ids = file, dict[str, None]()

    def __call__(self, key: str, body: bytes) -> None:
        if key not in self.ids:
            self.ids[key] = None
            head = json.dumps({"custom_id": key, "method": "POST", "url": URL})[:-1]
            self.file.write(head.encode() + b', "body": ' + body + b"}\n")


def collect(path: Path, replies: Replies) -> Collected:
    """Keep the replies of a batch. Replies to requests that were not written here count as foreign."""
    collected = Collected()
    try:
        with open_regular(path) as file:
            while line := file.readline(2 * MAX_REPLY_BYTES):
                if line.strip():
                    _collect_line(line, replies, collected)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or error}). Give the file of replies.") from None
    return collected


def _collect_line(line: bytes, replies: Replies, collected: Collected) -> None:
    try:
        content: dict[str, Any] = json.loads(line)
        key, response = content["custom_id"], content.get("response") or {}
        if not isinstance(key, str) or not ID.fullmatch(key):
            raise ValueError("no id of a request")
        body, status = response.get("body"), response.get("status_code", OK)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        collected.damaged += 1
        return
    if not replies.find_unanswered([key]) and key not in replies.find([key]):
        collected.foreign += 1
    elif content.get("error") or status != OK or not isinstance(body, dict):
        collected.failed += 1
    else:
        replies.keep(key, OK, json.dumps(body)[:MAX_REPLY_BYTES])
        collected.kept += 1
