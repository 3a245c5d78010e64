"""What is kept beside the ledger, in the same database: people, how they come in, questions, and the models that ask.

A statement about an entry is the ledger's alone. A question points to the batch of the ledger that its answer made, and
both are written in one transaction: after a kill there are both or neither.
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
    Column("folded", String(128), nullable=False, unique=True),  # no two names that look alike
    Column("secret", String(256)),  # scrypt; none of who came in by the address that the start has printed
    Column("role", String(16), nullable=False),
    Column("made", Float, nullable=False),
)

# Of tokens only digests are kept: who reads the database cannot come in with what it says.
invitations = Table(
    "annotate_invitations",
    metadata,
    Column("digest", String(64), primary_key=True),
    Column("role", String(16), nullable=False),
    Column("person", Integer, ForeignKey("annotate_people.id")),  # who comes in by it; none: somebody new
    Column("expires", Float, nullable=False),
    Column("used", Float),
    Column("maker", Integer, ForeignKey("annotate_people.id")),  # none: the start of the server has made it
    Column("made", Float),
    Column("voided", Float),  # by hand, or because its maker was blocked
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
    Column("id", Integer, primary_key=True, autoincrement=False),  # so that of two trainers one is refused
    Column("made", Float, nullable=False),
    Column("answers", Integer, nullable=False),  # given when its model was trained
    Column("known", Integer, nullable=False),  # entries
    Column("seconds", Float, nullable=False),  # to train and choose
    Column("query", String(64), nullable=False),
    Column("found", Text, nullable=False),  # JSON: how good the model is, what choosing has saved, what it doubts
)

questions = Table(
    "annotate_questions",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("round", Integer, ForeignKey("annotate_rounds.id"), nullable=False),
    Column("place", Integer, nullable=False),  # in the queue of its round
    Column("item", Text, nullable=False),  # its id
    Column("label", Text, nullable=False),
    Column("random", Boolean, nullable=False),  # of the shadow arm
    Column("repeats", Integer, ForeignKey("annotate_questions.id")),  # an answered one, to measure agreement
    Column("own", Boolean),  # of a repeat: whether it is for the one who answered before, or for all others
    Column("score", Float),  # what the query has given it
    Column("probability", Float),  # of yes, by the model of its round
    Column("state", String(16), nullable=False),  # open, answered, settled (by another answer) or withdrawn
    Column("person", Integer, ForeignKey("annotate_people.id")),  # who holds it, or has answered
    Column("until", Float),  # how long it is held
    Column("value", String(16)),  # yes, no or cannot tell
    Column("answered", Float),
    Column("seconds", Float),  # that the answer took
    Column("view", String(16)),  # label or item: where it was answered
    Column("batch", BigInteger),  # of the ledger
    Column("settled_by", Integer, ForeignKey("annotate_questions.id")),
    Column("purpose", String(16)),  # of a repeat: vote or decision; none: it measures agreement
    Column("undos", Text),  # of a decision, JSON: batches of the ledger that take votes back
    Index("annotate_questions_state", "state", "round", "place"),
    Index("annotate_questions_entry", "item", "label"),
    Index("annotate_questions_batch", "batch"),
)

# Skipped is not answered: it only is not shown to the same person again.
skips = Table(
    "annotate_skips",
    metadata,
    Column("question", Integer, ForeignKey("annotate_questions.id"), primary_key=True),
    Column("person", Integer, ForeignKey("annotate_people.id"), primary_key=True),
)

# Labels that a person is asked about; a person without any is asked about all.
assignments = Table(
    "annotate_assignments",
    metadata,
    Column("person", Integer, ForeignKey("annotate_people.id"), primary_key=True),
    Column("label", Text, primary_key=True),
)


# ---------------------------------------------------------------- migrations: see ledger/migrations.py


def _add_makers_of_links(connection: Connection) -> None:
    """Links know who made them. Older ones do not, so those that nobody has used end here."""
    connection.exec_driver_sql("DELETE FROM annotate_invitations WHERE used IS NULL")
    add_column(connection, "annotate_invitations", Column("maker", Integer, ForeignKey("annotate_people.id")))
    add_column(connection, "annotate_invitations", Column("made", Float))
    add_column(connection, "annotate_invitations", Column("voided", Float))


def _index_batches(connection: Connection) -> None:
    """An answer is found by its batch when it is taken back."""
    connection.exec_driver_sql("CREATE INDEX annotate_questions_batch ON annotate_questions (batch)")


def _add_votes(connection: Connection) -> None:
    """Votes of several people and decisions about them are questions with a purpose."""
    add_column(connection, "annotate_questions", Column("purpose", String(16)))
    add_column(connection, "annotate_questions", Column("undos", Text))


def _add_assignments(connection: Connection) -> None:
    connection.exec_driver_sql(
        "CREATE TABLE annotate_assignments (person INTEGER NOT NULL REFERENCES annotate_people (id), "
        "label TEXT NOT NULL, PRIMARY KEY (person, label))"
    )


STEPS = (_add_makers_of_links, _index_batches, _add_votes, _add_assignments)
SCHEMA = Schema("annotate", "the tables of the annotation server", metadata, STEPS)


def prepare(store: Store) -> None:
    """Create the tables, or migrate those of an older version."""
    migrate(store, SCHEMA)
