"""`partly ledger` and `partly vocabulary`: what was said of which entry, by whom, and which labels there are.

Formats of labels, which need torch, are imported by those that read or write one: the others answer at once.
"""

from __future__ import annotations

import csv
import getpass
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partly.errors import SettingError
from partly.ledger import Batch, Ledger, exchange, without_password

if TYPE_CHECKING:
    from partly.cli.opening import Say
    from partly.data import LabelSemantics

Plain = dict[str, Any]


def init(
    place: str, labels: str, hierarchy: Path | None, statements: Path | None, author: str | None, say: Say
) -> Plain:
    if statements is not None:
        if labels or hierarchy is not None:
            raise SettingError("--statements brings its labels along; leave out --labels and --hierarchy.")
        made = exchange.restore(without_password(place), statements)
    else:
        parents = None
        if hierarchy is not None:
            from partly.data import read_hierarchy

            parents = read_hierarchy(hierarchy)
        made = Ledger.create(without_password(place), words(labels), parents, author=user(author))
    count = len(made.log())
    say(f"{made.store.place.shown}: {count} batches, {len(made.vocabulary().names)} labels")
    return {"ledger": made.store.place.shown, "batches": count}


def take(
    place: str,
    source: str,
    who: dict[str, str | None],
    mapping: str,
    add_labels: bool,
    meaning: LabelSemantics,
    note: str,
    key: str | None,
    say: Say,
    force: bool = False,
) -> Plain:
    """Labels of any format, a file of answers, or another ledger."""
    from partly.data import read_labels
    from partly.data.answers import read_statements
    from partly.data.formats import ledger_db

    ledger, names = Ledger(without_password(place)), pairs(mapping)
    named = {kind: name for kind, name in who.items() if name is not None}
    if len(named) > 1:
        raise SettingError("Say one of --person, --model and --rule: a batch has one source.")
    kind, name = next(iter(named.items()), ("import", Path(source).name))
    source_of: Plain = {"kind": kind, "author": "" if kind == "model" else name, "run": name if kind == "model" else ""}
    last = len(ledger.log())
    new = add_labels or not ledger.vocabulary().names  # the first import says which labels there are
    how: Plain = {"add_labels": new, "skip_repeated": not force}
    if ledger_db.recognizes(Path(source)) and not named:
        batches = ledger.append_ledger(Ledger(without_password(source)), mapping=names, **how)
    elif not ledger_db.recognizes(Path(source)) and _is_answers(Path(source)):
        item, label, value = read_statements(source)
        label = [names.get(one, one) for one in label]
        batches = [ledger.append(item, label, value, **source_of, note=note, key=key, **how)]
    else:
        found = read_labels(source, **vars(meaning))
        say(f"{source}: {found!r}")
        batches = [ledger.append_labels(found, **source_of, note=note or source, key=key, mapping=names, **how)]
    earlier = [number for number in batches if number <= last]
    fresh = [number for number in batches if number > last]
    shown = ledger.store.place.shown
    if fresh or not earlier:
        say(f"{shown}: batch {', '.join(map(str, fresh)) or 'none: there was nothing to say'}")
    if earlier:
        what = ", ".join(map(str, earlier))
        say(f"{shown}: imported before, nothing changed (batch {what}). --force appends it again.")
    return {"ledger": shown, "batches": batches, "imported_before": earlier}


def export(
    place: str,
    target: Path,
    statements: bool,
    form: str | None,
    at: str | None,
    policy: str,
    models: bool,
    absent: str | None,
    say: Say,
) -> Plain:
    ledger = Ledger(without_password(place))
    if statements:
        if target.suffix.lower() != ".parquet" or at is not None or form is not None:
            raise SettingError(f"{target}: statements are written whole, to a .parquet file.")
        count = exchange.export(ledger, target)
        say(f"{target}: {count} batches")
        return {"out": target, "batches": count}
    from partly.data import write_labels

    labels = ledger.labels(at, policy=policy, models=models)
    write_labels(labels, target, form=form, absent=absent)
    say(f"{target}: {labels!r}")
    left_out = sum(one.count for one in ledger.log(at) if one.kind == "model" and not one.undone_by)
    if left_out and not models:
        say(f"Left out: {left_out} statements of models (--models takes them).")
    return {"out": target, **labels.summary()}


def log(place: str, at: str | None) -> list[Plain]:
    return [_plain(one) for one in Ledger(without_password(place)).log(at)]


def _plain(batch: Batch) -> Plain:
    said = {"batch": batch.number, "time": batch.time.isoformat(timespec="seconds"), "kind": batch.kind}
    said |= {name: getattr(batch, name) for name in ("author", "run", "note", "key", "vocabulary")}
    said["statements"], said["undone_by"] = batch.count, batch.undone_by
    said["takes_back"] = sorted({number for number, _, _ in batch.taken_back})
    said["changes"] = [
        {"what": one.what, "of": list(one.of), "new": [name for _, name in one.new]} for one in batch.changes
    ]
    return said


def line(batch: Plain) -> str:
    """A batch in one line."""
    who = " ".join(word for word in (batch["kind"], batch["author"] or batch["run"]) if word)
    what = [f"{batch['statements']} statements"] if batch["statements"] else []
    what += [f"{one['what']} {', '.join(one['new'])}".strip() for one in batch["changes"][:5]]
    what += [f"takes back {', '.join(map(str, batch['takes_back'][:9]))}"] if batch["takes_back"] else []
    note = f" ({batch['note']})" if batch["note"] else ""
    undone = f"  [taken back by {batch['undone_by']}]" if batch["undone_by"] else ""
    return f"{batch['batch']:>6}  {batch['time']}  {who}: {'; '.join(what) or 'nothing'}{note}{undone}"


