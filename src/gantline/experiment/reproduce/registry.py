"""Which figures can be reproduced. A new study needs one new file and one line here."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from gantline.core.errors import NotFoundError, near
from gantline.experiment.reproduce.study import Study

_STUDIES = {
    "blox-fig6": "gantline.systems.blox.studies.figure6:BloxFigure6",
    "blox-fig12": "gantline.systems.blox.studies.figure12:BloxFigure12",
    "blox-loss": "gantline.systems.blox.studies.loss:BloxLoss",
    "tiresias-comparison": "gantline.systems.tiresias.studies.comparison:TiresiasComparison",
    "allox-alpha": "gantline.systems.allox.studies.alpha:AlloXAlpha",
    "allox-baselines": "gantline.systems.allox.studies.baselines:AlloXBaselines",
    "elasticflow-ablation": "gantline.systems.elasticflow.studies.ablation:ElasticFlowAblation",
    "elasticflow-clusters": "gantline.systems.elasticflow.studies.clusters:ElasticFlowClusters",
    "afs-sharing": "gantline.systems.afs.studies.sharing:AfsSharing",
    "afs-clusters": "gantline.systems.afs.studies.clusters:AfsClusters",
    "elastic-tiresias": "gantline.systems.voda.studies.elastic_tiresias:ElasticTiresiasStudy",
    "ffdl-batch": "gantline.systems.ffdl.studies.batch:FfdlBatch",
    "optimus-drf": "gantline.systems.optimus.studies.drf:OptimusDrfStudy",
    "lyra-loans": "gantline.systems.lyra.studies.loans:LyraLoans",
    "gavel-single": "gantline.systems.gavel.studies.continuous:GavelSingle",
    "gavel-multi": "gantline.systems.gavel.studies.continuous:GavelMulti",
    "gavel-finish-time": "gantline.systems.gavel.studies.finish_time:GavelFinishTime",
    "gavel-makespan": "gantline.systems.gavel.studies.makespan:GavelMakespan",
    "gavel-hierarchy": "gantline.systems.gavel.studies.hierarchy:GavelHierarchy",
    "gavel-cost": "gantline.systems.gavel.studies.cost:GavelCost",
    "gavel-estimation": "gantline.systems.gavel.studies.estimation:GavelEstimation",
    "gavel-rounds": "gantline.systems.gavel.studies.rounds:GavelRounds",
    "pollux-load": "gantline.systems.pollux.studies.load:PolluxLoad",
    "sia-heterogeneous": "gantline.systems.sia.studies.tables:SiaHeterogeneous",
    "sia-homogeneous": "gantline.systems.sia.studies.tables:SiaHomogeneous",
    "shockwave-table": "gantline.systems.shockwave.studies.table:ShockwaveTable",
    "themis-fairness": "gantline.systems.themis.studies.fairness:ThemisFairness",
}


def study_names() -> list[str]:
    """All studies, in the order in which they should be listed."""
    return list(_STUDIES)


def find_study(name: str, data: Path | None = None) -> Study:
    """The study of that name; ``data`` is the folder with published files that it may need."""
    if name not in _STUDIES:
        raise NotFoundError(f"no reproduction '{name}'", where="reproduce", fix=near(name, [*_STUDIES, "all"]))
    module, _, attribute = _STUDIES[name].partition(":")
    study: Study = getattr(import_module(module), attribute)(data)
    return study
