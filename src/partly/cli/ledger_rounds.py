"""Rounds of questions about what a ledger leaves unknown: the state they began with, and the way of answers back."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path

from partly import atomic_io
from partly.active import Loop
from partly.cli.opening import Say
from partly.errors import CheckpointError
from partly.ledger import Ledger, without_password
from partly.ledger.location import Place

BEGAN = "ledger.json"  # in the run folder: which ledger it asks about, and as after which batch


@dataclass(frozen=True)
class Home:
    """The ledger of a run folder. A loop learns from one state and its own answers, so that it can go on where it was;
    what others say meanwhile stands in the ledger, for the next run."""

    place: Place
    batch: int
    token: str  # tells the answers of this folder from those of any other

    @classmethod
    def of(cls, labels: Path, run: Path) -> Home:
        """As the folder says, or as it is now."""
        place = without_password(labels)
        if (run / BEGAN).exists():
            said = atomic_io.read_checksummed(run / BEGAN)
            if said["ledger"] != place.shown:
                raise CheckpointError(
                    f"{run}: asks about the ledger {said['ledger']}, not {place.shown}. Choose another folder."
                )
            return cls(place, said["batch"], said["token"])
        at = dict(place.state).get("at")
        batches = Ledger(place).log(at)
        home = cls(place, batches[-1].number if batches else 0, secrets.token_hex(8))
        with atomic_io.disk_errors(run):
            run.mkdir(parents=True, exist_ok=True)
        atomic_io.write_checksummed(run / BEGAN, {"ledger": place.shown, "batch": home.batch, "token": home.token})
        return home

    @property
    def labels(self) -> Path:
        """The place of the labels in that state, as other commands take it."""
        state = {**dict(self.place.state), "at": str(self.batch)}
        mark = "&" if "?" in self.place.shown else "?"
        return Path(f"{self.place.shown}{mark}{'&'.join(f'{name}={value}' for name, value in state.items())}")

    def tell(self, loop: Loop, author: str, say: Say) -> None:
        """All answers so far, a batch a round; what is there already, from before a crash perhaps, is left alone."""
        ledger = Ledger(self.place)
        then, now = ledger.vocabulary(self.batch), ledger.vocabulary()
        name = {one.name: now.labels[one.number].name for one in then.shown if one.number in now.labels}
        there = {one.key: one for one in ledger.log()}
        for number, asked, said in loop.answers():
            told = [i for i, one in enumerate(said) if one is not None]
            key = f"{self.token}-{number:03d}"
            if not told or key in there:
                continue
            items = [loop.labels.id_at(int(asked.rows[i])) for i in told]
            labels = [loop.labels.names[int(asked.columns[i])] for i in told]
            note = f"round {number} of {loop.folder.name}"
            batch = ledger.append(
                items,
                [name.get(one, one) for one in labels],
                [said[i] for i in told],
                author=author,
                note=note,
                key=key,
            )
            say(f"{self.place.shown}: batch {batch}, {len(told)} answers of {author}")
