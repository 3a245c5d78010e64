"""A hook of MkDocs: every notebook in docs/notebooks/ is run, and becomes a page of Markdown with what came out.

Written by hand, since mkdocs-jupyter neither checks nor rewrites links between pages, puts half a megabyte of styles
into each page and fetches MathJax from elsewhere; here a notebook is a page like any other. A cell that fails, fails
the build.
"""

from __future__ import annotations

import base64
import os
import re
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import nbformat
from mkdocs.structure.files import File, Files
from nbclient import NotebookClient

AT_ONCE = 2
SECONDS = 600  # for a cell, on a machine that is busy
SEEN = ("text/markdown", "image/png", "text/plain")  # of what a cell shows, the first that there is


def on_files(files: Files, config: Any) -> Files:
    """Put the pages and their pictures in the place of the notebooks."""
    found = [file for file in files if file.src_uri.endswith(".ipynb")]
    os.environ["OMP_NUM_THREADS"] = "1"  # of the kernels: two notebooks share the machine
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for file, made in zip(found, threads.map(lambda one: executed(Path(one.abs_src_path)), found), strict=True):
            files.remove(file)
            stem = file.src_uri.removesuffix(".ipynb")
            pictures: dict[str, bytes] = {}
            text = "\n\n".join(written(made, Path(stem).name, pictures))
            files.append(File.generated(config, f"{stem}.md", content=f"{text}\n"))
            for name, content in pictures.items():
                files.append(File.generated(config, f"{Path(stem).parent}/{name}", content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """A link to a notebook leads to its page."""
    return re.sub(r"(\]\([^)\s]*)\.ipynb\)", r"\1.md)", markdown)


def executed(path: Path) -> Any:
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        run = NotebookClient(notebook, timeout=SECONDS, startup_timeout=SECONDS, kernel_name="python3")
        run.resources, run.coalesce_streams = {"metadata": {"path": folder}}, True
        run.extra_arguments = ["--log-level=ERROR"]  # a kernel warns that it talks over this machine's own network
        run.execute()
    return notebook


def written(notebook: Any, stem: str, pictures: dict[str, bytes]) -> Iterator[str]:
    """The parts of the page. Pictures are put aside, by name."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            yield cell.source
            continue
        yield f"```python\n{cell.source}\n```"
        for output in cell.outputs:
            yield from _shown(output, stem, pictures)


def _shown(output: Any, stem: str, pictures: dict[str, bytes]) -> Iterator[str]:
    if output.output_type == "stream":
        if output.name == "stdout":
            yield _plain(output.text)
        return
    kind = next(kind for kind in SEEN if kind in output.data)
    if kind == "image/png":
        name = f"{stem}-{len(pictures) + 1}.png"
        pictures[name] = base64.b64decode(output.data[kind])
        yield f"![What the cell above draws]({name})"
    else:
        yield output.data[kind] if kind == "text/markdown" else _plain(output.data[kind])


def _plain(text: str) -> str:
    return "```text\n" + re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip("\n").replace("```", "'''") + "\n```"
