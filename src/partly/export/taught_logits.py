"""A model combined with label names as torch code that a graph can hold: the same as `teachers.combination`."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from partly.engine import FittedModel
from partly.errors import SettingError
from partly.teachers.combination import Combination
from partly.teachers.label_names import LabelNames, parent_pairs
from partly.teachers.standardization import MIN_LABELS, MIN_SCALE
from partly.teachers.wording import codes


class TaughtLogits(nn.Module):
    """Logits [B, L] and features [B, D] -> logits that are combined with the scores of label names."""

    def __init__(self, combination: Combination, scorer: nn.Module, families: list[tuple[int, int]], k: int) -> None:
        super().__init__()
        self.scorer, self.families = scorer, families
        part = combination.standardizations[k]
        scale = torch.from_numpy(part.scale)
        opinion = scale.isfinite()
        self.count = int(opinion.sum())
        buffers = {
            "slopes": torch.from_numpy(combination.slopes[[0, 1 + 2 * k, 2 + 2 * k]]),
            "bias": torch.from_numpy(combination.bias),
            "center": torch.from_numpy(combination.center),
            "mean": torch.from_numpy(part.mean).float(),
            "inverse": torch.where(opinion, 1 / scale, 0.0).float(),
            "opinion": opinion.float(),
        }
        for name, values in buffers.items():
            self.register_buffer(name, values.clone())

    def forward(self, logits: Tensor, x: Tensor) -> Tensor:
        scores = self.scorer(x)
        for child, parent in self.families:
            higher = torch.maximum(scores[:, parent], scores[:, child])
            scores = torch.cat([scores[:, :parent], higher[:, None], scores[:, parent + 1 :]], dim=1)
        by_label = (scores - self.get_buffer("mean")) * self.get_buffer("inverse")
        slopes = self.get_buffer("slopes")
        total: Tensor = slopes[0] * (logits - self.get_buffer("center")) + slopes[1] * by_label
        return total + slopes[2] * self._per_item(by_label) + self.get_buffer("bias")

    def _per_item(self, by_label: Tensor) -> Tensor:
        if self.count < MIN_LABELS:
            return by_label
        opinion = self.get_buffer("opinion")
        mean = by_label.sum(dim=1, keepdim=True) / self.count
        deviation = (by_label - mean) * opinion
        scale = (deviation.square().sum(dim=1, keepdim=True) / self.count).sqrt()
        return deviation / scale.clamp(min=MIN_SCALE)


def taught_logits(fitted: FittedModel) -> TaughtLogits | None:
    """Return the module for a model whose only teacher is label names on its own features; None without a teacher."""
    taught = fitted.teaching
    if taught is None or not taught.combination.used:
        return None
    (k, *others), origin = taught.combination.used, fitted.method.task.items.origin
    teacher = taught.teachers[k]
    if others or not isinstance(teacher, LabelNames) or origin is None or not teacher.reads(origin):
        raise SettingError(
            f"The teacher of this model ({', '.join(taught.combination.names)}) cannot be exported: a graph can only "
            "hold label names that are compared with the model's own features. Train with --teacher none, or --teacher "
            "names on default features."
        )
    pairs = parent_pairs(teacher.hierarchy, fitted.names)
    if pairs and codes(fitted.names, teacher.descriptions):
        raise SettingError("Some labels of the hierarchy have codes for names, which a graph cannot pass over.")
    scorer = copy.deepcopy(teacher.scorer_for(origin, fitted.names))
    for name, values in list(scorer.named_buffers()):  # a label without words has no opinion, and no NaN either
        scorer.register_buffer(name, torch.nan_to_num(values))
    return TaughtLogits(taught.combination, scorer, pairs, k)
