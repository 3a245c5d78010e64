"""Jobs on Ray, the only module that knows it: one is started for as long as the jobs take, unless an address says which
cluster to join, or the caller has Ray running already. Jobs are rows of a dataset of Ray Data, a block each.

A job whose process dies is done again by Ray, a few times, wherever there is room; jobs are functions of what they are
given, so nothing changes by it. All machines must have the same packages, and see the same files under the same paths.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from partly.errors import SettingError
from partly.executors.local import Died, Job

WORKERS = "PARTLY_WORKERS"
STARTS = 3  # of Ray on this machine: it gives itself 30 seconds, which are short where much else goes on
RETRIES = 3  # of a job whose process died
# What Ray would do beside the work: report its use, warn of a variable that changes its meaning some day, let all
# other processes of the machine go first, and draw bars.
QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_worker_niceness": "0",
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
}


@dataclass(frozen=True)
class _Found:
    """What came of a job: Ray Data makes columns of what it knows, and leaves this as it is."""

    value: Any


class _Begun:
    """How often each job was begun; Ray itself would do one that ends its process again without end."""

    def __init__(self) -> None:
        self.times: Counter[int] = Counter()

    def again(self, place: int) -> int:
        self.times[place] += 1
        return self.times[place]


def results(
    jobs: Sequence[Job], work: Callable[[Job], Any], count: int | None = None, address: str | None = None
) -> Iterator[tuple[Job, Any]]:
    """As `local.results`, for jobs of one core each; `count` at a time, or as many as there are cores."""
    if not jobs:
        return
    ray = _imported()
    with _session(ray, address, count):
        given = ray.put((jobs, work, os.getcwd()))  # once a machine, however many jobs there are
        begun = ray.remote(_Begun).options(num_cpus=0).remote()
        how = {"compute": ray.data.TaskPoolStrategy(size=count), "num_cpus": 1}
        places = ray.data.range(len(jobs), override_num_blocks=len(jobs))
        rows = places.map(_done, fn_kwargs={"given": [given], "begun": begun}, **how)
        try:
            for one in rows.iter_batches(batch_size=None, prefetch_batches=0):  # a job as soon as it is done
                found = one["found"][0].value
                if isinstance(found, BaseException):
                    raise found
                yield jobs[one["id"][0]], found
        except ray.exceptions.RayError as error:  # before or after the work: what it needs is not there
            last = str(error).strip().splitlines()[-1]
            raise SettingError(f"Ray cannot run this: {last}\nAll machines need the same packages.") from error
        finally:
            ray.kill(begun)


def _done(row: dict[str, Any], given: list[Any], begun: Any) -> dict[str, Any]:
    """In a worker: one thread, as everywhere that jobs run, and in the caller's folder."""
    import ray
    import torch

    torch.set_num_threads(1)
    place = row["id"]
    if ray.get(begun.again.remote(place)) > RETRIES + 1:
        return row | {"found": _Found(Died(f"its process ended {RETRIES + 1} times"))}
    jobs, work, folder = ray.get(given[0])
    try:
        os.chdir(folder)
        return row | {"found": _Found(work(jobs[place]))}
    except Exception as error:
        return row | {"found": _Found(error)}


@contextmanager
def _session(ray: Any, address: str | None, count: int | None) -> Iterator[None]:
    """The caller's Ray where it runs; else one that ends with the jobs."""
    if ray.is_initialized():
        yield
        return
    address = address or os.environ.get("RAY_ADDRESS") or "local"
    how = {"num_cpus": count, "include_dashboard": False} if address == "local" else {}
    ours = {WORKERS: "0"}  # a job has one core, and decodes pictures by itself
    ours |= {name: value for name, value in os.environ.items() if name.startswith("PARTLY_")}
    on_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM)
    for start in range(1, STARTS + 1):
        try:
            ray.init(address, log_to_driver=False, configure_logging=False, runtime_env={"env_vars": ours}, **how)
            break
        except Exception as error:  # of any kind: Ray has none of its own for this
            ray.shutdown()
            if start == STARTS or address != "local":
                raise SettingError(f"Ray ({address}) does not answer: {error}") from error
    try:
        if on_main:
            signal.signal(signal.SIGTERM, handler)  # Ray has put its own in its place, which loses the exit code
        yield
    finally:
        ray.shutdown()


def _imported() -> Any:
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise SettingError('To run on Ray, install it: pip install "partly[ray]"') from error
    logging.getLogger("ray.data").setLevel(logging.ERROR)  # it tells of its plans
    return ray
