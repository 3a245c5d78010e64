"""What the script of the pages calls: plain values in, plain values out."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from partly.annotate import adjudication, assignments
from partly.annotate.accounts import SESSION
from partly.annotate.app_context import Site, address_of, cookie, cookie_of, need_accounts, person_of, site_of
from partly.annotate.guards import acts, guarded, is_admin, is_in
from partly.annotate.importing import take_in
from partly.annotate.passwords import Refused
from partly.annotate.question_queue import MOST, Question
from partly.errors import PartlyError

open_to_all, inside = guarded(), guarded(is_in)
acting, admins = guarded(is_in, acts), guarded(is_in, is_admin, acts)
KEPT = {"cache-control": "private, max-age=600"}
Number = Annotated[int, Field(ge=0, le=2**53)]


class Strict(BaseModel):
    """Nothing is turned into something else, and nothing strange is left unsaid."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Wanted(Strict):
    view: str
    count: Annotated[int, Field(ge=1, le=MOST)]
    suggest: bool = False


class Said(Strict):
    question: Number
    value: str
    seconds: Annotated[float, Field(ge=0, le=1e6)]
    view: str


class One(Strict):
    question: Number


class Undo(Strict):
    answer: Number  # the batch of the ledger that holds it


class Chosen(Strict):
    question: Number
    value: str


class Assignment(Strict):
    person: Number
    labels: Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=10_000)]


class LogIn(Strict):
    name: Annotated[str, Field(max_length=200)]
    password: Annotated[str, Field(max_length=1000)]


class Join(LogIn):
    token: Annotated[str, Field(max_length=200)]


class Passwords(Strict):
    old: Annotated[str, Field(max_length=1000)]
    new: Annotated[str, Field(max_length=1000)]


class Renewal(Strict):
    token: Annotated[str, Field(max_length=200)]
    password: Annotated[str, Field(max_length=1000)]


class Somebody(Strict):
    person: Number


class Which(Strict):
    link: Annotated[str, Field(max_length=64)]


class Invitation(Strict):
    role: str


# ---------------------------------------------------------------- coming in and leaving


@open_to_all.post("/api/log-in")
async def log_in(request: Request, given: LogIn) -> Response:
    return await _come_in(request, site_of(request).people.log_in, given.name, given.password)


@open_to_all.post("/api/join")
async def join(request: Request, given: Join) -> Response:
    return await _come_in(request, site_of(request).people.join, given.token, given.name, given.password)


@open_to_all.post("/api/renew")
async def renew(request: Request, given: Renewal) -> Response:
    return await _come_in(request, site_of(request).people.renew, given.token, given.password)


@acting.post("/api/password")
async def password(request: Request, given: Passwords) -> Response:
    return await _come_in(request, site_of(request).people.change_password, person_of(request), given.old, given.new)


@acting.post("/api/log-out")
def log_out(request: Request) -> Response:
    site = site_of(request)
    site.people.log_out(request.state.session)
    answer = JSONResponse({})
    answer.delete_cookie(cookie_of(site))
    return answer


@admins.post("/api/invite")
def invite(request: Request, given: Invitation) -> dict[str, str]:
    site = site_of(request)
    need_accounts(site)
    return {"path": f"/join?token={site.people.invite(given.role, person_of(request))}"}  # type: ignore[arg-type]


@admins.post("/api/renewal")
def renewal(request: Request, given: Somebody) -> dict[str, str]:
    site = site_of(request)
    need_accounts(site)
    return {"path": f"/renew?token={site.people.renewal(given.person, person_of(request))}"}


@admins.post("/api/revoke")
def revoke(request: Request, given: Which) -> dict[str, str]:
    site_of(request).people.revoke(given.link)
    return {}


@admins.post("/api/block")
def block(request: Request, given: Somebody) -> dict[str, str]:
    site_of(request).people.block(given.person, person_of(request))
    return {}


@admins.post("/api/unblock")
def unblock(request: Request, given: Somebody) -> dict[str, str]:
    site_of(request).people.unblock(given.person)
    return {}


async def _come_in(request: Request, way: Callable[..., str], *given: Any) -> Response:
    """Set the cookie of the session that this way in returns. Passwords are hashed in a pool of their own: who tries
    many holds up others who sign in, and nobody who has."""
    site = site_of(request)
    need_accounts(site)
    token = await site.passwords.run(way, *given, address_of(request))
    answer = JSONResponse({})
    answer.set_cookie(**cookie(site, token, SESSION))
    return answer


