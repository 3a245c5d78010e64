"""Passwords: what is stored of them, and how one is recognized.

`hashed` and `matches` take 32 MB and a tenth of a second each: requests call them in a pool of few threads (`limits`).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from partly.errors import PartlyError

N, R, P = 1 << 15, 8, 3  # of scrypt: 32 MB and about a tenth of a second, one of OWASP's equal choices
LEAST, MOST = 10, 200  # letters of a password


class Refused(PartlyError):
    """Somebody may not come in, or not do this. status: of HTTP."""

    def __init__(self, message: str, status: int = 403) -> None:
        super().__init__(message)
        self.status = status


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
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=32)


NOBODY = f"scrypt${N}${R}${P}${'00' * 16}${'00' * 32}"  # no password is this one
