"""The pages: HTML that is made here and escapes what it is given; the script fills in questions as text."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from partly.annotate import dashboard
from partly.annotate.accounts import ROLES, SESSION, page_token
from partly.annotate.app_context import address_of, cookie, need_accounts, person_of, site_of
from partly.annotate.assignments import assignments
from partly.annotate.guards import guarded, is_admin, is_in
from partly.annotate.links import INVITATION_SECONDS, RENEWAL_SECONDS
from partly.annotate.passwords import LEAST, Refused
from partly.data import for_spreadsheets, write_labels

open_to_all, inside, admins = guarded(), guarded(is_in), guarded(is_in, is_admin)
EXPORTS = {
    "labels.csv": ("wide", "text/csv"),
    "labels.parquet": ("long", "application/vnd.apache.parquet"),
    "label-studio.json": ("label-studio", "application/json"),
}
HOURS = {"invitation": round(INVITATION_SECONDS / 3600), "renewal": round(RENEWAL_SECONDS / 3600)}
SCREEN = {"label": 12, "item": 8}  # questions at once


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("partly.annotate"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _page(request: Request, name: str, status: int = 200, **words: Any) -> HTMLResponse:
    site = site_of(request)
    person = getattr(request.state, "person", None)
    token = page_token(request.state.session) if person is not None else ""
    words |= {"site": site, "person": person, "token": token, "path": request.url.path}
    return HTMLResponse(_environment().get_template(name).render(words), status)


def told(request: Request, title: str, text: str, status: int) -> HTMLResponse:
    return _page(request, "told.html", status, title=title, text=text)


# ---------------------------------------------------------------- coming in


@open_to_all.get("/start")
async def start(request: Request, token: str = "") -> Response:
    """By the address that the start of the program has printed, once. The page then leads on by itself: what a page of
    another site has opened brings no cookie along, what ours opens does."""
    site = site_of(request)
    session = await site.sessions.run(site.people.start, token, address_of(request))
    answer = _page(request, "start.html", title="In")
    answer.set_cookie(**cookie(site, session, SESSION))
    return answer


@open_to_all.get("/log-in")
async def log_in(request: Request) -> Response:
    need_accounts(site_of(request))
    return _page(request, "log_in.html", title="Sign in")


@open_to_all.get("/join")
async def join(request: Request, token: str = "") -> Response:
    need_accounts(site_of(request))
    return _page(request, "join.html", title="Join", invitation=token, least=LEAST)


@open_to_all.get("/renew")
async def renew(request: Request, token: str = "") -> Response:
    need_accounts(site_of(request))
    return _page(request, "renew.html", title="New password", invitation=token, least=LEAST)


@inside.get("/account")
def account(request: Request) -> Response:
    need_accounts(site_of(request))
    return _page(request, "account.html", title="Account", least=LEAST)


# ---------------------------------------------------------------- questions


@inside.get("/")
def first(request: Request) -> Response:
    return RedirectResponse("/label", 303)


@inside.get("/label")
def by_label(request: Request) -> Response:
    return _page(request, "questions.html", title="By label", view="label", count=SCREEN["label"])


@inside.get("/item")
def by_item(request: Request) -> Response:
    return _page(request, "questions.html", title="By item", view="item", count=SCREEN["item"])


@inside.get("/overview")
def overview(request: Request) -> Response:
    site = site_of(request)
    found = dashboard.gathered(site, person_of(request))
    return _page(request, "overview.html", title="Overview", training=site.training(), exports=EXPORTS, **found)


# ---------------------------------------------------------------- admins


@admins.get("/people")
def people(request: Request) -> Response:
    site = site_of(request)
    need_accounts(site_of(request))
    found = dashboard.per_person(site.desk, site.people.everybody())
    links = [(one, dashboard.span(one.expires - site.people.now())) for one in site.people.links()]
    shown: dict[str, Any] = {"people": found, "roles": ROLES, "links": links, "hours": HOURS}
    shown |= {"assigned": assignments(site.desk), "labels": site.desk.given.names}
    return _page(request, "people.html", title="People", **shown)


@admins.get("/disagreements")
def disagreements(request: Request) -> Response:
    need_accounts(site_of(request))
    return _page(request, "disagreements.html", title="Disagreements")


@admins.get("/export/{name}")
def export(request: Request, name: str) -> Response:
    """What is known by now, in a form of those there are."""
    if name not in EXPORTS:
        raise Refused(f"Available: {', '.join(EXPORTS)}.", 404)
    form, kind = EXPORTS[name]
    with tempfile.TemporaryDirectory(prefix="partly-") as folder, for_spreadsheets(name.endswith(".csv")):
        path = Path(folder) / name
        write_labels(site_of(request).fold(), path, form=form)
        content = path.read_bytes()
    return Response(content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


ROUTERS = (open_to_all, inside, admins)
