"""The part of `partly teach` that asks a language model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from partly.cli._label_names import read_labels
from partly.cli._language_model_requests import CONFIDENCE_WORDS, show_forecast, write_batch
from partly.cli.printing import print_json, say
from partly.errors import DataError, SettingError

if TYPE_CHECKING:
    from partly.data import Dataset
    from partly.labels.guidelines import Guideline
    from partly.teachers import LanguageModel
    from partly.teachers.chat.annotator import Opinions

PANEL = "Language model"


def _about(help: str) -> dict[str, str]:
    return {"help": help, "panel": PANEL}


@dataclass(frozen=True)
class LanguageModelOptions:
    """Options for an OpenAI-compatible endpoint."""

    url: str | None = field(default=None, metadata=_about("Base URL, such as http://127.0.0.1:8000/v1."))
    model: str | None = field(default=None, metadata=_about("Name of the model, as the endpoint knows it."))
    confidence_from: str = field(default="auto", metadata=_about("Probabilities by: auto, logprobs, samples or votes."))
    seed: int = field(default=0, metadata=_about("Seed of the order of labels and answer words in prompts."))
    samples: int = field(default=5, metadata=_about("Answers per entry where confidence comes from samples."))
    body: Path | None = field(default=None, metadata=_about("JSON file with further fields of each request."))
    dry_run: bool = field(
        default=False, metadata=_about("Show one prompt and a forecast from 20 calls, which are kept.")
    )
    batch: Path | None = field(default=None, metadata=_about("Write requests as JSON lines instead of sending them."))
    collect: Path | None = field(default=None, metadata=_about("Read the replies to a batch file; nothing is sent."))
    max_calls: int | None = field(default=None, metadata=_about("Largest number of calls."))
    max_tokens: int | None = field(default=None, metadata=_about("Largest number of tokens."))
    max_minutes: float | None = field(default=None, metadata=_about("Largest number of minutes."))
    max_money: float | None = field(default=None, metadata=_about("Largest cost; needs prices."))
    input_price: float | None = field(default=None, metadata=_about("Price of a million prompt tokens."))
    output_price: float | None = field(default=None, metadata=_about("Price of a million answer tokens."))
    concurrency: int = field(default=4, metadata=_about("Requests at a time."))
    timeout: float = field(default=60.0, metadata=_about("Seconds to wait for a reply."))
    ledger: str | None = field(default=None, metadata=_about("Ledger to which the statements of the model are added."))

    def teacher(self, guidelines: dict[str, Guideline]) -> LanguageModel:
        """Return the teacher that these options describe."""
        from partly.teachers import LanguageModel

        if self.url is None or self.model is None:
            raise SettingError("A language model needs both --url and --model.")
        return LanguageModel(
            self.url,
            self.model,
            guidelines,
            confidence=self.confidence_from,  # type: ignore[arg-type]
            samples=self.samples,
            seed=self.seed,
            body=None if self.body is None else _read_body(self.body),
            calls=self.max_calls,
            tokens=self.max_tokens,
            minutes=self.max_minutes,
            money=self.max_money,
            input_price=self.input_price,
            output_price=self.output_price,
            concurrency=self.concurrency,
            timeout=self.timeout,
        )


def refuse_encoder_options(**options: Any) -> None:
    """Refuse options that apply to label names only."""
    wrong = [f"--{name}" for name, value in options.items() if value not in (None, "auto", [], ())]
    if wrong:
        raise SettingError(
            f"{', '.join(wrong)}: a language model has none. Write guidelines into the file of --labels."
        )


def ask(options: LanguageModelOptions, data: Dataset, names: Path, out: Path | None, as_json: bool) -> None:
    """Ask about the items, write a batch file, or forecast the cost."""
    words, guidelines = read_labels(names)
    teacher = options.teacher(guidelines)
    if options.batch is not None and (options.collect is not None or options.dry_run):
        raise SettingError("--batch, --collect and --dry-run are three steps: give one of them.")
    if options.dry_run:
        show_forecast(teacher, data, words, as_json)
    elif options.batch is not None:
        write_batch(teacher, data, words, options.batch, as_json)
    elif out is None and options.ledger is None:
        raise SettingError("Nothing would be saved: give --out FILE, --ledger LEDGER, or --dry-run.")
    else:
        _annotate(teacher, options, data, words, out, as_json)


def _read_body(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{path}: cannot be read as JSON ({error}).") from None
    if not isinstance(content, dict):
        raise DataError(f'{path}: give an object, such as {{"top_p": 1}}.')
    return content


# ---------------------------------------------------------------- answers


def _annotate(
    teacher: LanguageModel,
    options: LanguageModelOptions,
    data: Dataset,
    words: Sequence[str],
    out: Path | None,
    as_json: bool,
) -> None:
    from partly import data as files
    from partly.ledger import Ledger, without_password
    from partly.teachers.contract import vocabulary

    ledger = None if options.ledger is None else Ledger(without_password(options.ledger))
    missing: dict[str, None] = {}
    if options.collect is not None:
        _collect(teacher, options.collect)
        client = teacher.annotator.client
        client.endpoint, client.unsent = None, lambda key, body: missing.update({key: None})
    opinions = teacher.opinions(data.items, vocabulary(words, data.labels.ids))
    drift = teacher.annotator.measure_drift() if options.collect is None else None
    if out is not None:
        files.write_scores(out, opinions.chance, data.labels.ids, words)
    batch = None if ledger is None else _append(ledger, teacher, opinions, data.labels.ids, words)
    result = _summary(teacher, opinions, len(missing)) | {"out": out, "batch": batch}
    result |= (
        {"asked_again": 0, "changed": 0} if drift is None else {"asked_again": drift.asked, "changed": drift.changed}
    )
    say("\n".join(_lines(result, teacher)))
    print_json(result, as_json)


def _collect(teacher: LanguageModel, path: Path) -> None:
    from partly.teachers.chat.batch import collect

    collected = collect(path, teacher.annotator.client.replies)
    say(
        f"{path}: {collected.kept} replies kept, {collected.failed} requests failed, {collected.foreign} replies to "
        f"requests that were not written here, {collected.damaged} damaged lines."
    )


def _append(
    ledger: Any, teacher: LanguageModel, opinions: Opinions, ids: Sequence[str], words: Sequence[str]
) -> int | None:
    """Append the statements as one batch, with probabilities calibrated on people's answers."""
    import numpy as np

    from partly.ledger.history import LANGUAGE_MODEL
    from partly.teachers.chat.annotator import NO_OPINION
    from partly.teachers.chat.recalibration import recalibrate

    rows, columns = np.nonzero(opinions.value != NO_OPINION)
    if not len(rows):
        return None
    chance = recalibrate(opinions.chance, ledger.labels(), ids, words)
    values = [None if value == 0 else int(value == 1) for value in opinions.value[rows, columns].tolist()]
    models = teacher.annotator.client.counts.models
    number: int = ledger.append(
        [ids[i] for i in rows.tolist()],
        [words[j] for j in columns.tolist()],
        values,
        kind="model",
        author=models.most_common(1)[0][0] if models else teacher.model,
        run=f"{LANGUAGE_MODEL}{teacher.prompt_hash}",
        confidence=np.where(np.isnan(chance), 0.5, chance)[rows, columns],
        note=f"confidence from {teacher.annotator.resolve_mode()}, seed {teacher.seed}",
        add_labels=True,
        skip_repeated=True,
    )
    return number


