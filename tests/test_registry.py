"""What a method file says of itself, what its settings may be, and that dropping one in a folder is all it takes."""

from __future__ import annotations

import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

import partly
from partly import losses, methods, registry
from partly.errors import SettingError
from partly.items import as_items
from partly.method import LossMethod, Method, Task
from plans import task_of

TASK = task_of(as_items(torch.randn(4, 3)), labels=2, head="linear")
WORDS = """A line
over two lines.

Paper: A. Author. Title.
Somewhere 2020.

Differs: nothing.

Paper: B. Author. Second title.
"""


def module(name: str = "partly.methods.some_method", doc: str | None = WORDS, **contents: Any) -> types.ModuleType:
    made = types.ModuleType(name, doc)
    made.__file__ = f"{name}.py"
    for key, value in contents.items():
        setattr(made, key, value)
        if isinstance(value, type) and value.__module__ == __name__:
            value.__module__ = name  # as if the file had defined it
    return made


def loss(
    logits: Tensor,
    z: Tensor,
    *,
    rate: float = 0.5,
    count: int = 3,
    fast: bool = False,
    name: str | None = None,
    kind: Literal["hard", "soft"] = "soft",
) -> Tensor:
    return rate * losses.bce(logits, z)


class Some(Method):
    def __init__(self, task: Task, *, rate: float = 0.5) -> None:
        super().__init__(task)
        self.rate = rate


# -------------------------------------------------------------------- reading a file


def test_words_of_a_file() -> None:
    info = methods.read(module(loss=loss))
    assert (info.what, info.name) == ("method", "some-method")
    assert info.summary == "A line over two lines."
    assert info.citation == "A. Author. Title. Somewhere 2020. B. Author. Second title."
    assert info.words()["settings"] == {"rate": 0.5, "count": 3, "fast": False, "name": None, "kind": "soft"}


def test_a_file_without_words() -> None:
    info = methods.read(module(doc=None, loss=loss))
    assert (info.summary, info.citation) == ("", "")


def test_a_loss_becomes_a_method() -> None:
    info = methods.read(module(loss=loss))
    method = info.build(TASK, info.complete({"rate": 2}))
    assert info.kind is type(method) is LossMethod
    assert method.settings == {"rate": 2, "count": 3, "fast": False, "name": None, "kind": "soft"}
    assert method.loss is loss


def test_a_class_is_a_method() -> None:
    info = methods.read(module(Some=Some, Method=LossMethod))
    assert info.kind is type(info.build(TASK, info.complete({}))) is Some
    assert info.build(TASK, info.complete({})).rate == 0.5
    assert info.build(TASK, info.complete({"rate": 0.1})).rate == 0.1


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        ({}, "0 subclasses and no loss"),
        ({"loss": loss, "Some": Some}, "1 subclasses and a loss"),
        ({"Some": Some, "Other": type("Other", (Method,), {})}, "2 subclasses and no loss"),
    ],
)
def test_a_file_is_one_method(contents: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=f"some_method.py: a method file defines either .*{said}"):
        methods.read(module(**contents))


# -------------------------------------------------------------------- settings


