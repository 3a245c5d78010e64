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
    address_of,
    context_of,
    guarded_router,
    person_of,
    require_admin,
    require_csrf,
    require_session,
)
from partly.annotate.errors import ApiError
from partly.annotate.importing import import_label_studio
from partly.annotate.links import Role
from partly.annotate.question_queue import MAX_QUESTIONS_PER_PAGE, Question, Value, View
from partly.errors import PartlyError, did_you_mean

public, signed_in = guarded_router(), guarded_router(require_session)
changes = guarded_router(require_session, require_csrf)
admin_changes = guarded_router(require_session, require_admin, require_csrf)
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
async def sign_in(request: Request, body: SignInRequest) -> Response:
    return await _start_session(request, context_of(request).accounts.sign_in, body.name, body.password)


@public.post("/api/join")
async def join(request: Request, body: JoinRequest) -> Response:
    return await _start_session(request, context_of(request).accounts.join, body.token, body.name, body.password)


@public.post("/api/renew")
async def reset_password(request: Request, body: ResetPasswordRequest) -> Response:
    return await _start_session(request, context_of(request).accounts.reset_password, body.token, body.password)


@changes.post("/api/password")
async def change_password(request: Request, body: ChangePasswordRequest) -> Response:
    change = context_of(request).accounts.change_password
    return await _start_session(request, change, person_of(request), body.old, body.new)


async def _start_session(request: Request, authenticate: Callable[..., str], *args: Any) -> Response:
    """Set the cookie of a new session. Passwords are hashed in a pool of their own, so attacks delay only sign-ins."""
    context = context_of(request)
    context.require_accounts()
    token = await context.password_pool.run(authenticate, *args, address_of(request))
    response = JSONResponse({})
    context.set_session(response, token, SESSION_SECONDS)
    return response


@changes.post("/api/log-out")
def sign_out(request: Request) -> Response:
    context = context_of(request)
    context.accounts.sign_out(request.state.session)
    response = JSONResponse({})
    response.delete_cookie(context.cookie_name)
    return response


@admin_changes.post("/api/invite")
def invite(request: Request, body: InviteRequest) -> dict[str, str]:
    context = context_of(request)
    context.require_accounts()
    return {"path": f"/join?token={context.accounts.invite(body.role, person_of(request))}"}


@admin_changes.post("/api/renewal")
def create_password_reset(request: Request, body: PersonRef) -> dict[str, str]:
    context = context_of(request)
    context.require_accounts()
    return {"path": f"/renew?token={context.accounts.create_reset_token(body.person, person_of(request))}"}


@admin_changes.post("/api/revoke")
def revoke_link(request: Request, body: LinkRef) -> dict[str, str]:
    context_of(request).accounts.revoke_link(body.link)
    return {}


@admin_changes.post("/api/block")
def block(request: Request, body: PersonRef) -> dict[str, str]:
    context_of(request).accounts.block(body.person, person_of(request))
    return {}


@admin_changes.post("/api/unblock")
def unblock(request: Request, body: PersonRef) -> dict[str, str]:
    context_of(request).accounts.unblock(body.person)
    return {}


@admin_changes.post("/api/assign")
def assign(request: Request, body: AssignRequest) -> dict[str, str]:
    context = context_of(request)
    for label in body.labels:
        if label not in context.queue.columns:
            raise ApiError(f"There is no label {label!r}.{did_you_mean(label, context.queue.columns)}", 422)
    context.accounts.assign(body.person, body.labels)
    return {}


# ---------------------------------------------------------------- questions and answers


@changes.post("/api/questions")
def lease_questions(request: Request, body: LeaseRequest) -> dict[str, Any]:
    context, person = context_of(request), person_of(request)
    questions, standing = context.queue.lease(person, body.view, body.count), context.queue.standing(person)
    context.refresh_after_round(standing["round"])
    return {"questions": [_question_values(request, question, body.suggest) for question in questions]} | standing


@changes.post("/api/answer")
def answer(request: Request, body: AnswerRequest) -> dict[str, Any]:
    queue, person = context_of(request).queue, person_of(request)
    saved = asdict(queue.answer(person, body.question, body.value, body.seconds, body.view))
    standing: dict[str, int] = saved.pop("standing")
    return saved | standing


@changes.post("/api/undo")
def undo(request: Request, body: AnswerRef) -> dict[str, Any]:
    queue, person = context_of(request).queue, person_of(request)
    question = queue.undo(person, body.answer)
    return {"question": _question_values(request, question, suggest=False)} | queue.standing(person)


@changes.post("/api/skip")
def skip(request: Request, body: QuestionRef) -> dict[str, Any]:
    context_of(request).queue.skip(person_of(request), body.question)
    return {}


@signed_in.get("/api/standing")
def standing(request: Request) -> dict[str, Any]:
    context, person = context_of(request), person_of(request)
    return context.queue.standing(person) | {"training": context.trainer_status().for_person(person.admin)}


@signed_in.get("/picture/{item}")
def image(request: Request, item: Number) -> Response:
    return _image(request, item, large=False)


@signed_in.get("/picture/{item}/large")
def large_image(request: Request, item: Number) -> Response:
    return _image(request, item, large=True)


def _image(request: Request, item: int, large: bool) -> Response:
    context = context_of(request)
    if item >= len(context.queue.given):
        raise ApiError("There is no such item.", 404)
    try:
        content, media_type = context.renderer.image(item, large)
    except PartlyError:  # its message names the file
        raise ApiError("This item cannot be shown as an image.", 422) from None
    return Response(content, media_type=media_type, headers=CACHE_HEADERS)


def _question_values(request: Request, question: Question, suggest: bool) -> dict[str, Any]:
    """Return a question for the page: never whether it is random, and the prediction only on request."""
    values = {"id": question.id, "label": question.label, "name": question.name}
    values |= _item_values(request, question.item, question.label)
    return values | ({"probability": question.probability} if suggest else {})


def _item_values(request: Request, item: int, label: str) -> dict[str, Any]:
    context = context_of(request)
    return {"seen": context.renderer.describe(item), "guideline": context.guideline(label)}


# ---------------------------------------------------------------- import and adjudication


@admin_changes.post("/api/import")
async def import_answers(request: Request, force: bool = False) -> dict[str, Any]:
    """Import the request body, a Label Studio export; with `force` even if it was imported before."""
    context, person = context_of(request), person_of(request)
    with tempfile.TemporaryDirectory(prefix="partly-") as folder:
        path = Path(folder) / "tasks.json"
        with path.open("wb") as file:
            async for part in request.stream():
                file.write(part)
        result = await context.import_pool.run(import_label_studio, context.queue, person, path, force)
    await context.import_pool.run(context.refresh_labels)
    return asdict(result)


@admin_changes.post("/api/disagreements")
def disagreements(request: Request) -> dict[str, Any]:
    listed, left = adjudication.list_disagreements(context_of(request).queue)
    values = [asdict(entry) | _item_values(request, entry.item, entry.label) for entry in listed]
    return {"disagreements": values, "left": left}


@admin_changes.post("/api/decide")
def decide(request: Request, body: DecisionRequest) -> dict[str, Any]:
    return asdict(adjudication.decide(context_of(request).queue, person_of(request), body.question, body.value))


@admin_changes.post("/api/undo-decision")
def undo_decision(request: Request, body: AnswerRef) -> dict[str, Any]:
    adjudication.undo_decision(context_of(request).queue, person_of(request), body.answer)
    return {}
