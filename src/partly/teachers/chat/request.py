"""Build request bodies for the chat completions of an OpenAI-compatible endpoint. Pure functions.

Prompts are the files in `prompts/`. The order of labels and of the answer words is drawn from the seed and the content
of the item, so that no label is always first, and the same item and labels give the same body.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from partly.clock import seed_for
from partly.labels.guidelines import Guideline

WORDS = ("yes", "no", "unsure")  # the answer grammar
NONE = "none"
ANSWER_TOKENS = 8  # room for one word
TOP_TOKENS = 5  # alternatives per token with log-probabilities; hosted endpoints allow 5 to 20
TOKENS_PER_LABEL = 6  # in a list of label numbers
PROBE = "Answer with one word: yes"
TEMPLATES = ("system", "candidates", "answer")


@dataclass(frozen=True)
class Content:
    """An item as the model sees it: a text, or a picture as a data URL."""

    text: str = ""
    picture: str = ""

    @property
    def digest(self) -> str:
        return hashlib.sha256(f"{len(self.text)}:{self.text}{self.picture}".encode()).hexdigest()


@dataclass(frozen=True)
class Style:
    """Settings that a request body depends on besides item and labels."""

    model: str
    guidelines: Mapping[str, Guideline] = field(default_factory=dict)
    seed: int = 0
    logprobs: bool = True
    body: Mapping[str, Any] = field(default_factory=dict)  # further fields; None removes a field

    @property
    def prompt_hash(self) -> str:
        """Return the hash of templates and guidelines, which names the version of the prompts."""
        texts = [template(name) for name in TEMPLATES]
        texts += [self.guidelines[name].to_prompt(name) for name in sorted(self.guidelines)]
        return hashlib.sha256(json.dumps(texts).encode()).hexdigest()[:12]


@cache
def template(name: str) -> str:
    """Return a prompt template."""
    return resources.files(__package__).joinpath("prompts", f"{name}.txt").read_text("utf-8").strip()


def group_labels(names: Sequence[str], size: int) -> list[tuple[str, ...]]:
    """Split sorted names into groups of similar size, at most `size` each; names with a common prefix stay together."""
    ordered = sorted(names)
    count = -(-len(ordered) // size)
    return [tuple(part.tolist()) for part in np.array_split(np.array(ordered, object), count)] if count else []


def shuffle(words: Sequence[str], seed: int, *purpose: str) -> list[str]:
    """Shuffle the words by the seed and the purpose."""
    order = np.random.default_rng(seed_for(seed, *purpose)).permutation(len(words))
    return [words[k] for k in order.tolist()]


def candidates_body(style: Style, content: Content, group: Sequence[str]) -> bytes:
    """Ask which labels of a group could apply; `order_labels` gives their order."""
    lines = [f"{k}. {' '.join(name.split())}" for k, name in enumerate(order_labels(style, content, group), 1)]
    question = template("candidates").replace("{labels}", "\n".join(lines))
    return _body(style, content, question, len(group) * TOKENS_PER_LABEL + ANSWER_TOKENS, logprobs=False)


def order_labels(style: Style, content: Content, group: Sequence[str]) -> list[str]:
    """Return the labels of a group in the order of their numbers."""
    return shuffle(sorted(group), style.seed, "labels", content.digest, *sorted(group))


def answer_body(style: Style, content: Content, label: str, sample: int | None = None) -> bytes:
    """Ask whether a label applies: yes, no or unsure. `sample` is the number of a repeated answer."""
    words = shuffle(WORDS, style.seed, "words", content.digest, label)
    guideline = style.guidelines.get(label, Guideline()).to_prompt(" ".join(label.split()))
    question = template("answer").replace("{choices}", f"{words[0]}, {words[1]} or {words[2]}")
    question = question.replace("{guideline}", guideline)
    return _body(style, content, question, ANSWER_TOKENS, style.logprobs, sample)


def probe_body(style: Style) -> bytes:
    """Build the request that tests whether the endpoint gives log-probabilities."""
    return _body(style, None, PROBE, ANSWER_TOKENS, logprobs=True)


def encode(body: Mapping[str, Any]) -> bytes:
    """Return a body as canonical JSON."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def identify(body: bytes) -> str:
    """Return the id of a request: the SHA-256 of its body."""
    return hashlib.sha256(body).hexdigest()


def _body(
    style: Style, content: Content | None, question: str, max_tokens: int, logprobs: bool, sample: int | None = None
) -> bytes:
    user = question if content is None else _user_message(content, question)
    body: dict[str, Any] = {
        "model": style.model,
        "messages": [{"role": "system", "content": template("system")}, {"role": "user", "content": user}],
        "max_tokens": max_tokens,
        "temperature": 0 if sample is None else 1,
    }
    if logprobs:
        body |= {"logprobs": True, "top_logprobs": TOP_TOKENS}
    if sample is not None:
        body["seed"] = sample
    merged = body | dict(style.body)
    return encode({name: value for name, value in merged.items() if value is not None})


def _user_message(content: Content, question: str) -> Any:
    """Put the item first, so that endpoints can reuse the computation of a common prefix."""
    if content.picture:
        return [
            {"type": "text", "text": "<item>"},
            {"type": "image_url", "image_url": {"url": content.picture}},
            {"type": "text", "text": f"</item>\n\n{question}"},
        ]
    inside = content.text.replace("</item", "< /item")  # the item cannot close its own frame
    return f"<item>\n{inside}\n</item>\n\n{question}"
