"""The requests of `partly teach` to a language model: batch files, and the forecast of --dry-run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partly.cli.printing import print_json, say, show
from partly.errors import DataError

if TYPE_CHECKING:
    from partly.data import Dataset
    from partly.teachers import LanguageModel

CONFIDENCE_WORDS = {
    "logprobs": "log-probabilities of the answer word",
    "samples": "repeated samples",
    "votes": "a single answer each, so there is no real confidence",
}
PICTURE_SHOWN = 60  # characters of a data URL in --dry-run


def write_batch(teacher: LanguageModel, data: Dataset, words: Sequence[str], path: Path, as_json: bool) -> None:
    from partly.atomic_io import atomic_output
    from partly.teachers.chat.batch import BatchWriter

    annotator = teacher.annotator
    with atomic_output(path) as file:
        writer = BatchWriter(file)
        annotator.client.endpoint, annotator.client.unsent = None, writer
        for _ in teacher.opinion_blocks(data.items, words):
            pass
    annotator.client.replies.note_sent(writer.ids, batch=True)
    if writer.ids:
        say(
            f"{len(writer.ids)} requests: {path}. Read the replies with --collect. With more than "
            f"{annotator.direct} labels, the first file asks for candidates: repeat --batch after that for the answers."
        )
    else:
        say("All requests have replies: run the command without --batch.")
    print_json({"requests": len(writer.ids), "batch": path}, as_json)


def show_forecast(teacher: LanguageModel, data: Dataset, words: Sequence[str], as_json: bool) -> None:
    """Show a prompt, and the expected calls, tokens and cost of the run."""
    import numpy as np

    from partly.teachers.chat.content import contents_of
    from partly.teachers.chat.forecast import forecast
    from partly.teachers.chat.request import WORDS, answer_body

    if not len(data.items):
        raise DataError("There are no items to ask about.")

    def load(item: int) -> Any:
        return contents_of(data.items[np.array([item])], teacher.max_side)[0]

    expected = forecast(teacher.annotator, len(data.items), words, load, teacher.seed)
    body = json.loads(answer_body(teacher.annotator.style, load(0), words[0]))
    fields = ("calls", "input_tokens", "output_tokens", "money", "sampled", "answers")
    result = {name: getattr(expected, name) for name in fields}
    result["answers"] = {word: expected.answers.get(word, 0) for word in WORDS} | {"other": expected.answers.get("", 0)}
    if print_json(result | {"prompt": body, "confidence": teacher.annotator.mode}, as_json):
        return
    for message in body["messages"]:
        show(f"[{message['role']}]\n{_to_text(message['content'])}\n")
    say(f"Confidence from {CONFIDENCE_WORDS[teacher.annotator.resolve_mode()]}.")
    names = {"calls": "calls", "input_tokens": "prompt tokens", "output_tokens": "answer tokens", "money": "cost"}
    for name, title in names.items():
        value, low, high = result[name]
        if name != "money" or teacher.caps.input_price is not None:
            form = ",.4g" if name == "money" else ",.0f"
            say(f"{title:>13}: {value:{form}} (90 % interval {low:{form}} to {high:{form}})")
    counts = ", ".join(f"{count} {word}" for word, count in result["answers"].items())
    say(f"Forecast from {expected.sampled} calls, whose replies are kept. Answers: {counts}.")


def _to_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text") or f"{part['image_url']['url'][:PICTURE_SHOWN]}..." for part in content)
