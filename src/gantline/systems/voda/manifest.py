"""What Gantline has of Voda, by name, and what it was held against."""

from gantline.registry import HeldAgainst, System

SYSTEM = System(
    name="voda",
    title="Eight elastic schedulers",
    papers=(
        "Hsieh and Lee: Voda, A GPU Scheduling Platform for Elastic Deep Learning in Kubernetes Clusters (IC2E 2023)",
        "Wu et al.: Elastic Deep Learning in Multi-Tenant GPU Clusters (TPDS 2022)",
    ),
    page="policies/voda.md",
    policies={
        "voda.fifo": ".policies.policies:VodaFifo",
        "voda.elastic_fifo": ".policies.policies:ElasticFifo",
        "voda.srjf": ".policies.policies:Srjf",
        "voda.elastic_srjf": ".policies.policies:ElasticSrjf",
        "voda.tiresias": ".policies.policies:VodaTiresias",
        "voda.elastic_tiresias": ".policies.policies:ElasticTiresias",
        "voda.ffdl": ".policies.policies:FfdlOptimizer",
        "voda.afs_l": ".policies.policies:AfsL",
    },
    studies={
        "elastic-tiresias": ".studies:ElasticTiresiasStudy",
    },
    held_against=(
        HeldAgainst(
            "recorded answers of Voda's own code",
            "all 304 cases, 268 of them with an answer",
            "tests/systems/voda/test_vectors.py",
        ),
        HeldAgainst(
            "brute force and plain re-implementations",
            "equal",
            "tests/systems/voda/test_sharing.py",
        ),
    ),
)