def show(place: str, item: str, at: str | None, policy: str) -> Plain:
    ledger = Ledger(without_password(place))
    said = ledger.show(item, at)
    labels = ledger.labels(at, policy=policy, models=True)
    row = (
        dict(zip(labels.names, labels.rows([labels.ids.index(item)])[0].tolist(), strict=True))
        if item in labels.ids
        else {}
    )
    known = {name: "yes" if z == 1 else "no" for name, z in row.items() if z}
    statements = [
        {
            **_plain(one.batch),
            "label": one.label,
            "value": one.value,
            "confidence": one.confidence,
            "counts": one.counts,
        }
        for one in said
    ]
    return {"item": item, "known": known, "said": statements}


def page(found: Plain) -> str:
    """What `show` found, as text."""
    lines = [f"{name}: {value}" for name, value in found["known"].items()] or ["Nothing is known."]
    lines.append("")
    for one in found["said"]:
        sure = "" if one["confidence"] is None else f" ({one['confidence']:.2f})"
        who = " ".join(word for word in (one["kind"], one["author"] or one["run"]) if word)
        gone = "" if one["counts"] else "  [taken back]"
        lines.append(f"{one['batch']:>6}  {one['time']}  {who}: {one['label']} {one['value']}{sure}{gone}")
    return "\n".join(lines)


def diff(place: str, before: str, after: str | None, policy: str) -> list[Plain]:
    return [asdict(one) for one in Ledger(without_password(place)).diff(before, after, policy=policy)]


def disagreements(place: str, at: str | None, models: bool) -> list[Plain]:
    return [
        {"item": item, "label": label}
        for item, label in Ledger(without_password(place)).disagreements(at, models=models)
    ]


def undo(
    place: str,
    batch: int | None,
    item: str | None,
    label: str | None,
    source: dict[str, str | None],
    by: str | None,
    note: str,
    say: Say,
) -> Plain:
    ledger = Ledger(without_password(place))
    number = ledger.undo(batch, item=item, label=label, **source, by=user(by), note=note)
    say(f"Taken back by batch {number}; `partly ledger undo LEDGER {number}` gives it back.")
    return {"batch": number}


# ---------------------------------------------------------------- the vocabulary


def change(place: str, what: str, names: list[str], other: str | None, author: str | None, say: Say) -> Plain:
    """One change; `other` is the label that is split, the parent of those added, or the name to be had."""
    ledger, by = Ledger(without_password(place)), user(author)
    if what == "add":
        number = ledger.add(names, parent=other, author=by)
    elif what == "split":
        number = ledger.split(other or "", names, author=by)
    elif what == "merge":
        number = ledger.merge(names, other or "", author=by)
    elif what == "rename":
        number = ledger.rename(names[0], other or "", author=by)
    else:
        number = ledger.retire(names, author=by)
    there = ledger.vocabulary().names
    say(f"Batch {number}; {len(there)} labels now: {', '.join(there[:20])}{', ...' if len(there) > 20 else ''}")
    return {"batch": number, "labels": list(there)}


def labels(place: str, at: str | None) -> list[Plain]:
    there = Ledger(without_password(place)).vocabulary(at).labels
    return [
        {
            "label": one.name,
            "parent": None if one.parent is None else there[one.parent].name,
            "hidden": one.hidden,
            "was_called": list(one.called[:-1]),
        }
        for one in there.values()
    ]


def label_line(label: Plain) -> str:
    parent = f"  (of {label['parent']})" if label["parent"] else ""
    hidden = f"  [{label['hidden']}]" if label["hidden"] else ""
    return f"{label['label']}{parent}{hidden}"


# ---------------------------------------------------------------- what is typed


def user(name: str | None) -> str:
    if name is not None:
        return name
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # nobody, in a container
        return "somebody"


def words(text: str) -> list[str]:
    """Names with commas; one that holds a comma is put in quotes, as in a CSV file."""
    return [word.strip() for word in next(csv.reader([text], skipinitialspace=True), []) if word.strip()]


def pairs(text: str) -> dict[str, str]:
    """kitty=Cat,puppy=Dog."""
    found = [word.partition("=") for word in words(text)]
    wrong = [word for word in found if not (word[0].strip() and word[2].strip())]
    if wrong:
        raise SettingError(f"--map {text!r}: write old=new with commas between: kitty=Cat,puppy=Dog.")
    return {old.strip(): new.strip() for old, _, new in found}


def after(word: str, said: Sequence[str]) -> str:
    """What stands after a small word that makes a command read like a sentence; the word may be left out."""
    rest = list(said[1:] if said[:1] == [word] else said)
    if len(rest) != 1:
        raise SettingError(f"Write it as one word (in quotes, where it has spaces), after {word!r}; got {list(said)}.")
    return str(rest[0])


def _is_answers(path: Path) -> bool:
    from partly.data.answers import COLUMNS
    from partly.data.tables import is_table, open_table

    return is_table(path) and path.is_file() and set(COLUMNS) <= set(open_table(path).header)
