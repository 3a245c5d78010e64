"""Passwords: what is kept of them, how one is recognised, and how often one may try."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from partly.errors import PartlyError

N, R, P = 1 << 15, 8, 3  # of scrypt: 32 MB and about a tenth of a second, one of OWASP's equal choices
AT_ONCE = threading.BoundedSemaphore(2)  # passwords looked at: many at once would take the memory
LEAST, MOST = 10, 200  # letters of a password
WINDOW = 900.0  # seconds for which tries count
TRIES_BY_NAME, TRIES_BY_ADDRESS = 10, 50
MOST_COUNTED = 10_000  # names and addresses that are remembered


class Refused(PartlyError):
    """Somebody may not come in, or not do this. status: of HTTP."""

    def __init__(self, message: str, status: int = 403) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class Tries:
    """Tries to log in, by name and by address. In memory: who guesses cannot start the program anew, and who can need
    not guess."""

    now: Callable[[], float] = time.time
    _times: OrderedDict[str, deque[float]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def count(self, key: str, most: int) -> None:
        """One try more. Counted before it is looked at, so that many at once are no way around."""
        with self._lock:
            times = self._times.setdefault(key, deque())
            self._times.move_to_end(key)
            while len(self._times) > MOST_COUNTED:
                self._times.popitem(last=False)
            while times and times[0] < self.now() - WINDOW:
                times.popleft()
            if len(times) >= most:
                raise Refused("Too many tries. Wait a quarter of an hour.", 429)
            times.append(self.now())

    def forget(self, key: str) -> None:
        with self._lock:
            self._times.pop(key, None)


def check_password(password: str) -> None:
    if not LEAST <= len(password) <= MOST:
        raise Refused(f"A password has {LEAST} to {MOST} letters; a sentence is easy to keep.", 422)


def hashed(password: str) -> str:
    salt = secrets.token_bytes(16)
    return f"scrypt${N}${R}${P}${salt.hex()}${_scrypt(password, salt, N, R, P).hex()}"


def matches(password: str, secret: str) -> bool:
    _, n, r, p, salt, key = secret.split("$")
    found = _scrypt(password, bytes.fromhex(salt), int(n), int(r), int(p))
    return hmac.compare_digest(found, bytes.fromhex(key))


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    with AT_ONCE:
        return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=32)


NOBODY = f"scrypt${N}${R}${P}${'00' * 16}${'00' * 32}"  # no password is this one
