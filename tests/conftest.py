"""The same numbers on every machine: one thread, and hypothesis without chance."""

from __future__ import annotations

import os

# Before torch is imported; child processes inherit it.
for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[name] = "1"

import torch  # noqa: E402
from hypothesis import settings  # noqa: E402

torch.set_num_threads(1)
settings.register_profile("partly", deadline=None, max_examples=50, derandomize=True, database=None)
settings.load_profile("partly")
