"""Every public name has a docstring in the style of NumPy, with an example that runs and says what is printed."""

from __future__ import annotations

import doctest
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from public.names import NAMES, found, members

MEMBERS = [
    pytest.param(what, id=f"{name}.{member}")
    for name in NAMES
    if isinstance(found(name), type)
    for member, what in members(found(name))
]
UNDERSTOOD = {"shape", "known", "positive", "negative", "sparse"}  # say by their names what they are
SKIPPED = {"compare", "export.to_onnx"}  # take long; tests/comparison and docs/export.md run such


@pytest.mark.parametrize("name", NAMES)
def test_it_has_sections_and_parameters(name: str) -> None:
    thing = inspect.unwrap(found(name))
    text = inspect.getdoc(thing) or ""
    assert re.search(r"^Examples\n--------\n>>> ", text, re.M), f"partly.{name} has no example"
    if isinstance(thing, type) and (issubclass(thing, Exception) or thing.__init__ is object.__init__):
        return
    if inspect.ismodule(thing) or (name == "Labels"):  # which has constructors of its own
        return
    told = re.findall(r"^([\w*][\w*, ]*?)(?: :.*)?\n {4}\S", section(text, "Parameters"), re.M)
    told = [one.strip(" *") for line in told for one in line.split(",")]
    wanted = [one for one in inspect.signature(thing).parameters if one != "self"]
    assert sorted(told) == sorted(wanted), f"partly.{name}: parameters {told}, in the signature {wanted}"


def section(text: str, title: str) -> str:
    found = re.search(rf"^{title}\n-+\n(.*?)(?=^\w+\n-{{3,}}\n|\Z)", text, re.M | re.S)
    return found[1] if found else ""


@pytest.mark.parametrize("thing", MEMBERS)
def test_its_members_say_what_they_are(thing: Any) -> None:
    name = getattr(thing, "__name__", None) or thing.fget.__name__
    assert inspect.getdoc(thing) or name in UNDERSTOOD


@pytest.mark.parametrize("name", [*NAMES, *(f"Labels.from_{kind}" for kind in ("nan", "ternary", "full", "entries"))])
def test_its_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder(recurse=False).find(inspect.unwrap(found(name)), name, module=False, globs={})
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(said)
    assert name in SKIPPED or any(example.want for example in test.examples)