# ---------------------------------------------------------------- questions and answers


@acting.post("/api/questions")
def questions(request: Request, wanted: Wanted) -> dict[str, Any]:
    site, person = site_of(request), person_of(request)
    found, standing = site.desk.lease(person, wanted.view, wanted.count), site.desk.standing(person)
    site.keep_up(standing["round"])
    return {"questions": [_plain(site, one, wanted.suggest) for one in found]} | standing


@acting.post("/api/answer")
def answer(request: Request, said: Said) -> dict[str, Any]:
    site, person = site_of(request), person_of(request)
    found = asdict(site.desk.answer(person, said.question, said.value, said.seconds, said.view))
    standing: dict[str, int] = found.pop("standing")
    return found | standing


@acting.post("/api/undo")
def undo(request: Request, which: Undo) -> dict[str, Any]:
    site, person = site_of(request), person_of(request)
    found = site.desk.take_back(person, which.answer)
    return {"question": _plain(site, found, False)} | site.desk.standing(person)


@acting.post("/api/skip")
def skip(request: Request, which: One) -> dict[str, Any]:
    site_of(request).desk.skip(person_of(request), which.question)
    return {}


@inside.get("/api/standing")
def standing(request: Request) -> dict[str, Any]:
    site, person = site_of(request), person_of(request)
    return site.desk.standing(person) | {"training": site.training().for_person(person.admin)}


@inside.get("/picture/{item}")
def picture(request: Request, item: Number) -> Response:
    return _picture(site_of(request), item, large=False)


@inside.get("/picture/{item}/large")
def large_picture(request: Request, item: Number) -> Response:
    """To zoom into."""
    return _picture(site_of(request), item, large=True)


def _picture(site: Site, item: int, large: bool) -> Response:
    if item >= len(site.desk.given):
        raise Refused("There is no such item.", 404)
    try:
        content, kind = site.seen.picture(item, large)
    except PartlyError:  # its words name the file
        raise Refused("This cannot be shown as a picture.", 422) from None
    return Response(content, media_type=kind, headers=KEPT)


def _plain(site: Site, question: Question, suggest: bool) -> dict[str, Any]:
    """What the page is told. Never which arm it is of, nor, unless somebody wants it, what the model thinks."""
    told = {"id": question.id, "label": question.label, "name": question.name} | {"seen": site.seen.of(question.item)}
    told |= {"guideline": site.guideline(question.label)}
    return told | ({"probability": question.probability} if suggest else {})


# ---------------------------------------------------------------- answers from elsewhere


@admins.post("/api/import")
async def import_(request: Request, force: bool = False) -> dict[str, Any]:
    """The body is the file: tasks of Label Studio. It goes to the disk as it comes, and another process reads it.
    force: append it though it was imported before."""
    site, person = site_of(request), person_of(request)
    with tempfile.TemporaryDirectory(prefix="partly-") as folder:
        path = Path(folder) / "tasks.json"
        with path.open("wb") as file:
            async for part in request.stream():
                file.write(part)
        imported = await site.imports.run(take_in, site.desk, person, path, force)
    await site.imports.run(site.fold)
    return asdict(imported)


# ---------------------------------------------------------------- what admins decide


@admins.post("/api/disagreements")
def disagreements(request: Request) -> dict[str, Any]:
    site = site_of(request)
    found, left = adjudication.disagreements(site.desk)
    shown = [asdict(one) | {"seen": site.seen.of(one.item), "guideline": site.guideline(one.label)} for one in found]
    return {"disagreements": shown, "left": left}


@admins.post("/api/decide")
def decide(request: Request, given: Chosen) -> dict[str, Any]:
    return asdict(adjudication.decide(site_of(request).desk, person_of(request), given.question, given.value))


@admins.post("/api/undo-decision")
def undo_decision(request: Request, which: Undo) -> dict[str, Any]:
    adjudication.undo_decision(site_of(request).desk, person_of(request), which.answer)
    return {}


@admins.post("/api/assign")
def assign(request: Request, given: Assignment) -> dict[str, Any]:
    assignments.assign(site_of(request).desk, given.person, given.labels)
    return {}


ROUTERS = (open_to_all, inside, acting, admins)
