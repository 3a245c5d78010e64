"""`partly ledger ...` and `partly vocabulary ...`: parse, call, print. What they do is in `commands.ledger`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from partly.cli.options import Absent, HierarchyFile, IdColumn, Json, LabelColumns, Missing, TagSeparator, Uncertain
from partly.cli.printing import print_json, say

ledger = typer.Typer(help="A record of who said what about which entry, that forgets nothing.", no_args_is_help=True)
vocabulary = typer.Typer(help="Change the labels of a ledger; all that was said stays.", no_args_is_help=True)

Place = Annotated[str, typer.Argument(help="A file, or postgresql://user@host/database.", metavar="LEDGER")]
Author = Annotated[str | None, typer.Option(help="Who says so; the name of the user, if not given.")]
At = Annotated[str | None, typer.Option("--at", help="As after this batch, or at this time: 12, 2026-03-01T12:00.")]
Policy = Annotated[str, typer.Option(help="Among people: latest or majority.")]
Models = Annotated[bool, typer.Option("--models", help="With what models said, where nobody else spoke.")]
Names = Annotated[str, typer.Argument(help="Names, with commas.", metavar="A,B,...")]


@ledger.command()
def init(
    place: Place,
    labels: Annotated[str, typer.Option(help="Names of labels, with commas; an import can bring them too.")] = "",
    hierarchy: HierarchyFile = None,
    statements: Annotated[
        Path | None, typer.Option(help="Instead: all of another ledger, as `export --statements` wrote it.")
    ] = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Make a new ledger."""
    from partly.cli import ledger as job

    print_json(job.init(place, labels, hierarchy, statements, author, say), as_json)


@ledger.command("import")
def import_(
    place: Place,
    source: Annotated[str, typer.Argument(help="Labels in any format, answers to questions, or another ledger.")],
    person: Annotated[str | None, typer.Option(help="A person who said all of it; else it is an import.")] = None,
    model: Annotated[str | None, typer.Option(help="The run of a model that said all of it.")] = None,
    rule: Annotated[str | None, typer.Option(help="The name of a rule that said all of it.")] = None,
    mapping: Annotated[
        str, typer.Option("--map", help="Its labels as they are called here: kitty=Cat,puppy=Dog. Several may be one.")
    ] = "",
    add_labels: Annotated[bool, typer.Option("--add-labels", help="Add labels that are not in the ledger.")] = False,
    absent: Absent = None,
    uncertain: Uncertain = None,
    missing: Missing = None,
    label_columns: LabelColumns = None,
    id_column: IdColumn = None,
    tag_separator: TagSeparator = None,
    note: Annotated[str, typer.Option(help="A word about it, for the log.")] = "",
    key: Annotated[str | None, typer.Option(help="A name for this import: the same again imports nothing.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Append it even if the same was imported before.")] = False,
    as_json: Json = False,
) -> None:
    """Append labels, answers or another ledger."""
    from partly.cli import ledger as job
    from partly.data.label_semantics import LabelSemantics

    who = {"person": person, "model": model, "rule": rule}
    said = job.take(
        place,
        source,
        who,
        mapping,
        add_labels,
        LabelSemantics.from_options(absent, uncertain, missing, label_columns, id_column, tag_separator),
        note,
        key,
        say,
        force,
    )
    print_json(said, as_json)


@ledger.command()
def export(
    place: Place,
    target: Annotated[Path, typer.Argument(help="A file of labels in any format; with --statements a .parquet.")],
    statements: Annotated[bool, typer.Option("--statements", help="All that was ever said, and not its fold.")] = False,
    form: Annotated[str | None, typer.Option(help="The format to write, where the ending says too little.")] = None,
    at: At = None,
    policy: Policy = "latest",
    models: Models = False,
    absent: Absent = None,
    as_json: Json = False,
) -> None:
    """Write what is known by now, or everything that was ever said."""
    from partly.cli import ledger as job

    print_json(job.export(place, target, statements, form, at, policy, models, absent, say), as_json)


@ledger.command()
def log(place: Place, at: At = None, as_json: Json = False) -> None:
    """List every batch: who said how much when, and what was taken back."""
    from partly.cli import ledger as job

    found = job.log(place, at)
    if not print_json(found, as_json):
        print("\n".join(map(job.line, found)))


@ledger.command()
def show(
    place: Place,
    item: Annotated[str, typer.Argument(help="The id of an item.")],
    at: At = None,
    policy: Policy = "latest",
    as_json: Json = False,
) -> None:
    """Show all that was ever said of an item, and what follows."""
    from partly.cli import ledger as job

    found = job.show(place, item, at, policy)
    if not print_json(found, as_json):
        print(job.page(found))