@pytest.mark.parametrize(
    "settings",
    [{"rate": 1}, {"rate": -0.5}, {"count": 0}, {"fast": True}, {"name": None}, {"name": "x"}, {"kind": "hard"}, {}],
)
def test_settings_that_fit(settings: dict[str, Any]) -> None:
    """They stay as they are, and the defaults of all others come with them."""
    defaults = {"rate": 0.5, "count": 3, "fast": False, "name": None, "kind": "soft"}
    assert methods.read(module(loss=loss)).complete(settings) == defaults | settings


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"rate": "0.5"}, r"setting rate = '0.5' should be of type float"),
        ({"rate": True}, r"setting rate = True should be of type float"),
        ({"rate": float("nan")}, r"setting rate = nan should be of type float"),
        ({"rate": float("inf")}, r"setting rate = inf should be of type float"),
        ({"rate": None}, r"setting rate = None should be of type float"),
        ({"count": 3.0}, r"setting count = 3.0 should be of type int"),
        ({"count": False}, r"setting count = False should be of type int"),
        ({"fast": 1}, r"setting fast = 1 should be of type bool"),
        ({"name": 3}, r"setting name = 3 should be of type str \| None"),
        ({"kind": "firm"}, r"setting kind = 'firm' should be one of 'hard', 'soft'"),
        ({"rat": 1.0}, r"The method some-method has no setting 'rat'\. Did you mean 'rate'\?"),
        ({"logits": 1.0}, r"some-method has no setting 'logits'\. Available: rate, count, fast, name, kind"),
    ],
)
def test_settings_that_do_not_fit(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        methods.read(module(loss=loss)).complete(settings)


def test_files_of_another_kind() -> None:
    """What a file makes, and what that is called, is up to the folder; a file that makes nothing is none of them."""

    def maker(file: types.ModuleType) -> Any:
        return getattr(file, "loss", None)

    (info,) = registry.read(module(loss=loss), "query", maker, registry.Info).values()
    assert type(info) is registry.Info
    assert (info.what, info.make) == ("query", loss)
    with pytest.raises(SettingError, match="The query some-method has no setting 'rat'"):
        info.complete({"rat": 1.0})
    assert registry.read(module(), "query", maker, registry.Info) == {}


def test_a_file_may_provide_several_plugins() -> None:
    """Each has the name, the docstring and the description of its own; the rest of the file's docstring is shared."""

    def first(*, size: int = 1) -> None:
        """The first."""

    def second() -> None:
        """The second."""

    doc = "Two of a kind.\n\nReference\n    A. Author. Title.\n    Journal.\n\nDefaults\n    None."
    about = {"a-1": registry.About(takes_maps=True)}
    file = module(doc=doc, PROVIDES={"a-1": first, "a-2": second}, ABOUT=about)
    found = registry.read(file, "head", lambda there: there.PROVIDES, registry.Info)
    assert {name: info.summary for name, info in found.items()} == {"a-1": "The first.", "a-2": "The second."}
    assert {info.citation for info in found.values()} == {"A. Author. Title. Journal."}
    assert [info.about.takes_maps for info in found.values()] == [True, False]
    assert (found["a-1"].defaults(), found["a-2"].make) == ({"size": 1}, second)


# -------------------------------------------------------------------- the folder


def test_every_file_of_the_folder_is_a_method() -> None:
    files = {path.stem for path in (Path(partly.__file__).parent / "methods").glob("*.py")} - {"__init__"}
    assert {"bce", "assume_negative", "partial_bce"} <= files
    assert files == {info.module.__name__.rpartition(".")[2] for info in methods.discover().values()}


def test_methods_can_be_called_before_and_after_the_package_is_imported() -> None:
    import partly.methods

    assert partly.methods() == methods.methods()
    assert partly.methods()["bce"] == methods.find("bce").words()
    assert partly.methods()["partial-bce"]["settings"]["p0"] == 0.1


def test_an_unknown_method_is_refused_with_the_nearest() -> None:
    with pytest.raises(SettingError, match=r"There is no method 'BCE2'\. Did you mean 'bce'\?"):
        methods.find("BCE2")


def test_a_method_is_found_by_its_other_names() -> None:
    for name in ("logistic", "masked-bce"):
        assert methods.find(name) is methods.find("bce")
        assert name not in methods.discover()  # listed once
        assert name in methods.methods()["bce"]["summary"]
    with pytest.raises(SettingError, match=r"Did you mean 'masked-bce'\?"):
        methods.find("masked_bce")


DROPPED = '''"""A method that was dropped into a folder.

Paper: none.

Known no: an ordinary negative.

Differs: nothing.
"""

from torch import Tensor

from partly.losses import bce


def loss(logits: Tensor, z: Tensor, *, weight: float = 1.5) -> Tensor:
    return weight * bce(logits, z)
'''
USE = """
import partly, runpy, sys
words = partly.methods()["dropped-in"]
assert words["summary"] == "A method that was dropped into a folder.", words
assert words["settings"] == {"weight": 1.5}, words
sys.argv = ["partly", "methods"]
runpy.run_module("partly", run_name="__main__")
"""


def test_a_file_dropped_into_a_folder_is_a_method_everywhere(tmp_path: Path) -> None:
    (tmp_path / "dropped_in.py").write_text(DROPPED)
    tests = Path(__file__).parent
    conformance = str(tests / "conformance" / "test_conformance.py")
    commands = [["-c", USE], ["-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", conformance]]
    children = [
        subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, "PARTLY_METHODS": str(tmp_path)},
            cwd=tests.parent,
            stdout=subprocess.PIPE,
            text=True,
        )
        for command in commands
    ]
    command_line, collected = (child.communicate()[0] for child in children)
    assert [child.returncode for child in children] == [0, 0]
    assert command_line.count("dropped-in\n") == 1
    assert "bce\n" in command_line
    assert "test_method[dropped-in-check_resume_same_bits]" in collected
    assert "test_method[bce-check_resume_same_bits]" in collected


