"""How fast gangs run, by name: as the trace says, by a model of an installed package (group ``gantline.performance_models``), or of a file.

An entry is a model, a class that is made without arguments, or a function ``make(jobs, cluster)`` of the trace and the cluster.
One with a reader of profiles of its own (`profile_readers`) takes what was read as a third argument, which is None where none were given.
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from gantline.core.cluster import Cluster
from gantline.core.errors import GantlineError, UsageError
from gantline.models.model import PerformanceModel, check_model
from gantline.registry import Register
from gantline.traces.files.python_file import PartKind, part_of_file, python_file
from gantline.traces.trace import Trace

_TRACE = "trace"
_MODELS = Register(
    "performance_models",
    {
        _TRACE: ("gantline.engine.assembly.scaling:scaling_model", "the speeds that the trace lists, and its scaling curves"),
        "pairs": (
            "gantline.engine.assembly.pairs:pair_model",
            "jobs that share devices, by a table of measured pairs (--profiles DIR, or Gavel's FILE)",
        ),
        "shared-links": ("gantline.models.links.shared_links:SharedLinks", "links that gangs share, divided fairly at every instant"),
        "link-circles": ("gantline.models.links.shared_links:LinkCircles", "links that gangs share, by circles: a fast stand-in"),
        "effective-bandwidth": (
            "gantline.models.placement_speeds:EffectiveBandwidth",
            "AllReduce as fast as the ring of devices allows (MAPA); column allreduce_gb",
        ),
    },
    where="--performance",
)


def _may_be_model(value: Any) -> bool:
    return hasattr(value, "rates") or isinstance(value, FunctionType)


_MODEL_IN_FILE = PartKind(
    "performance model", "performance models", "--performance", _may_be_model, "gantline.models.model.PerformanceModel"
)


def find_model(name: str) -> Any:
    """What a name or a file means, before there are jobs."""
    return part_of_file(name, _MODEL_IN_FILE).thing if python_file(name) else _MODELS.load(name)


def is_from_trace(given: Any) -> bool:
    """Whether the speeds of jobs come from the trace alone."""
    return given is find_model(_TRACE)


def model_of(given: Any, jobs: Trace, cluster: Cluster, profiles: object = None) -> PerformanceModel | None:
    """The model of a run with these jobs on that cluster; None: jobs have the speeds of their options."""
    made = not isinstance(given, type) and (hasattr(given, "rates") or not callable(given))
    try:
        found = given if made else given() if isinstance(given, type) else given(jobs, cluster, *(() if profiles is None else (profiles,)))
    except GantlineError:
        raise
    except Exception as error:  # whatever the code of a user raises
        called = getattr(given, "__name__", type(given).__name__)
        raise UsageError(f"'{called}' cannot be made: {type(error).__name__}: {error}", where="--performance") from error
    model: PerformanceModel | None = check_model(found)
    return model
