"""How often `what-if --history` holds the change over other traces of the same kind."""

from __future__ import annotations

from gantline.core.cluster_spec import parse_cluster
from gantline.lab.experiment.coverage.population import CLUSTER, METRICS, Population, Workload
from gantline.lab.questions.past import past_what_if
from gantline.traces.generators import generate


def history_coverage(workload: Workload, population: Population, pair: tuple[str, str], histories: range) -> float:
    """The share of histories whose interval of the change in mean JCT holds that of the population."""
    old, new = (population[name][:, METRICS.index("jct_mean")].mean() for name in pair)
    truth, place, hits = new / old - 1.0, parse_cluster(CLUSTER), 0
    for seed in histories:
        (found, *_) = past_what_if(generate("generic", seed=seed, **workload.settings()), place, *pair).differences
        hits += found.low <= truth <= found.high
    return hits / len(histories)
