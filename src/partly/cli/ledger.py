"""`partly ledger`: an append-only record of who labeled what.

The readers and writers of label formats need torch and are imported where they are used: other commands answer at once.
"""

from __future__ import annotations

import csv
import getpass
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from partly.cli._label_names import read_labels
from partly.cli.app import command, group
from partly.cli.dataclass_options import Omit
from partly.cli.options import DataOptions, Format, Json, LabelFormatOptions, option
from partly.cli.printing import print_json, say, summarize
from partly.errors import SettingError

if TYPE_CHECKING:
    from partly.ledger import Batch, Ledger

ledger = group("ledger", "Annotation", "Keep labels with their source and full history.")

Place = Annotated[str, typer.Argument(help="A file, or postgresql://user@host/database.", metavar="LEDGER")]
Author = Annotated[str | None, option("Who makes the change.  [default: user name]")]
At = Annotated[str | None, option("State after this batch, or at this time: 12, 2026-03-01T12:00.", "--at")]
Policy = Annotated[str, option("How to resolve people's disagreements: latest, majority or weighted.")]
Models = Annotated[bool, option("Include labels by models, where nobody else has labeled.", "--models")]
Plain = dict[str, Any]


def open_ledger(place: str) -> Ledger:
    """Open a ledger; refuse a password in its URL."""
    from partly.ledger import Ledger, without_password

    return Ledger(without_password(place))