@ledger.command()
def diff(
    place: Place,
    before: Annotated[str, typer.Argument(help="A batch, or a time.")],
    after: Annotated[str | None, typer.Argument(help="A batch or a time; now, if not given.")] = None,
    policy: Policy = "latest",
    as_json: Json = False,
) -> None:
    """List the entries that differ between two states."""
    from partly.cli import ledger as job

    found = job.diff(place, before, after, policy)
    if not print_json(found, as_json):
        print(
            "\n".join(
                f"{one['item']}  {one['label']}: {one['before'] or '-'} -> {one['after'] or '-'}" for one in found
            )
        )
        say(f"{len(found)} entries differ.")


@ledger.command()
def disagreements(place: Place, at: At = None, models: Models = False, as_json: Json = False) -> None:
    """List the entries on which people, imports and rules (and models) do not agree."""
    from partly.cli import ledger as job

    found = job.disagreements(place, at, models)
    if not print_json(found, as_json):
        print("\n".join(f"{one['item']}  {one['label']}" for one in found))
        say(f"{len(found)} entries; `partly ledger show LEDGER ITEM` says who said what.")


@ledger.command()
def undo(
    place: Place,
    batch: Annotated[int | None, typer.Argument(help="The number of a batch, from the log.")] = None,
    item: Annotated[str | None, typer.Option(help="Only what the batch says of this item.")] = None,
    label: Annotated[str | None, typer.Option(help="And of this label.")] = None,
    kind: Annotated[
        str | None, typer.Option(help="Without a batch, all of a source: person, import, rule, model.")
    ] = None,
    author: Annotated[str | None, typer.Option(help="Of this author.")] = None,
    run: Annotated[str | None, typer.Option(help="Of this run of a model.")] = None,
    by: Annotated[str | None, typer.Option(help="Who takes it back; the name of the user, if not given.")] = None,
    note: Annotated[str, typer.Option(help="Why, for the log.")] = "",
    as_json: Json = False,
) -> None:
    """Take back a batch, a statement or a source; an undo can be undone."""
    from partly.cli import ledger as job

    print_json(
        job.undo(place, batch, item, label, {"kind": kind, "author": author, "run": run}, by, note, say), as_json
    )


@vocabulary.command("list")
def list_(place: Place, at: At = None, as_json: Json = False) -> None:
    """List the labels, with parents, and what became of those that are gone."""
    from partly.cli import ledger as job

    found = job.labels(place, at)
    if not print_json(found, as_json):
        print("\n".join(map(job.label_line, found)))


@vocabulary.command()
def add(
    place: Place,
    names: Names,
    parent: Annotated[str | None, typer.Option(help="A label that they are parts of.")] = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Add labels, unknown everywhere."""
    from partly.cli import ledger as job

    print_json(job.change(place, "add", job.words(names), parent, author, say), as_json)


@vocabulary.command()
def split(
    place: Place,
    label: Annotated[str, typer.Argument(help="A label.")],
    into: Annotated[list[str], typer.Argument(help="into A,B,...")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Split a label: `split LEDGER Animal into Cat,Dog`. Where it is no its parts are no, else they start unknown."""
    from partly.cli import ledger as job

    print_json(job.change(place, "split", job.words(job.after("into", into)), label, author, say), as_json)


@vocabulary.command()
def merge(
    place: Place,
    names: Names,
    into: Annotated[list[str], typer.Argument(help="as NAME", metavar="as NAME")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Merge labels: `merge LEDGER Car,Automobile as Car`. A yes of either is a yes, a no takes a no of all."""
    from partly.cli import ledger as job

    print_json(job.change(place, "merge", job.words(names), job.after("as", into), author, say), as_json)


@vocabulary.command()
def rename(
    place: Place,
    label: Annotated[str, typer.Argument(help="A label.")],
    name: Annotated[list[str], typer.Argument(help="to NAME", metavar="to NAME")],
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Rename a label; it stays the same one."""
    from partly.cli import ledger as job

    print_json(job.change(place, "rename", [label], job.after("to", name), author, say), as_json)


@vocabulary.command()
def retire(place: Place, names: Names, author: Author = None, as_json: Json = False) -> None:
    """Hide labels; what was said of them stays in the ledger."""
    from partly.cli import ledger as job

    print_json(job.change(place, "retire", job.words(names), None, author, say), as_json)
