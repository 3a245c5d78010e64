"""`partly annotate`: pages where people answer the questions that help most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from partly.errors import SettingError
from partly.ledger import without_password


def annotate(plan: dict[str, Any], served: dict[str, Any], say: Callable[[str], None]) -> None:
    """Serve the pages until somebody stops them."""
    without_password(plan["ledger"])
    try:
        from partly.annotate.project import ProjectConfig
        from partly.annotate.server import ServerConfig, serve
    except ImportError as error:
        raise SettingError(f"The pages need {error.name}: pip install 'partly[annotate]'.") from error
    serve(ProjectConfig(**plan), ServerConfig(**served), say)