def test_the_folder_is_as_it_was() -> None:
    assert "dropped-in" not in partly.methods()


def test_folders_are_looked_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that is added to them is looked at."""
    methods.discover()
    with monkeypatch.context() as patch:
        patch.setattr("pkgutil.iter_modules", None)
        assert methods.find("bce").name == "bce"
    (tmp_path / "dropped_in.py").write_text("def loss(logits, z):\n    return logits\n")
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    assert methods.find("dropped-in").name == "dropped-in"
    monkeypatch.delitem(sys.modules, "partly.methods.dropped_in")


# -------------------------------------------------------------------- files from outside of the package


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as PARTLY_METHODS names it, for this process."""
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    monkeypatch.setattr(registry, "_BROKEN", {})
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


GOOD = "def loss(logits, z):\n    return logits\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "def loss(logits, z:\n    return 1\n",
            r"{}:1: cannot be used as a method\. SyntaxError: '\(' was never closed",
        ),
        ("x = 1\nimport no_such_module\n", r"{}:2: cannot be used as a method\. ModuleNotFoundError: No module named"),
        ("def f():\n    return 1 / 0\n\nf()\n", r"{}:2: cannot be used as a method\. ZeroDivisionError"),
        ("raise SystemExit(3)\n", r"{}:1: cannot be used as a method\. SystemExit: 3"),
        ("x = 1\n", r"{}: a method file defines either one function"),
    ],
)
def test_a_broken_file_is_named_and_the_others_work(outside: Path, text: str, words: str) -> None:
    (outside / "broken_one.py").write_text(text)
    (outside / "good_one.py").write_text(GOOD)
    words = words.format(outside / "broken_one.py")
    with pytest.warns(UserWarning, match=words):
        found = methods.discover()
    assert {"bce", "good-one"} <= set(found)
    assert "broken-one" not in found
    assert methods.find("bce").name == "bce"  # without another warning
    with pytest.raises(SettingError, match=words):
        methods.find("broken-one")


def test_files_with_a_leading_underscore_are_no_methods(outside: Path) -> None:
    (outside / "_helper.py").write_text("FACTOR = 2\n")
    assert not {"-helper", "_helper"} & set(methods.discover())


def test_the_digest_of_a_method_from_outside_follows_its_source_and_what_it_imports(outside: Path) -> None:
    def digest(factor: int) -> str:
        (outside / "_helper.py").write_text(f"def factor():\n    return {factor}\n")
        lines = [
            "from partly.methods._helper import factor",
            "def loss(logits, z):",
            "    return factor() * logits",
            "",
        ]
        (outside / "mine.py").write_text("\n".join(lines))
        for name in ("mine", "_helper"):
            sys.modules.pop(f"partly.methods.{name}", None)
        return methods.find("mine").source_sha256

    first = digest(2)
    assert len(first) == 64
    assert digest(2) == first
    assert digest(3) != first  # only the file that it imports has changed
    assert digest(2) == first


def test_methods_of_the_package_have_no_digest() -> None:
    assert {info.source_sha256 for info in methods.discover().values()} == {""}


def test_constants_of_an_earlier_version_are_read_with_a_warning() -> None:
    terms = losses.terms.bce
    former = module("outside", loss=loss, SEARCH={"rate": (0.1, 1.0)}, ALSO=("other",), terms=terms)
    with pytest.warns(
        DeprecationWarning, match=r"outside\.py: SEARCH, ALSO, terms: set ABOUT = About\(search=\.\.\., "
    ):
        about = methods.read(former).about
    assert about == registry.About(search={"rate": (0.1, 1.0)}, aliases=("other",), terms=terms)


def test_a_description_is_typed() -> None:
    described = registry.About(aliases=("other",))
    assert methods.read(module("described", loss=loss, ABOUT=described)).about is described
    with pytest.raises(
        SettingError, match=r"strange\.py: ABOUT is \{'search': 1\}; it should be partly\.registry\.About"
    ):
        methods.read(module("strange", loss=loss, ABOUT={"search": 1}))
