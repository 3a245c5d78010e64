"""`partly vocabulary`: change the labels of a ledger, keeping all statements about them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from partly.cli.app import command, group
from partly.cli.ledger import At, Author, Place, open_ledger, split_names, user_name
from partly.cli.options import Json, option
from partly.cli.printing import print_json, say
from partly.errors import SettingError

if TYPE_CHECKING:
    from partly.ledger import Ledger

MAX_LABELS_SHOWN = 20

vocabulary = group("vocabulary", "Annotation", "Change the labels of a ledger, keeping its history.")

Names = Annotated[str, typer.Argument(help="Label names, separated by commas.", metavar="A,B,...")]
Label = Annotated[str, typer.Argument(help="Name of a label.")]


@command(to=vocabulary, name="list")
def list_(place: Place, at: At = None, as_json: Json = False) -> None:
    """List the labels with their parents, and why some are hidden."""
    labels = open_ledger(place).vocabulary(at).labels
    rows = [
        {
            "label": label.name,
            "parent": None if label.parent is None else labels[label.parent].name,
            "hidden": label.hidden,
            "was_called": list(label.called[:-1]),
        }
        for label in labels.values()
    ]
    if not print_json(rows, as_json):
        for row in rows:
            parent = f"  (child of {row['parent']})" if row["parent"] else ""
            hidden = f"  [{str(row['hidden']).removeprefix('was ')}]" if row["hidden"] else ""
            print(f"{row['label']}{parent}{hidden}")


@command(to=vocabulary)
def add(
    place: Place,
    names: Names,
    parent: Annotated[str | None, option("Label that is their parent.")] = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Add labels, unknown for every item."""
    ledger = open_ledger(place)
    _report(ledger, ledger.add(split_names(names), parent=parent, author=user_name(author)), as_json)


@command(to=vocabulary)
def split(
    place: Place,
    label: Label,
    into: Annotated[list[str], typer.Argument(help="New labels: into A,B,...", metavar="into A,B,...")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Split a label: `split LEDGER Animal into Cat,Dog`.

    The new labels are no where the old label is no, and unknown elsewhere.
    """
    ledger, parts = open_ledger(place), split_names(_name_after("into", into))
    _report(ledger, ledger.split(label, parts, author=user_name(author)), as_json)


@command(to=vocabulary)
def merge(
    place: Place,
    names: Names,
    into: Annotated[list[str], typer.Argument(help="Name of the merged label: as NAME.", metavar="as NAME")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Merge labels: `merge LEDGER Car,Auto as Car`.

    An item has the merged label if it has any of them, and lacks it if it lacks all of them.
    """
    ledger, name = open_ledger(place), _name_after("as", into)
    _report(ledger, ledger.merge(split_names(names), name, author=user_name(author)), as_json)


@command(to=vocabulary)
def rename(
    place: Place,
    label: Label,
    name: Annotated[list[str], typer.Argument(help="New name: to NAME.", metavar="to NAME")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Rename a label: `rename LEDGER Auto to Car`."""
    ledger = open_ledger(place)
    _report(ledger, ledger.rename(label, _name_after("to", name), author=user_name(author)), as_json)


@command(to=vocabulary)
def retire(place: Place, names: Names, author: Author = None, as_json: Json = False) -> None:
    """Hide labels; their history stays in the ledger."""
    ledger = open_ledger(place)
    _report(ledger, ledger.retire(split_names(names), author=user_name(author)), as_json)


def _report(ledger: Ledger, number: int, as_json: bool) -> None:
    """Print the batch of a change and the labels after it."""
    names = ledger.vocabulary().names
    more = ", ..." if len(names) > MAX_LABELS_SHOWN else ""
    say(f"Added batch {number}. {len(names)} labels: {', '.join(names[:MAX_LABELS_SHOWN])}{more}")
    print_json({"batch": number, "labels": list(names)}, as_json)


def _name_after(preposition: str, words: Sequence[str]) -> str:
    """Return the single name that follows an optional preposition, as in `rename LEDGER Auto to Car`."""
    rest = list(words[1:] if words[:1] == [preposition] else words)
    if len(rest) != 1:
        raise SettingError(f"Give one name after {preposition!r} (quote it if it has spaces); got {list(words)}.")
    return rest[0]
