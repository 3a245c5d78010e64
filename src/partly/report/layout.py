"""The templates of the pages: HTML that escapes what it is given, and stands by itself."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import jinja2


def template(name: str, **filters: Callable[..., Any]) -> jinja2.Template:
    """A page of the folder `templates`, with filters beside those of Jinja."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("partly.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"uri": uri, **filters}
    return environment.get_template(name)


def uri(content: bytes, kind: str = "svg+xml") -> str:
    """A picture that needs no file of its own."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
