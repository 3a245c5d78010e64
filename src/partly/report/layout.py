"""The templates of the pages: HTML that escapes what it is given, and stands by itself."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

SCRIPT = (resources.files("partly.report") / "templates" / "page.js").read_text("utf-8")
DIGEST = f"sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}"


def template(name: str, **filters: Callable[..., Any]) -> jinja2.Template:
    """A page of the folder `templates`, with filters beside those of Jinja."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("partly.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"uri": uri, "bold": bold, **filters}
    # The pages let no other script run than this one, which holds nothing of the data.
    environment.globals |= {"script": Markup(SCRIPT), "script_digest": DIGEST}
    return environment.get_template(name)


def bold(words: str) -> Markup:
    """Words of which **some** are strong and `some` are code; everything else stays text."""
    strong = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", str(escape(words)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", strong))


def escaped(text: str) -> str:
    """Text that stays text in Markdown, also inside a table, and is no link where it is an address."""
    words = re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", " ".join(text.split()))
    return re.sub(r"(?i)(:)(?=//)|(?<=www)(\.)|(?<=[^\s])(@)(?=[^\s]+\.)", r"\\\1\2\3", words)


def uri(content: bytes, kind: str = "svg+xml") -> str:
    """A picture that needs no file of its own."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
