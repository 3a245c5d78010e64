"""The HTML pages. Templates escape all values; the script inserts questions as text."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from partly.annotate import dashboard
from partly.annotate.accounts import ROLES, SESSION_SECONDS, csrf_token
from partly.annotate.app_context import (
    Context,
    SignedIn,
    address_of,
    context_of,
    make_guarded_router,
    require_admin,
    require_session,
)
from partly.annotate.errors import ApiError
from partly.annotate.links import INVITATION_SECONDS, PASSWORD_RESET_SECONDS
from partly.annotate.passwords import MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH
from partly.data import for_spreadsheets, write_labels

public, signed_in = make_guarded_router(), make_guarded_router(require_session)
admins = make_guarded_router(require_session, require_admin)
ROUTERS = (public, signed_in, admins)
EXPORTS = {  # file name -> format and media type
    "labels.csv": ("wide", "text/csv"),
    "labels.parquet": ("long", "application/vnd.apache.parquet"),
    "label-studio.json": ("label-studio", "application/json"),
}
LINK_HOURS = {"invitation": round(INVITATION_SECONDS / 3600), "reset": round(PASSWORD_RESET_SECONDS / 3600)}
QUESTIONS_PER_PAGE = {"label": 12, "item": 8}


@cache
def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("partly.annotate"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"min_password": MIN_PASSWORD_LENGTH, "max_password": MAX_PASSWORD_LENGTH}
    return environment


def _render(request: Request, template: str, status: int = 200, **values: Any) -> HTMLResponse:
    context, person = context_of(request), getattr(request.state, "person", None)
    values |= {"project": context.title, "has_accounts": context.has_accounts, "person": person}
    values |= {"token": csrf_token(request.state.session) if person else "", "path": request.url.path}
    return HTMLResponse(_environment().get_template(template).render(values), status)


def render_message(request: Request, title: str, text: str, status: int) -> HTMLResponse:
    return _render(request, "message.html", status, title=title, text=text)


# ---------------------------------------------------------------- signing in


@public.get("/start")
async def start(request: Request, context: Context, token: str = "") -> Response:
    """Sign in by the link that the server printed, once.

    The page redirects by script: a cookie of SameSite=strict is not sent if another program opened the link.
    """
    session = await context.session_pool.run(context.accounts.sign_in_by_link, token, address_of(request))
    response = _render(request, "start.html", title="Signed in")
    context.set_session(response, session, SESSION_SECONDS)
    return response


@public.get("/log-in")
async def sign_in(request: Request, context: Context) -> Response:
    context.require_accounts()
    return _render(request, "sign_in.html", title="Sign in")


@public.get("/join")
async def join(request: Request, context: Context, token: str = "") -> Response:
    context.require_accounts()
    return _render(request, "join.html", title="Create account", invitation=token)


@public.get("/renew")
async def reset_password(request: Request, context: Context, token: str = "") -> Response:
    context.require_accounts()
    return _render(request, "reset_password.html", title="New password", invitation=token)


@signed_in.get("/account")
def account(request: Request, context: Context) -> Response:
    context.require_accounts()
    return _render(request, "account.html", title="Account")


# ---------------------------------------------------------------- questions


@signed_in.get("/")
def home(request: Request) -> Response:
    return RedirectResponse("/label", 303)


@signed_in.get("/label")
def by_label(request: Request) -> Response:
    return _render(request, "questions.html", title="By label", view="label", count=QUESTIONS_PER_PAGE["label"])


@signed_in.get("/item")
def by_item(request: Request) -> Response:
    return _render(request, "questions.html", title="By item", view="item", count=QUESTIONS_PER_PAGE["item"])


@signed_in.get("/overview")
def overview(request: Request, context: Context, person: SignedIn) -> Response:
    values = dashboard.overview_data(context, person)
    return _render(
        request, "overview.html", title="Overview", trainer=context.trainer_status(), exports=EXPORTS, **values
    )


# ---------------------------------------------------------------- admins


@admins.get("/people")
def people(request: Request, context: Context) -> Response:
    context.require_accounts()
    accounts, names = context.accounts, context.queue.given.names
    return _render(
        request,
        "people.html",
        title="People",
        people=dashboard.people_data(context.queue, accounts.list_people()),
        roles=ROLES,
        links=[(link, dashboard.format_duration(link.expires - accounts.now())) for link in accounts.list_links()],
        hours=LINK_HOURS,
        assigned=accounts.read_assignments(names),
        labels=names,
    )


@admins.get("/disagreements")
def disagreements(request: Request) -> Response:
    return _render(request, "disagreements.html", title="Disagreements")


@admins.get("/export/{name}")
def export(context: Context, name: str) -> Response:
    """Download the current labels in one of the formats of `EXPORTS`."""
    if name not in EXPORTS:
        raise ApiError(f"Available exports: {', '.join(EXPORTS)}.", 404)
    form, media_type = EXPORTS[name]
    with tempfile.TemporaryDirectory(prefix="partly-") as folder, for_spreadsheets(name.endswith(".csv")):
        path = Path(folder) / name
        write_labels(context.refresh_labels(), path, form=form)
        content = path.read_bytes()
    return Response(content, media_type=media_type, headers={"content-disposition": f'attachment; filename="{name}"'})
