"""One training run: a recipe, the data it is for, and the folder that says exactly what was run on what.

This is the engine: it trains and predicts. `Classifier`, commands, the loop of questions and comparisons call it.
"""

from partly.budget import MEMORY_SHARE, available
from partly.engine.activation import activation, backbones_of
from partly.engine.asking import Asked
from partly.engine.cross_fitting import check_folds, cross_fit
from partly.engine.feature_cache import made_once, make_features, words_of
from partly.engine.fitting import Fitted, calibrate, fit, load, publish, save
from partly.engine.folder import (
    claim,
    describe,
    digest,
    making_room,
    read_beliefs,
    read_description,
    read_ids,
    read_measured,
    read_out_of_fold,
    state_of,
    write_measured,
)
from partly.engine.memory import check_memory, entry_memory, weight_memory
from partly.engine.reasons import reasons
from partly.engine.recipe import Recipe, complete, default_recipe, within_budget
from partly.engine.verification import verify
from partly.engine.warm_start import sources_of, warm_start

__all__ = [
    "MEMORY_SHARE",
    "Asked",
    "Fitted",
    "Recipe",
    "activation",
    "available",
    "backbones_of",
    "calibrate",
    "check_folds",
    "check_memory",
    "claim",
    "complete",
    "cross_fit",
    "default_recipe",
    "describe",
    "digest",
    "entry_memory",
    "fit",
    "load",
    "made_once",
    "make_features",
    "making_room",
    "publish",
    "read_beliefs",
    "read_description",
    "read_ids",
    "read_measured",
    "read_out_of_fold",
    "reasons",
    "save",
    "sources_of",
    "state_of",
    "verify",
    "warm_start",
    "weight_memory",
    "within_budget",
    "words_of",
    "write_measured",
]
