"""Templates of the HTML pages, which are self-contained and escape all data."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Callable
from importlib import resources
from typing import Any

import jinja2
from markupsafe import Markup, escape

SCRIPT = (resources.files("partly.report") / "templates" / "page.js").read_text("utf-8")
DIGEST = f"sha256-{base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()}"


LATEX = {
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # at the beginning of a row it would be an option of the line break
    "]": "{]}",
    "±": r"$\pm$",
    "≈": r"$\approx$",
}


def format_score(value: float) -> str:
    """Format with three digits; NaN is 'undefined'."""
    return "undefined" if math.isnan(value) else f"{value:.3f}"


def load_template(name: str, **filters: Callable[..., Any]) -> jinja2.Template:
    """Load a page from the folder `templates`, with filters in addition to those of Jinja."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("partly.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"uri": data_uri, "inline": format_inline, "number": format_score, **filters}
    # The pages allow no other script than this one, which contains no data.
    environment.globals |= {"script": Markup(SCRIPT), "script_digest": DIGEST}
    return environment.get_template(name)


def format_inline(text: str) -> Markup:
    """Turn **bold** and `code` into HTML, and escape everything else."""
    bold = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", str(escape(text)))
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", bold))


def escape_markdown(text: str) -> str:
    """Escape text for Markdown, also inside a table, and keep addresses from becoming links."""
    escaped = re.sub(r"([\\`*_{}\[\]<>#|~&$])", r"\\\1", " ".join(text.split()))
    return re.sub(r"(?i)(:)(?=//)|(?<=www)(\.)|(?<=[^\s])(@)(?=[^\s]+\.)", r"\\\1\2\3", escaped)


def escape_latex(text: str) -> str:
    """Escape text for LaTeX, in one line."""
    return "".join(LATEX.get(sign, sign) for sign in " ".join(text.split()))


def data_uri(content: bytes, kind: str = "svg+xml") -> str:
    """Return an image as a data URI."""
    return f"data:image/{kind};base64,{base64.b64encode(content).decode()}"
