"""What the pages are about, for all who answer for a part of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from fastapi import Request

from partly.annotate import stats
from partly.annotate.accounts import People, Person
from partly.annotate.item_renderer import Seen
from partly.annotate.label_state import beside, retired, without
from partly.annotate.limits import Pool
from partly.annotate.passwords import Refused
from partly.annotate.question_queue import Desk
from partly.annotate.security_middleware import Address
from partly.annotate.trainer_supervisor import TrainerStatus
from partly.labels import Labels
from partly.labels.guidelines import Guideline


@dataclass
class Site:
    """One set of data, one ledger, and the people who answer."""

    title: str
    desk: Desk
    people: People
    seen: Seen
    address: Address
    accounts: bool = False
    training: Callable[[], TrainerStatus] = field(default=TrainerStatus)
    port: int = 8765
    seed: int = 0  # of the plan
    passwords: Pool = field(default_factory=lambda: Pool("passwords", 2, 30, 30, gives_way=True))
    sessions: Pool = field(default_factory=lambda: Pool("sessions", 8, 500, 5))
    imports: Pool = field(default_factory=lambda: Pool("imports", 1, 2, 120))
    round: int = 0  # when the ledger was last folded
    guidelines: Mapping[str, Guideline] = field(default_factory=dict)  # by label

    def guideline(self, label: str) -> dict[str, Any] | None:
        """What a label means, for the page; None where nobody has said."""
        found = self.guidelines.get(label)
        return None if found is None else found.to_dict()

    def fold(self) -> Labels:
        """What is known by now. What the desk takes for given is made anew along with it."""
        desk = self.desk
        known = beside(desk.labels(), desk.given, self.title, retired(desk.ledger))
        desk.given = without(known, stats.answers(desk, stats.answered(desk)), desk.hierarchy)
        return known

    def keep_up(self, round: int) -> None:
        """Where a new round was posed, with what others have told the ledger meanwhile; on the way it is too much."""
        if round != self.round:
            self.round = round
            self.fold()


def site_of(request: Request) -> Site:
    return cast(Site, request.app.state.site)


def person_of(request: Request) -> Person:
    """Who asks. Only behind `app.is_in`."""
    return cast(Person, request.state.person)


def address_of(request: Request) -> str:
    """The address of the client; behind a proxy, the one that it names."""
    return request.client.host if request.client else ""


def need_accounts(site: Site) -> None:
    if not site.accounts:
        raise Refused("These pages have no accounts: start with --accounts.", 404)


def cookie_of(site: Site) -> str:
    """Its name. Cookies know no ports, so that two sites on one machine need two names."""
    return "__Host-partly" if site.address.secure else f"partly-{site.port}"


def cookie(site: Site, token: str, seconds: float) -> dict[str, Any]:
    """For `Response.set_cookie`."""
    return {
        "key": cookie_of(site),
        "value": token,
        "max_age": int(seconds),
        "httponly": True,
        "samesite": "strict",
        "secure": site.address.secure,
        "path": "/",
    }
