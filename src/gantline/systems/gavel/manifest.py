"""What Gantline has of Gavel, by name, and what it was held against."""

from __future__ import annotations

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="gavel",
    title="Shares of time on several device types, as linear programs",
    papers=("Narayanan et al.: Heterogeneity-Aware Cluster Scheduling Policies for Deep Learning Workloads (OSDI 2020)",),
    page="policies/gavel.md",
    policies={
        "gavel.allox": ".policies.plain_policies:GavelAlloX",
        "gavel.fifo": ".policies.plain_policies:GavelFifo",
        "gavel.fifo_packed": ".policies.plain_policies:FifoPacked",
        "gavel.fifo_perf": ".policies.plain_policies:FifoPerf",
        "gavel.finish_time_fairness": ".policies.finish_policies:FinishTimeFairness",
        "gavel.finish_time_fairness_packed": ".policies.finish_policies:FinishTimeFairnessPacked",
        "gavel.finish_time_fairness_perf": ".policies.finish_policies:FinishTimeFairnessPerf",
        "gavel.gandiva": ".policies.plain_policies:GavelGandiva",
        "gavel.gandiva_fair": ".policies.plain_policies:GandivaFair",
        "gavel.isolated": ".policies.plain_policies:Isolated",
        "gavel.max_min_fairness": ".policies.fair_policies:MaxMinFairness",
        "gavel.max_min_fairness_packed": ".policies.fair_policies:MaxMinFairnessPacked",
        "gavel.max_min_fairness_perf": ".policies.fair_policies:MaxMinFairnessPerf",
        "gavel.max_min_fairness_strategy_proof": ".policies.fair_policies:StrategyProof",
        "gavel.max_min_fairness_water_filling": ".policies.fair_policies:WaterFilling",
        "gavel.max_min_fairness_water_filling_packed": ".policies.fair_policies:WaterFillingPacked",
        "gavel.max_min_fairness_water_filling_perf": ".policies.fair_policies:WaterFillingPerf",
        "gavel.max_sum_throughput_normalized_by_cost_packed_SLOs": ".policies.sum_policies:MaxThroughputPerCostPackedSLOs",
        "gavel.max_sum_throughput_normalized_by_cost_perf": ".policies.sum_policies:MaxThroughputPerCostPerf",
        "gavel.max_sum_throughput_normalized_by_cost_perf_SLOs": ".policies.sum_policies:MaxThroughputPerCostPerfSLOs",
        "gavel.max_sum_throughput_perf": ".policies.sum_policies:MaxSumThroughputPerf",
        "gavel.min_total_duration": ".policies.finish_policies:MinTotalDuration",
        "gavel.min_total_duration_packed": ".policies.finish_policies:MinTotalDurationPacked",
        "gavel.min_total_duration_perf": ".policies.finish_policies:MinTotalDurationPerf",
        "gavel.proportional": ".policies.plain_policies:Proportional",
    },
    regimes={
        "gavel": ".regime:REGIME",
    },
    imitations={
        "gavel": ".imitation.rounds:run_in_rounds",
    },
    scopes={
        "gavel": ".imitation.rounds:SCOPE",
    },
    importers={
        "gavel": (".importer:read", "Gavel and Shockwave traces: 10, 12 or 7 fields, tab separated"),
    },
    generators={
        "gavel": (".generator:simulator", "Gavel's continuous traces (OSDI 2020), the same jobs for the same seed"),
        "gavel-script": (".generator:script", "Gavel's small static traces, jobs of one to four hours"),
    },
    in_steps=("gavel", "gavel-script"),
    studies={
        "gavel-single": ".studies.continuous:GavelSingle",
        "gavel-multi": ".studies.continuous:GavelMulti",
        "gavel-finish-time": ".studies.continuous:GavelFinishTime",
        "gavel-makespan": ".studies.static:GavelMakespan",
        "gavel-hierarchy": ".studies.static:GavelHierarchy",
        "gavel-cost": ".studies.continuous:GavelCost",
        "gavel-estimation": ".studies.continuous:GavelEstimation",
        "gavel-rounds": ".studies.static:GavelRounds",
    },
    also_called={
        "shockwave": "gavel",
    },
    held_against=(
        HeldAgainst(
            "recorded runs of the artifact's simulator",
            "policies without a solver and the makespan: every job to 0.01 s; those with a solver: average JCT within 2.0 %",
            "tests/systems/gavel/test_gavel_reference.py",
        ),
        HeldAgainst(
            "68 recorded single decisions of the artifact",
            "objectives to 1e-4",
            "tests/systems/gavel/test_gavel_golden.py",
        ),
        HeldAgainst(
            "cvxpy with Clarabel, on random instances",
            "optimal and feasible",
            "tests/systems/gavel/test_gavel_objectives.py",
        ),
        HeldAgainst(
            "what the paper proves of its policies (section 4.4)",
            "holds on every instance that hypothesis finds",
            "tests/systems/gavel/test_gavel_properties.py",
        ),
    ),
)
