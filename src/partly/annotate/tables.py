"""Tables of the annotation server, in the same database as the ledger: accounts, questions and rounds.

Only the ledger holds statements about entries. An answered question refers to its ledger batch; both are written in
one transaction, so after a crash both are there, or neither.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)

from partly.ledger.migrations import Schema, add_column, migrate
from partly.ledger.store import Store

metadata = MetaData()

people = Table(
    "annotate_people",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("name", String(64), nullable=False),
    Column("folded", String(128), nullable=False, unique=True),  # case-folded, so that no two names look alike
    Column("secret", String(256)),  # scrypt hash; NULL for the local user without a password
    Column("role", String(16), nullable=False),
    Column("made", Float, nullable=False),
)

# Only digests of tokens are stored, so a copy of the database does not let anybody sign in.
invitations = Table(
    "annotate_invitations",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("person", Integer, ForeignKey("annotate_people.id")),  # whom it signs in; NULL: a new person
    Column("expires", Float, nullable=False),
    Column("used", Float),
    Column("maker", Integer, ForeignKey("annotate_people.id")),  # NULL: created by the server at its start
    Column("made", Float),
    Column("voided", Float),  # revoked, or its maker was blocked
)

sessions = Table(
    "annotate_sessions",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("person", Integer, ForeignKey("annotate_people.id"), nullable=False),
    Column("expires", Float, nullable=False),
)

blocked = Table(
    "annotate_blocked",
    metadata,
    Column("person", Integer, ForeignKey("annotate_people.id"), primary_key=True, autoincrement=False),
    Column("since", Float, nullable=False),
    Column("by", String(64), nullable=False),
)

rounds = Table(
    "annotate_rounds",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),  # of two concurrent trainers one is refused
    Column("made", Float, nullable=False),
    Column("answers", Integer, nullable=False),  # so far, when its model was trained
    Column("known", Integer, nullable=False),  # entries, at that time
    Column("seconds", Float, nullable=False),  # for training and selection
    Column("query", String(64), nullable=False),
    Column("found", Text, nullable=False),  # JSON: gain of selection ("worth") and suspect labels ("doubts")
)

questions = Table(
    "annotate_questions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("round", Integer, ForeignKey("annotate_rounds.id"), nullable=False),
    Column("place", Integer, nullable=False),  # in the queue of its round
    Column("item", Text, nullable=False),  # item id
    Column("label", Text, nullable=False),
    Column("random", Boolean, nullable=False),  # in the random control group
    Column("repeats", Integer, ForeignKey("annotate_questions.id")),  # an answered question, to measure agreement
    Column("own", Boolean),  # of a repeat: for the person who answered before, else for all others
    Column("score", Float),  # of the query strategy
    Column("probability", Float),  # of yes, by the model of its round
    Column("state", String(16), nullable=False),  # open, answered, settled (by another answer) or withdrawn
    Column("person", Integer, ForeignKey("annotate_people.id")),  # who leases it, or has answered
    Column("until", Float),  # end of the lease
    Column("value", String(16)),  # yes, no or cannot tell
    Column("answered", Float),
    Column("seconds", Float),  # that the answer took
    Column("view", String(16)),  # label or item: the page on which it was answered
    Column("batch", BigInteger),  # in the ledger
    Column("settled_by", Integer, ForeignKey("annotate_questions.id")),
    Column("purpose", String(16)),  # of a repeat: vote or decision; NULL: it measures agreement
    Column("undos", Text),  # of a decision, JSON: ledger batches that undo votes
    Index("annotate_questions_state", "state", "round", "place"),
    Index("annotate_questions_entry", "item", "label"),
    Index("annotate_questions_batch", "batch"),
)

# Skipped questions are not shown to the same person again.
skips = Table(
    "annotate_skips",
    metadata,
    Column("question", Integer, ForeignKey("annotate_questions.id"), primary_key=True),
    Column("person", Integer, ForeignKey("annotate_people.id"), primary_key=True),
)

# Labels that a person is asked about; a person without rows is asked about all.
assignments = Table(
    "annotate_assignments",
    metadata,
    Column("person", Integer, ForeignKey("annotate_people.id"), primary_key=True),
    Column("label", Text, primary_key=True),
)


# ---------------------------------------------------------------- migrations (see ledger/migrations.py)


def _add_link_makers(connection: Connection) -> None:
    """Store who created a link; unused links of before, which have no maker, are deleted."""
    connection.exec_driver_sql("DELETE FROM annotate_invitations WHERE used IS NULL")
    add_column(connection, "annotate_invitations", Column("maker", Integer, ForeignKey("annotate_people.id")))
    add_column(connection, "annotate_invitations", Column("made", Float))
    add_column(connection, "annotate_invitations", Column("voided", Float))


def _index_batches(connection: Connection) -> None:
    """Find answers by their ledger batch when they are undone."""
    connection.exec_driver_sql("CREATE INDEX annotate_questions_batch ON annotate_questions (batch)")


def _add_votes(connection: Connection) -> None:
    """Store votes of several people, and decisions, as questions with a purpose."""
    add_column(connection, "annotate_questions", Column("purpose", String(16)))
    add_column(connection, "annotate_questions", Column("undos", Text))


def _add_assignments(connection: Connection) -> None:
    connection.exec_driver_sql(
        "CREATE TABLE annotate_assignments (person INTEGER NOT NULL REFERENCES annotate_people (id), "
        "label TEXT NOT NULL, PRIMARY KEY (person, label))"
    )


STEPS = (_add_link_makers, _index_batches, _add_votes, _add_assignments)
SCHEMA = Schema("annotate", "the tables of the annotation server", metadata, STEPS)


def prepare(store: Store) -> None:
    """Create the tables, or migrate those of an older version."""
    migrate(store, SCHEMA)
