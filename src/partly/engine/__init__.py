"""One training run: from a configuration and data to a fitted model, and the folder that says exactly what was run.

`resolve(config, data)` computes every derived fact once and returns a frozen plan; `fit(plan)` trains it. `Classifier`,
commands, comparisons, the active loop and the annotation trainer all take this way.
"""

from partly.budget import MEMORY_SHARE, available
from partly.config import ResolvedConfig, TrainConfig
from partly.distributed.devices import device_of
from partly.engine.activation import activation, backbones_of
from partly.engine.cross_fitting import check_folds, cross_fit
from partly.engine.feature_cache import cached_features, describe_backbone, make_features, precompute_features
from partly.engine.fitted_model import FittedModel, calibrate, install_model, load, save
from partly.engine.fitting import fit
from partly.engine.folder import (
    claim,
    describe,
    digest,
    overwrite_guard,
    read_beliefs,
    read_description,
    read_ids,
    read_out_of_fold,
    read_scores,
    state_of,
    write_scores,
)
from partly.engine.memory import check_memory, estimate_memory, weight_memory
from partly.engine.pipeline import PreparedData, apply_hierarchy, fit_calibrated, prepare, resolve, teach
from partly.engine.plan import MemoryEstimate, Plan
from partly.engine.reasons import reasons
from partly.engine.resolution import (
    build_method,
    default_numbers,
    make_config,
    make_task,
    resolve_config,
    spell_out,
)
from partly.engine.teaching import taught_logits, zero_shot
from partly.engine.training import Validation
from partly.engine.verification import verify
from partly.engine.warm_start import match_labels, warm_start
from partly.teachers import run as run_teacher

run_teacher.load_model = load

__all__ = [
    "MEMORY_SHARE",
    "FittedModel",
    "MemoryEstimate",
    "Plan",
    "PreparedData",
    "ResolvedConfig",
    "TrainConfig",
    "Validation",
    "activation",
    "apply_hierarchy",
    "available",
    "backbones_of",
    "build_method",
    "cached_features",
    "calibrate",
    "check_folds",
    "check_memory",
    "claim",
    "cross_fit",
    "default_numbers",
    "describe",
    "describe_backbone",
    "device_of",
    "digest",
    "estimate_memory",
    "fit",
    "fit_calibrated",
    "install_model",
    "load",
    "make_config",
    "make_features",
    "make_task",
    "match_labels",
    "overwrite_guard",
    "precompute_features",
    "prepare",
    "read_beliefs",
    "read_description",
    "read_ids",
    "read_out_of_fold",
    "read_scores",
    "reasons",
    "resolve",
    "resolve_config",
    "save",
    "spell_out",
    "state_of",
    "taught_logits",
    "teach",
    "verify",
    "warm_start",
    "weight_memory",
    "write_scores",
    "zero_shot",
]
