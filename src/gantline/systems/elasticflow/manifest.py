"""What Gantline has of ElasticFlow, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="elasticflow",
    title="Elastic jobs with deadlines that are promised or refused",
    papers=("Gu et al.: ElasticFlow, An Elastic Serverless Training Platform for Distributed Deep Learning (ASPLOS 2023)",),
    page="policies/elasticflow.md",
    policies={
        "edf": ".policies.policy:EarliestDeadlineFirst",
        "elasticflow": ".policies.policy:ElasticFlow",
    },
    regimes={
        "elasticflow": ".regime:REGIME",
    },
    imitations={
        "elasticflow": ".imitation.drive:drive",
    },
    scopes={
        "elasticflow": ".regime:SCOPE",
    },
    importers={
        "elasticflow": (".traces:read", "ElasticFlow traces, raw or generated, with its table of speeds (CSV)"),
    },
    generators={
        "elasticflow": (".traces:elasticflow", "ElasticFlow's jobs with deadlines (ASPLOS 2023)"),
    },
    studies={
        "elasticflow-ablation": ".studies:ElasticFlowAblation",
        "elasticflow-clusters": ".studies:ElasticFlowClusters",
    },
    held_against=(
        HeldAgainst(
            "39 recorded runs of the artifact on nine workloads",
            "admission, start, end, verdict and GPU history of every job are equal",
            "tests/systems/elasticflow/test_reference.py",
        ),
        HeldAgainst(
            "the artifact's own Tiresias, Gandiva and Themis",
            "every job of Tiresias and Gandiva; Themis on two of three runs",
            "tests/systems/elasticflow/test_baselines.py",
        ),
    ),
)
