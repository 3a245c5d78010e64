"""The ledger: an append-only record of statements about entries, which resolve into `Labels`.

    ledger = Ledger.create("labels.db", names=["cat", "dog"])      # or Ledger("labels.db"), Ledger("postgresql://...")
    batch = ledger.append(["a.jpg", "b.jpg"], ["cat", "cat"], [1, 0], author="anna")   # 1 yes, 0 no, None cannot tell
    batch = ledger.append_labels(labels, kind="import", author="labels.csv", add_labels=True)
    batch = ledger.append(items, names, values, kind="model", run="runs/7", confidence=p, key="complete-7")
    ledger.labels()                     # Labels: people rank above imports and rules; models only with models=True
    ledger.labels(at=12)                # after batch 12, or at a time: "2026-03-01T12:00"
    ledger.undo(batch)                  # a batch too, so it can be undone
    ledger.log()                        # [Batch(number, time, kind, author, run, note, count, undone_by, ...)]
    ledger.hierarchy()                  # Hierarchy or None
    ledger.show("a.jpg")                # every statement about an item: [Statement(batch, item, label, value, ...)]
    ledger.diff(10, 12)                 # [Difference(item, label, before, after)]
    ledger.disagreements()              # entries with conflicting statements
    ledger.source_quality()             # [SourceQuality(source, sensitivity, specificity, weight, ...)]
    ledger.add / split / merge / rename / retire     # change the vocabulary, one batch each

`append` returns when the batch is on disk. `key` makes it idempotent: the same key again returns the number of the
existing batch and appends nothing.
"""

from partly.ledger.history import Batch
from partly.ledger.ledger import Difference, Ledger, Statement
from partly.ledger.location import is_sqlite, is_url, place_of, without_password
from partly.ledger.resolve import POLICIES, RANKS
from partly.ledger.source_quality import SourceQuality
from partly.ledger.vocabulary import Change, Label, Vocabulary

__all__ = [
    "POLICIES",
    "RANKS",
    "Batch",
    "Change",
    "Difference",
    "Label",
    "Ledger",
    "SourceQuality",
    "Statement",
    "Vocabulary",
    "is_sqlite",
    "is_url",
    "place_of",
    "without_password",
]