@command(to=ledger)
def init(
    place: Place,
    labels: Annotated[
        str, option("Names, separated by commas, or a file with one per line; an import adds more.")
    ] = "",
    hierarchy: Annotated[Path | None, option("Table with the columns child and parent, or an .obo file.")] = None,
    statements: Annotated[
        Path | None, option("Restore another ledger from its `partly ledger export --statements`.")
    ] = None,
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Create a ledger."""
    from partly.ledger import Ledger, exchange, without_password

    if statements is not None:
        if labels or hierarchy is not None:
            raise SettingError("--statements include the labels; leave out --labels and --hierarchy.")
        created = exchange.restore(without_password(place), statements)
    else:
        parents, names = None, read_labels(Path(labels))[0] if Path(labels).is_file() else split_names(labels)
        if hierarchy is not None:
            from partly.data import read_hierarchy

            parents = read_hierarchy(hierarchy, names or None)
        created = Ledger.create(without_password(place), names, parents, author=user_name(author))
    count, shown = len(created.log()), created.store.place.address
    added = created.vocabulary().names
    say(f"Created {shown} with {len(added)} labels" + (f": {', '.join(added[:9])}" if added else "."))
    print_json({"ledger": shown, "batches": count}, as_json)


@command(to=ledger, name="import")
def import_(
    place: Place,
    source: Annotated[str, typer.Argument(help="Label file in any format, answered questions, or another ledger.")],
    person: Annotated[str | None, option("Person who labeled all of it.  [default: an import]")] = None,
    model: Annotated[str | None, option("Run of the model that labeled all of it.")] = None,
    rule: Annotated[str | None, option("Name of the rule that labeled all of it.")] = None,
    mapping: Annotated[
        str, option("New names for its labels: kitty=Cat,puppy=Dog. Several may become one.", "--map")
    ] = "",
    add_labels: Annotated[bool, option("Add labels that the ledger does not have.", "--add-labels")] = False,
    *,
    reading: LabelFormatOptions,
    note: Annotated[str, option("Note for the log.")] = "",
    key: Annotated[str | None, option("Name of this import; a second import of that name is skipped.")] = None,
    force: Annotated[bool, option("Append even what was imported before.", "--force")] = False,
    as_json: Json = False,
) -> None:
    """Append labels, answers or another ledger."""
    from partly.data import read_labels
    from partly.data.answers import read_statements
    from partly.data.formats import ledger_db

    opened, names = open_ledger(place), parse_mapping(mapping)
    authors = {kind: name for kind, name in (("person", person), ("model", model), ("rule", rule)) if name is not None}
    if len(authors) > 1:
        raise SettingError("Give only one of --person, --model and --rule: a batch has one source.")
    kind, name = next(iter(authors.items()), ("import", Path(source).name))
    origin: Plain = {"kind": kind, "author": "" if kind == "model" else name, "run": name if kind == "model" else ""}
    last = len(opened.log())
    # The first import defines the labels.
    how: Plain = {"add_labels": add_labels or not opened.vocabulary().names, "skip_repeated": not force}
    is_ledger = ledger_db.recognizes(Path(source))
    if is_ledger and not authors:
        batches = opened.append_ledger(open_ledger(source), mapping=names, **how)
    elif not is_ledger and _holds_answers(Path(source)):
        items, labels, values = read_statements(source)
        labels = [names.get(label, label) for label in labels]
        batches = [opened.append(items, labels, values, **origin, note=note, key=key, **how)]
    else:
        labels_read = read_labels(source, **reading.label_format())
        say(f"{source}: {summarize(labels_read.summary())}")
        batches = [opened.append_labels(labels_read, **origin, note=note or source, key=key, mapping=names, **how)]
    earlier, added = [n for n in batches if n <= last], [n for n in batches if n > last]
    address = opened.store.place.address
    if added or not earlier:
        say(f"{address}: added batch {', '.join(map(str, added))}" if added else f"{address}: nothing to add.")
    if earlier:
        say(
            f"{address}: imported before, nothing changed (batch {', '.join(map(str, earlier))}). "
            "--force appends it again."
        )
    print_json({"ledger": address, "batches": batches, "imported_before": earlier}, as_json)


@command(to=ledger)
def export(
    place: Place,
    target: Annotated[Path, typer.Argument(help="Label file in any format; with --statements a .parquet file.")],
    statements: Annotated[
        bool, option("Export the whole history instead of the resulting labels.", "--statements")
    ] = False,
    form: Format = None,
    at: At = None,
    policy: Policy = "latest",
    models: Models = False,
    *,
    reading: Annotated[
        DataOptions,
        Omit("labels", "uncertain", "missing", "label_columns", "id_column", "tag_separator", "hierarchy", "size",
             "skip_bad"),
    ],
    as_json: Json = False,
) -> None:  # fmt: skip
    """Export the current labels, or the whole history."""
    opened = open_ledger(place)
    if statements:
        from partly.ledger import exchange

        if target.suffix.lower() != ".parquet" or at is not None or form is not None:
            raise SettingError(f"{target}: statements are exported as a whole, to a .parquet file.")
        count = exchange.export(opened, target)
        say(f"{target}: {count} batches")
        print_json({"out": target, "batches": count}, as_json)
        return
    from partly.data import write_labels

    labels = opened.labels(at, policy=policy, models=models)
    write_labels(labels, target, form=form, absent=reading.absent)
    say(f"{target}: {summarize(labels.summary())}")
    by_models = sum(one.count for one in opened.log(at) if one.kind == "model" and not one.undone_by)
    if by_models and not models:
        say(f"Left out: {by_models} statements by models (--models includes them).")
    print_json({"out": target, **labels.summary()}, as_json)


@command(to=ledger)
def log(place: Place, at: At = None, as_json: Json = False) -> None:
    """List all batches: source, time and number of statements."""
    batches = [_plain(batch) for batch in open_ledger(place).log(at)]
    if not print_json(batches, as_json):
        print("\n".join(map(_batch_line, batches)))


@command(to=ledger)
def show(
    place: Place,
    item: Annotated[str, typer.Argument(help="Id of an item.")],
    at: At = None,
    policy: Policy = "latest",
    as_json: Json = False,
) -> None:
    """Show the labels of an item, and every statement about it."""
    opened = open_ledger(place)
    statements = [
        _plain(one.batch) | {name: getattr(one, name) for name in ("label", "value", "confidence", "counts")}
        for one in opened.show(item, at)
    ]
    labels = opened.labels(at, policy=policy, models=True)
    row = labels.rows([labels.ids.index(item)])[0].tolist() if item in labels.ids else [0] * len(labels.names)
    known = {name: "yes" if z == 1 else "no" for name, z in zip(labels.names, row, strict=True) if z}
    if print_json({"item": item, "known": known, "said": statements}, as_json):
        return
    observed = opened.labels(at, policy=policy)
    row = observed.rows([observed.ids.index(item)])[0].tolist() if item in observed.ids else []
    observed_names = {name for name, z in zip(observed.names, row, strict=False) if z}
    lines = [f"{name}: {value}" + ("" if name in observed_names else " (of a model)") for name, value in known.items()]
    print("\n".join(lines or ["No label is known."]))
    if statements:
        print("\nStatements")
    for one in statements:
        confidence = "" if one["confidence"] is None else f" ({one['confidence']:.2f})"
        undone = "" if one["counts"] else "  [undone]"
        print(f"{_batch_start(one)}: {one['label']} {one['value']}{confidence}{undone}")


@command(to=ledger)
def diff(
    place: Place,
    before: Annotated[str, typer.Argument(help="Batch number or time.")],
    after: Annotated[str | None, typer.Argument(help="Batch number or time.  [default: now]")] = None,
    policy: Policy = "latest",
    as_json: Json = False,
) -> None:
    """List the entries that differ between two states."""
    changes = [asdict(one) for one in open_ledger(place).diff(before, after, policy=policy)]
    if not print_json(changes, as_json):
        for one in changes:
            print(f"{one['item']}  {one['label']}: {one['before'] or '-'} -> {one['after'] or '-'}")
        say(f"{len(changes)} entries differ.")


@command(to=ledger)
def disagreements(place: Place, at: At = None, models: Models = False, as_json: Json = False) -> None:
    """List the entries on which sources disagree."""
    pairs = open_ledger(place).disagreements(at, models=models)
    if not print_json([{"item": item, "label": label} for item, label in pairs], as_json):
        for item, label in pairs:
            print(f"{item}  {label}")
        say(f"{len(pairs)} entries. `partly ledger show LEDGER ITEM` shows who said what.")


@command(to=ledger)
def undo(
    place: Place,
    batch: Annotated[int | None, typer.Argument(help="Batch number, see `partly ledger log`.")] = None,
    item: Annotated[str | None, option("Undo only the statements of the batch about this item.")] = None,
    label: Annotated[str | None, option("Undo only its statements about this label.")] = None,
    kind: Annotated[str | None, option("Undo all batches of one kind: person, import, rule or model.")] = None,
    author: Annotated[str | None, option("Undo all batches of this author.")] = None,
    run: Annotated[str | None, option("Undo all batches of this run of a model.")] = None,
    by: Annotated[str | None, option("Who undoes it.  [default: user name]")] = None,
    note: Annotated[str, option("Reason, for the log.")] = "",
    as_json: Json = False,
) -> None:
    """Undo a batch, a statement or a source."""
    source = {"kind": kind, "author": author, "run": run}
    number = open_ledger(place).undo(batch, item=item, label=label, **source, by=user_name(by), note=note)
    say(f"Undone by batch {number}. To redo: partly ledger undo {place} {number}")
    print_json({"batch": number}, as_json)


def _plain(batch: Batch) -> Plain:
    return {
        "batch": batch.number,
        "time": batch.time.isoformat(timespec="seconds"),
        **{name: getattr(batch, name) for name in ("kind", "author", "run", "note", "key", "vocabulary")},
        "statements": batch.count,
        "undone_by": batch.undone_by,
        "takes_back": sorted({number for number, _, _ in batch.taken_back}),
        "changes": [
            {"what": one.what, "of": list(one.of), "new": [name for _, name in one.new]} for one in batch.changes
        ],
    }


def _batch_start(batch: Plain) -> str:
    source = " ".join(word for word in (batch["kind"], batch["author"] or batch["run"]) if word)
    return f"{batch['batch']:>6}  {batch['time']}  {source}"


def _batch_line(batch: Plain) -> str:
    contents = [f"{batch['statements']} statements"] if batch["statements"] else []
    contents += [f"{one['what']} {', '.join(one['new'])}".strip() for one in batch["changes"][:5]]
    contents += [f"undoes batch {', '.join(map(str, batch['takes_back'][:9]))}"] if batch["takes_back"] else []
    note = f" ({batch['note']})" if batch["note"] else ""
    undone = f"  [undone by {batch['undone_by']}]" if batch["undone_by"] else ""
    return f"{_batch_start(batch)}: {'; '.join(contents) or 'empty'}{note}{undone}"


def user_name(name: str | None) -> str:
    """Return the name, or that of the user who runs the command."""
    if name is not None:
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container without user names
        return "unknown"


def split_names(text: str) -> list[str]:
    """Split names at commas; a name that holds a comma is quoted, as in a CSV file."""
    return [word.strip() for word in next(csv.reader([text], skipinitialspace=True), []) if word.strip()]


def parse_mapping(text: str) -> dict[str, str]:
    """Parse 'kitty=Cat,puppy=Dog'."""
    pairs = [word.partition("=") for word in split_names(text)]
    if any(not (old.strip() and new.strip()) for old, _, new in pairs):
        raise SettingError(f"--map {text!r}: write old=new, separated by commas: kitty=Cat,puppy=Dog.")
    return {old.strip(): new.strip() for old, _, new in pairs}


def _holds_answers(path: Path) -> bool:
    from partly.data.answers import COLUMNS
    from partly.data.tables import is_table, open_table

    return is_table(path) and path.is_file() and set(COLUMNS) <= set(open_table(path).header)
