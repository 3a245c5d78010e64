"""The error that a request is answered with."""

from __future__ import annotations

from partly.errors import PartlyError


class ApiError(PartlyError):
    """Raised when a request is refused; `status` is the HTTP status of the answer."""

    def __init__(self, message: str, status: int = 403) -> None:
        super().__init__(message)
        self.status = status
