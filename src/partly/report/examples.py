"""Example items of a report: which items to show, their entries, and a preview of each."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from PIL import Image

from partly.items import Items, decode_texts, is_decoded
from partly.labels import Labels, Ternary
from partly.report.layout import data_uri
from partly.report.plots import shorten

MAX_EXAMPLES = {"fair": 6, "wrong": 3, "unknown": 3}  # items of each kind
MAX_ENTRIES = 9  # of an item
MAX_ENTRIES_WITH_TRUE_NEGATIVES = 5  # where the rest are known no's that are predicted as no
PREVIEW_SIDE = 160  # pixels; larger images are scaled down
MAX_PNG_SIDE = 64  # pixels; larger images are compressed as JPEG
JPEG_QUALITY = 80
MAX_TEXT_LENGTH = 280  # characters
DIMMED = 0.5  # brightness of an image where there is no evidence

Kind = Literal["fair", "wrong", "unknown"]
Pixels = npt.NDArray[np.uint8]  # [H, W, 1 or 3]
Evidence = Callable[[Items, Sequence[int]], npt.NDArray[Any]]  # items, a label of each -> [B, h, w], above 0 for yes


@dataclass(frozen=True, eq=False)
class Examples:
    """Items to choose from. For training items, `given` holds the observed labels and `truth` those of a simulation."""

    probabilities: tuple[npt.NDArray[Any], ...]  # [K, L], one for each run
    truth: Labels | None = None
    given: Labels | None = None
    items: Items | None = None  # K; only chosen ones are decoded
    evidence: tuple[Evidence, ...] = ()  # one for each run, on request


@dataclass(frozen=True)
class ExampleEntry:
    """One entry. given, truth: +1 yes, -1 no, 0 unknown."""

    name: str
    probability: float
    given: int
    truth: int
    threshold: float = 0.5

    @property
    def prediction(self) -> int:
        return 1 if self.probability >= self.threshold else -1

    @property
    def wrong(self) -> bool:
        """True if the prediction contradicts the truth, or the observed label where the truth is unknown."""
        return (self.truth or self.given) == -self.prediction


@dataclass(frozen=True)
class Card:
    """One item. label: the reason why it was chosen, else its most probable label; entries: most probable first."""

    item: int
    id: str
    kind: Kind
    label: int
    entries: tuple[ExampleEntry, ...]
    summary: str


def choose_examples(
    examples: Examples, names: tuple[str, ...], thresholds: npt.NDArray[Any] | None = None
) -> list[Card]:
    """Choose items of the first run: a fair sample, the most confident errors, and the most confident new yes.

    The latter two contain each label at most once. thresholds: on probabilities, [L].
    """
    p = examples.probabilities[0]
    cuts = np.full(len(names), 0.5) if thresholds is None else thresholds
    truth, given = (_ternary_rows(labels, p.shape) for labels in (examples.truth, examples.given))
    known, yes = np.where(truth != 0, truth, given), p >= cuts
    wrong = (known != 0) & (yes != (known == 1))
    fair = evenly_spaced(len(p), MAX_EXAMPLES["fair"])
    chosen: dict[int, tuple[Kind, int]] = {int(i): ("fair", int(p[i].argmax())) for i in fair}
    _add_strongest(chosen, "wrong", np.where(wrong, np.abs(p - (known == 1)), 0.0))
    if examples.given is not None:
        _add_strongest(chosen, "unknown", np.where((given == 0) & yes & ~wrong, p, 0.0))
    source = examples.truth or examples.given
    cards = []
    for i, (kind, label) in chosen.items():
        columns = zip(names, p[i], given[i], truth[i], cuts, strict=True)
        entries = [ExampleEntry(name, float(a), int(b), int(c), float(t)) for name, a, b, c, t in columns]
        item_id = source.id_at(i) if source else str(i)
        cards.append(Card(i, item_id, kind, label, _choose_entries(entries, label), _summarize(entries)))
    return cards


def _add_strongest(chosen: dict[int, tuple[Kind, int]], kind: Kind, strength: npt.NDArray[Any]) -> None:
    """Add the item with the highest strength [K, L] above 0 of each label, strongest first."""
    rows, values = strength.argmax(axis=0), strength.max(axis=0)
    left = MAX_EXAMPLES[kind]
    for j in np.argsort(-values, kind="stable"):
        if not left or values[j] <= 0:
            return
        if int(rows[j]) not in chosen:
            chosen[int(rows[j])] = kind, int(j)
            left -= 1


def evenly_spaced(count: int, limit: int) -> npt.NDArray[np.intp]:
    """Return at most `limit` of `count` positions at even distances."""
    return np.unique(np.linspace(0, count - 1, min(count, limit)).round().astype(np.intp))


def _ternary_rows(labels: Labels | None, shape: tuple[int, ...]) -> Ternary:
    return np.zeros(shape, np.int8) if labels is None else labels.rows(slice(None))


def _choose_entries(entries: list[ExampleEntry], label: int) -> tuple[ExampleEntry, ...]:
    """Choose entries by priority: the card's label, errors, every yes, then known no's; return most probable first."""

    def is_plain_no(entry: ExampleEntry) -> bool:
        return 1 not in (entry.prediction, entry.truth, entry.given) and entry is not entries[label]

    def priority(entry: ExampleEntry) -> tuple[bool, bool, bool, float]:
        return entry is not entries[label], not entry.wrong, is_plain_no(entry), -entry.probability

    candidates = sorted((entry for entry in entries if entry.given or not is_plain_no(entry)), key=priority)
    interesting = sum(not is_plain_no(entry) for entry in candidates)
    limit = min(max(MAX_ENTRIES_WITH_TRUE_NEGATIVES, interesting), MAX_ENTRIES)
    return tuple(sorted(candidates[:limit], key=lambda entry: -entry.probability))


def _summarize(entries: list[ExampleEntry]) -> str:
    known = [entry for entry in entries if entry.truth or entry.given]
    wrong = sum(entry.wrong for entry in known)
    if not known:
        return "no known label"
    return f"{wrong} of {len(known)} known labels wrong" if wrong else f"all {len(known)} known labels right"


# ---------------------------------------------------------------- previews


@dataclass(frozen=True, eq=False)
class Preview:
    """Preview of an item. evidence: the image, gray and dim where nothing supports the label."""

    pixels: Pixels | None = None
    evidence: Pixels | None = None
    text: str = ""


def make_previews(
    items: Items, positions: Sequence[int], labels: Sequence[int], evidence: Evidence | None = None
) -> list[Preview]:
    """Make previews of the items at these positions, decoding no others. labels: whose evidence to show, one each."""
    chosen = items[np.array(positions, np.int64)]
    if items.kind == "texts":
        return [Preview(text=shorten(text, MAX_TEXT_LENGTH)) for text in decode_texts(chosen.take(slice(None)))]
    if items.kind != "pictures":
        return [Preview()] * len(positions)
    maps = [None] * len(positions) if evidence is None else evidence(chosen, labels)
    resized = chosen.resize(PREVIEW_SIDE) if is_decoded(chosen) else chosen
    batch = resized.take(slice(None)).to(torch.uint8).permute(0, 2, 3, 1).numpy()
    images = [_scale_down(pixels) for pixels in batch]
    return [
        Preview(pixels, None if places is None else highlight_evidence(pixels, places))
        for pixels, places in zip(images, maps, strict=True)
    ]


def highlight_evidence(pixels: Pixels, places: npt.NDArray[Any]) -> Pixels | None:
    """Show the image in color where places [h, w] support a label, and gray and dim elsewhere; None where none does.

    Color fades with the square root of the evidence relative to the strongest place.
    """
    if not places.max() > 0:
        return None
    share = Image.fromarray(np.sqrt(np.maximum(places, 0) / places.max()).astype(np.float32))
    color = np.asarray(share.resize(pixels.shape[1::-1], Image.Resampling.BILINEAR))[:, :, None]
    gray = DIMMED * pixels.mean(axis=2, keepdims=True)
    mixed: Pixels = (color * pixels + (1 - color) * gray).round().clip(0, 255).astype(np.uint8)
    return mixed


def image_uri(pixels: Pixels) -> str:
    """Return an image as a data URI: a small JPEG, or a PNG where it is tiny."""
    file = io.BytesIO()
    if is_tiny(pixels):
        _to_image(pixels).save(file, "PNG", optimize=True)
        return data_uri(file.getvalue(), "png")
    _to_image(pixels).save(file, "JPEG", quality=JPEG_QUALITY, optimize=True)
    return data_uri(file.getvalue(), "jpeg")


def is_tiny(pixels: Pixels) -> bool:
    return bool(max(pixels.shape[:2]) <= MAX_PNG_SIDE)


def _scale_down(pixels: Pixels) -> Pixels:
    if max(pixels.shape[:2]) <= PREVIEW_SIDE:
        return pixels
    image = _to_image(pixels)
    image.thumbnail((PREVIEW_SIDE, PREVIEW_SIDE))
    return np.asarray(image).reshape(*image.size[::-1], -1)


def _to_image(pixels: Pixels) -> Image.Image:
    return Image.fromarray(pixels[:, :, 0] if pixels.shape[2] == 1 else pixels)
