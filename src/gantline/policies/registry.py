"""All policies by name. A new one is one file and one line here (or an entry point in the group ``gantline.policies``)."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from gantline.core.errors import NotFoundError, UsageError, near
from gantline.core.policy import Policy, build

_GAVEL = "gantline.systems.gavel.policies"
_KNOWN = {
    "fifo": "gantline.policies.fifo:Fifo",
    "sjf": "gantline.policies.order:ShortestJobFirst",
    "srtf": "gantline.policies.order:ShortestRemainingTimeFirst",
    "srsf": "gantline.policies.order:ShortestRemainingServiceFirst",
    "smallest": "gantline.policies.order:SmallestFirst",
    "las": "gantline.policies.las:LeastAttainedService",
    "tiresias": "gantline.systems.tiresias.policies.tiresias:Tiresias",
    "afs": "gantline.systems.afs.policies.policy:Afs",
    "adaptdl": "gantline.systems.pollux.policies.adaptdl:AdaptDL",
    "allox": "gantline.systems.allox.policies.policy:AlloX",
    "allox.plus": "gantline.systems.allox.policies.shortest:AlloXPlus",
    "allox.sjf": "gantline.systems.allox.policies.shortest:ShortestPairFirst",
    "allox.srpt": "gantline.systems.allox.policies.shortest:ShortestRemainingPairFirst",
    "drf": "gantline.systems.allox.policies.drf:DominantResourceFairness",
    "drf-ext": "gantline.systems.allox.policies.drf:ExtendedDRF",
    "drf-fifo": "gantline.systems.allox.policies.drf:FirstComeDRF",
    "drf-sjf": "gantline.systems.allox.policies.drf:ShortestFirstDRF",
    "equal-share": "gantline.policies.elastic.policies:EqualShare",
    "carbonscaler": "gantline.systems.carbonscaler.policies.policy:CarbonScaler",
    "es": "gantline.systems.allox.policies.shared:AlloxEqualShare",
    "fs": "gantline.systems.allox.policies.shared:EqualUsers",
    "edf": "gantline.systems.elasticflow.policies.policy:EarliestDeadlineFirst",
    "elasticflow": "gantline.systems.elasticflow.policies.policy:ElasticFlow",
    "fair-share": "gantline.policies.fair_share:FairShare",
    "gaia": "gantline.systems.gaia.policies.policy:Gaia",
    "gandiva": "gantline.systems.gandiva.policies.gandiva:Gandiva",
    "ffdl": "gantline.systems.ffdl.policies.policy:Ffdl",
    "lyra": "gantline.systems.lyra.policies.policy:Lyra",
    "optimus": "gantline.systems.optimus.policies.policy:Optimus",
    "optimus.drf": "gantline.systems.optimus.policies.policy:OptimusDrf",
    "heet-like": "gantline.systems.heet.policies.policy:HeetLike",
    "pollux": "gantline.systems.pollux.policies.policy:Pollux",
    "recorded": "gantline.policies.recorded:Recorded",
    "synthesizer": "gantline.simulator.synthesizer.policy:Synthesizer",
    "shockwave": "gantline.systems.shockwave.policies.policy:Shockwave",
    "sharing": "gantline.policies.sharing:Sharing",
    "sia": "gantline.systems.sia.policies.policy:Sia",
    "themis": "gantline.systems.themis.policies.policy:Themis",
    "gavel.allox": f"{_GAVEL}.plain_policies:GavelAlloX",
    "gavel.fifo": f"{_GAVEL}.plain_policies:GavelFifo",
    "gavel.fifo_packed": f"{_GAVEL}.plain_policies:FifoPacked",
    "gavel.fifo_perf": f"{_GAVEL}.plain_policies:FifoPerf",
    "gavel.finish_time_fairness": f"{_GAVEL}.finish_policies:FinishTimeFairness",
    "gavel.finish_time_fairness_packed": f"{_GAVEL}.finish_policies:FinishTimeFairnessPacked",
    "gavel.finish_time_fairness_perf": f"{_GAVEL}.finish_policies:FinishTimeFairnessPerf",
    "gavel.gandiva": f"{_GAVEL}.plain_policies:GavelGandiva",
    "gavel.gandiva_fair": f"{_GAVEL}.plain_policies:GandivaFair",
    "gavel.isolated": f"{_GAVEL}.plain_policies:Isolated",
    "gavel.max_min_fairness": f"{_GAVEL}.fair_policies:MaxMinFairness",
    "gavel.max_min_fairness_packed": f"{_GAVEL}.fair_policies:MaxMinFairnessPacked",
    "gavel.max_min_fairness_perf": f"{_GAVEL}.fair_policies:MaxMinFairnessPerf",
    "gavel.max_min_fairness_strategy_proof": f"{_GAVEL}.fair_policies:StrategyProof",
    "gavel.max_min_fairness_water_filling": f"{_GAVEL}.fair_policies:WaterFilling",
    "gavel.max_min_fairness_water_filling_packed": f"{_GAVEL}.fair_policies:WaterFillingPacked",
    "gavel.max_min_fairness_water_filling_perf": f"{_GAVEL}.fair_policies:WaterFillingPerf",
    "gavel.max_sum_throughput_normalized_by_cost_packed_SLOs": f"{_GAVEL}.sum_policies:MaxThroughputPerCostPackedSLOs",
    "gavel.max_sum_throughput_normalized_by_cost_perf": f"{_GAVEL}.sum_policies:MaxThroughputPerCostPerf",
    "gavel.max_sum_throughput_normalized_by_cost_perf_SLOs": f"{_GAVEL}.sum_policies:MaxThroughputPerCostPerfSLOs",
    "gavel.max_sum_throughput_perf": f"{_GAVEL}.sum_policies:MaxSumThroughputPerf",
    "gavel.min_total_duration": f"{_GAVEL}.finish_policies:MinTotalDuration",
    "gavel.min_total_duration_packed": f"{_GAVEL}.finish_policies:MinTotalDurationPacked",
    "gavel.min_total_duration_perf": f"{_GAVEL}.finish_policies:MinTotalDurationPerf",
    "gavel.proportional": f"{_GAVEL}.plain_policies:Proportional",
    "voda.fifo": "gantline.systems.voda.policies.policies:VodaFifo",
    "voda.elastic_fifo": "gantline.systems.voda.policies.policies:ElasticFifo",
    "voda.srjf": "gantline.systems.voda.policies.policies:Srjf",
    "voda.elastic_srjf": "gantline.systems.voda.policies.policies:ElasticSrjf",
    "voda.tiresias": "gantline.systems.voda.policies.policies:VodaTiresias",
    "voda.elastic_tiresias": "gantline.systems.voda.policies.policies:ElasticTiresias",
    "voda.ffdl": "gantline.systems.voda.policies.policies:FfdlOptimizer",
    "voda.afs_l": "gantline.systems.voda.policies.policies:AfsL",
}


_ALIASES = {"auto": "synthesizer"}


def _installed() -> Iterable[Any]:
    """What installed packages offer."""
    from importlib.metadata import entry_points  # reads the papers of packages with what reads mail

    return entry_points(group="gantline.policies")


def policy_names() -> list[str]:
    """Every registered name, our own and those of installed packages."""
    return sorted({*_KNOWN, *(point.name for point in _installed())})


def find_policy(name: str) -> type[Policy]:
    """The class behind a name."""
    target = _KNOWN.get(_ALIASES.get(name, name))
    if target is None:
        for point in _installed():
            if point.name == name:
                return _checked(point.load(), name)
        raise NotFoundError(f"no policy '{name}'", where="--policy", fix=near(name, policy_names()))
    module, _, attribute = target.partition(":")
    return _checked(getattr(importlib.import_module(module), attribute), name)


def make_policy(name: str, settings: dict[str, Any] | None = None) -> Policy:
    """A policy by name with its parameters."""
    return build(find_policy(name), settings or {})


def _checked(found: Any, name: str) -> type[Policy]:
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise UsageError(f"'{name}' is a {type(found).__name__}, not a policy class", fix="derive it from gantline.Policy")
    return found
