"""Password hashing with scrypt.

Hashing takes 32 MB and about a tenth of a second, so requests hash in a pool of few threads (`limits.WorkerPool`).
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from partly.annotate.errors import ApiError

N, R, P = 1 << 15, 8, 3  # cost, block size and parallelism of scrypt: one of the settings that OWASP recommends
MIN_PASSWORD_LENGTH, MAX_PASSWORD_LENGTH = 10, 200
DUMMY_HASH = f"scrypt${N}${R}${P}${'00' * 16}${'00' * 32}"  # matches no password


def check_password(password: str) -> None:
    if not MIN_PASSWORD_LENGTH <= len(password) <= MAX_PASSWORD_LENGTH:
        raise ApiError(
            f"A password needs {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters. A sentence works well.", 422
        )


def hash_password(password: str) -> str:
    salt = secrets.token_bytes(16)
    return f"scrypt${N}${R}${P}${salt.hex()}${_scrypt(password, salt, N, R, P).hex()}"


def verify_password(password: str, stored: str) -> bool:
    _, n, r, p, salt, key = stored.split("$")
    return hmac.compare_digest(_scrypt(password, bytes.fromhex(salt), int(n), int(r), int(p)), bytes.fromhex(key))


def _scrypt(password: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, n=n, r=r, p=p, maxmem=256 * n * r, dklen=32)
