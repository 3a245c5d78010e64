"""The JSON API that the script of the pages calls."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from fastapi import Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from partly.annotate import adjudication
from partly.annotate.accounts import SESSION_SECONDS
from partly.annotate.app_context import (
    AppContext,
    Context,
    SignedIn,
    address_of,
    context_of,
    make_guarded_router,
    require_admin,
    require_csrf,
    require_session,
)
from partly.annotate.errors import ApiError
from partly.annotate.importing import import_label_studio
from partly.annotate.links import Role
from partly.annotate.question_queue import MAX_QUESTIONS_PER_PAGE, Question, Value, View
from partly.errors import PartlyError, did_you_mean

public, signed_in = make_guarded_router(), make_guarded_router(require_session)
changes = make_guarded_router(require_session, require_csrf)
admin_changes = make_guarded_router(require_session, require_admin, require_csrf)
ROUTERS = (public, signed_in, changes, admin_changes)
CACHE_HEADERS = {"cache-control": "private, max-age=600"}

Number = Annotated[int, Field(ge=0, le=2**53)]
Seconds = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
Name = Annotated[str, Field(max_length=200)]
Token = Annotated[str, Field(max_length=200)]
Password = Annotated[str, Field(max_length=1000)]
LabelName = Annotated[str, Field(max_length=1000)]


class RequestModel(BaseModel):
    """A request body without type coercion and without unknown fields."""

    model_config = ConfigDict(strict=True, extra="forbid")


class SignInRequest(RequestModel):
    name: Name
    password: Password


class JoinRequest(SignInRequest):
    token: Token


class ResetPasswordRequest(RequestModel):
    token: Token
    password: Password


class ChangePasswordRequest(RequestModel):
    old: Password
    new: Password


class InviteRequest(RequestModel):
    role: Role


class PersonRef(RequestModel):
    person: Number


class LinkRef(RequestModel):
    link: Annotated[str, Field(max_length=64)]


class AssignRequest(RequestModel):
    person: Number
    labels: Annotated[list[LabelName], Field(max_length=10_000)]


class LeaseRequest(RequestModel):
    view: View
    count: Annotated[int, Field(ge=1, le=MAX_QUESTIONS_PER_PAGE)]
    suggest: bool = False


class AnswerRequest(RequestModel):
    question: Number
    value: Value
    seconds: Seconds
    view: View


class QuestionRef(RequestModel):
    question: Number


class AnswerRef(RequestModel):
    answer: Number  # ledger batch


class DecisionRequest(RequestModel):
    question: Number
    value: Value


# ---------------------------------------------------------------- accounts


@public.post("/api/log-in")
async def sign_in(request: Request, context: Context, body: SignInRequest) -> Response:
    return await _start_session(request, context.accounts.sign_in, body.name, body.password)


@public.post("/api/join")
async def join(request: Request, context: Context, body: JoinRequest) -> Response:
    return await _start_session(request, context.accounts.join, body.token, body.name, body.password)


@public.post("/api/renew")
async def reset_password(request: Request, context: Context, body: ResetPasswordRequest) -> Response:
    return await _start_session(request, context.accounts.reset_password, body.token, body.password)


@changes.post("/api/password")
async def change_password(
    request: Request, context: Context, person: SignedIn, body: ChangePasswordRequest
) -> Response:
    return await _start_session(request, context.accounts.change_password, person, body.old, body.new)


async def _start_session(request: Request, authenticate: Callable[..., str], *args: Any) -> Response:
    """Set the cookie of a new session. Passwords are hashed in a pool of their own, so attacks delay only sign-ins."""
    context = context_of(request)
    context.require_accounts()
    token = await context.password_pool.run(authenticate, *args, address_of(request))
    response = JSONResponse({})
    context.set_session(response, token, SESSION_SECONDS)
    return response


@changes.post("/api/log-out")
def sign_out(request: Request, context: Context) -> Response:
    context.accounts.sign_out(request.state.session)
    response = JSONResponse({})
    response.delete_cookie(context.cookie_name)
    return response


@admin_changes.post("/api/invite")
def invite(context: Context, admin: SignedIn, body: InviteRequest) -> dict[str, str]:
    context.require_accounts()
    return {"path": f"/join?token={context.accounts.invite(body.role, admin)}"}


@admin_changes.post("/api/renewal")
def create_password_reset(context: Context, admin: SignedIn, body: PersonRef) -> dict[str, str]:
    context.require_accounts()
    return {"path": f"/renew?token={context.accounts.create_reset_token(body.person, admin)}"}


@admin_changes.post("/api/revoke")
def revoke_link(context: Context, body: LinkRef) -> dict[str, str]:
    context.accounts.revoke_link(body.link)
    return {}


@admin_changes.post("/api/block")
def block(context: Context, admin: SignedIn, body: PersonRef) -> dict[str, str]:
    context.accounts.block(body.person, admin)
    return {}


@admin_changes.post("/api/unblock")
def unblock(context: Context, body: PersonRef) -> dict[str, str]:
    context.accounts.unblock(body.person)
    return {}


@admin_changes.post("/api/assign")
def assign(context: Context, body: AssignRequest) -> dict[str, str]:
    for label in body.labels:
        if label not in context.queue.columns:
            raise ApiError(f"There is no label {label!r}.{did_you_mean(label, context.queue.columns)}", 422)
    context.accounts.assign(body.person, body.labels)
    return {}


# ---------------------------------------------------------------- questions and answers


@changes.post("/api/questions")
def lease_questions(context: Context, person: SignedIn, body: LeaseRequest) -> dict[str, Any]:
    questions, standing = context.queue.lease(person, body.view, body.count), context.queue.standing(person)
    context.refresh_after_round(standing["round"])
    return {"questions": [_question_values(context, question, body.suggest) for question in questions]} | standing


@changes.post("/api/answer")
def answer(context: Context, person: SignedIn, body: AnswerRequest) -> dict[str, Any]:
    saved = asdict(context.queue.answer(person, body.question, body.value, body.seconds, body.view))
    standing: dict[str, int] = saved.pop("standing")
    return saved | standing


@changes.post("/api/undo")
def undo(context: Context, person: SignedIn, body: AnswerRef) -> dict[str, Any]:
    question = context.queue.undo(person, body.answer)
    return {"question": _question_values(context, question, suggest=False)} | context.queue.standing(person)


@changes.post("/api/skip")
def skip(context: Context, person: SignedIn, body: QuestionRef) -> dict[str, Any]:
    context.queue.skip(person, body.question)
    return {}


@signed_in.get("/api/standing")
def standing(context: Context, person: SignedIn) -> dict[str, Any]:
    return context.queue.standing(person) | {"training": context.trainer_status().for_person(person.admin)}


@signed_in.get("/picture/{item}")
def image(context: Context, item: Number) -> Response:
    return _image(context, item, large=False)


@signed_in.get("/picture/{item}/large")
def large_image(context: Context, item: Number) -> Response:
    return _image(context, item, large=True)


def _image(context: AppContext, item: int, large: bool) -> Response:
    if item >= len(context.queue.given):
        raise ApiError("There is no such item.", 404)
    try:
        content, media_type = context.renderer.image(item, large)
    except PartlyError:  # its message names the file
        raise ApiError("This item cannot be shown as an image.", 422) from None
    return Response(content, media_type=media_type, headers=CACHE_HEADERS)


def _question_values(context: AppContext, question: Question, suggest: bool) -> dict[str, Any]:
    """Return a question for the page: never whether it is random, and the prediction only on request."""
    values = {"id": question.id, "label": question.label, "name": question.name}
    values |= _item_values(context, question.item, question.label)
    return values | ({"probability": question.probability} if suggest else {})


def _item_values(context: AppContext, item: int, label: str) -> dict[str, Any]:
    return {"seen": context.renderer.describe(item), "guideline": context.guideline(label)}


# ---------------------------------------------------------------- import and adjudication


@admin_changes.post("/api/import")
async def import_answers(request: Request, context: Context, admin: SignedIn, force: bool = False) -> dict[str, Any]:
    """Import the request body, a Label Studio export; with `force` even if it was imported before."""
    with tempfile.TemporaryDirectory(prefix="partly-") as folder:
        path = Path(folder) / "tasks.json"
        with path.open("wb") as file:
            async for part in request.stream():
                file.write(part)
        result = await context.import_pool.run(import_label_studio, context.queue, admin, path, force)
    await context.import_pool.run(context.refresh_labels)
    return asdict(result)


@admin_changes.post("/api/disagreements")
def disagreements(context: Context) -> dict[str, Any]:
    listed, left = adjudication.list_disagreements(context.queue)
    values = [asdict(entry) | _item_values(context, entry.item, entry.label) for entry in listed]
    return {"disagreements": values, "left": left}


@admin_changes.post("/api/decide")
def decide(context: Context, admin: SignedIn, body: DecisionRequest) -> dict[str, Any]:
    return asdict(adjudication.decide(context.queue, admin, body.question, body.value))


@admin_changes.post("/api/undo-decision")
def undo_decision(context: Context, admin: SignedIn, body: AnswerRef) -> dict[str, Any]:
    adjudication.undo_decision(context.queue, admin, body.answer)
    return {}