def _summary(teacher: LanguageModel, opinions: Opinions, missing: int) -> dict[str, Any]:
    from partly.teachers.chat.annotator import NO_OPINION

    client = teacher.annotator.client
    counts, meter = client.counts, client.meter
    answer_counts = {
        word: int((opinions.value == value).sum())
        for word, value in (("yes", 1), ("no", -1), ("cannot_tell", 0), ("no_opinion", NO_OPINION))
    }
    numbers = {name: getattr(counts, name) for name in ("cached", "malformed", "refused", "failed", "repeated")}
    spent = {"calls": meter.calls, "input_tokens": meter.input_tokens, "output_tokens": meter.output_tokens}
    return {
        "items": len(opinions.value),
        "labels": opinions.value.shape[1],
        **answer_counts,
        **spent,
        "money": meter.money if teacher.caps.input_price is not None else None,
        **numbers,
        "confidence": teacher.annotator.resolve_mode(),
        "models": dict(counts.models),
        "stopped_by": meter.reached or None,
        "missing": missing,
    }


def _lines(result: dict[str, Any], teacher: LanguageModel) -> list[str]:
    lines = [
        f"{result['items']} items, {result['labels']} labels: {result['yes']} yes, {result['no']} no, "
        f"{result['cannot_tell']} cannot tell; no opinion about the other {result['no_opinion']} entries.",
        f"Confidence from {CONFIDENCE_WORDS[result['confidence']]}.",
    ]
    money = "" if result["money"] is None else f", cost {result['money']:.4g}"
    lines.append(
        f"{result['calls']} calls, {result['input_tokens']} + {result['output_tokens']} tokens{money}; "
        f"{result['cached']} replies from the cache."
    )
    troubles = {
        "malformed": "replies outside of the answer grammar",
        "refused": "requests refused",
        "failed": "requests without a reply",
        "repeated": "requests sent again, since an interruption left them without a reply",
        "missing": "requests without a reply so far (write the rest with --batch)",
    }
    lines += [f"{result[name]:,} {words}." for name, words in troubles.items() if result[name]]
    if len(result["models"]) > 1:
        lines.append(f"Warning: replies come from {len(result['models'])} models: {', '.join(result['models'])}.")
    if result["asked_again"]:
        lines.append(f"Asked again: {result['changed']} of {result['asked_again']} answers changed.")
    if result["stopped_by"]:
        lines.append(f"Stopped by the cap on {result['stopped_by']}. Repeat the command to continue: replies are kept.")
    if result["out"]:
        lines.append(f"Probabilities: {result['out']} (for --teacher)")
    if result["batch"]:
        lines.append(
            f"Ledger: batch {result['batch']} (`partly ledger undo` removes it). `partly annotate` asks people about a "
            "random sample before it may be trained on."
        )
    return lines
