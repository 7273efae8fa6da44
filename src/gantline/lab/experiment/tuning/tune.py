"""Tune a policy: run its settings as they are, search, and hold what was found against workloads that the search has not seen.

DIR/
  tuning.json     what is tuned on what; the same command goes on, another one is refused
  study.log       Optuna's storage
  sweep.json, runs/, results.parquet   every run, as a sweep keeps them
  trials.parquet  a row per trial
  best.yaml       the settings that won, for --policy; front/ has those of every trial on the front of several objectives
  gain.txt        the sentences
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from gantline.core.errors import RefusedError, UsageError
from gantline.core.fields import plain_values
from gantline.core.json_reader import loads
from gantline.lab.experiment.folder import ExperimentFolder
from gantline.lab.experiment.intervals import USUAL, check_confidence
from gantline.lab.experiment.results import results_frame
from gantline.lab.experiment.running.processes import kept_backend
from gantline.lab.experiment.setting import Setting
from gantline.lab.experiment.tuning.search import best_of, check_optuna, front_of, scores_of, search
from gantline.lab.experiment.tuning.space import SearchSpace
from gantline.lab.experiment.tuning.tuned import BEST, FRONT, Tuned, gain_of
from gantline.lab.experiment.tuning.workloads import Laboratory, Tried, Workloads, workloads_of
from gantline.lab.whole_files import write_frame, write_json, write_text
from gantline.simulator.objective import Objective

SEEDS = 8
"""Of a generator, by default: five to tune on, three to hold back, which is what an interval needs."""
HOLD_BACK = 0.4
MANIFEST = "tuning.json"


def tune_settings(
    space: SearchSpace,
    objectives: Sequence[Objective],
    bases: Sequence[Setting],
    folder: Path,
    *,
    trials: int = 100,
    seeds: Sequence[int] = tuple(range(SEEDS)),
    hold_back: float = HOLD_BACK,
    seed: int = 0,
    confidence: float = USUAL,
    workers: int = 1,
    on_trial: Callable[[int, int], None] | None = None,
) -> Tuned:
    """Search for settings that make the objectives small on the traces of `bases`; `folder` keeps everything."""
    check_optuna()
    check_confidence(confidence)
    if trials < 1:
        raise UsageError(f"{trials} trials find nothing", where="--trials", fix="give at least 1")
    if any(base.warmup == "auto" for base in bases):
        raise UsageError("every trial would count other jobs", where="--warmup auto", fix="give a time, such as --warmup 2h")
    with ExperimentFolder.open(folder) as place, kept_backend(workers) as backend:
        workloads = workloads_of(bases, seeds, hold_back, seed, folder)
        _claim(folder, space, objectives, workloads, seed)
        laboratory = Laboratory(place, backend, space.policy, tuple(objectives))
        usual = _as_it_is(laboratory, space, workloads)
        found = tuple(
            search(space, objectives, trials, seed, folder, usual, lambda some: laboratory.try_out(some, workloads.tuned_on), on_trial)
        )
        best = best_of(found)
        if best is None:
            raise RefusedError(f"all {len(found)} trials failed: {found[0].tried.failure}", where="tune")
        wanted = {one.number: one for one in [best, *front_of(found)]}
        unseen = dict(zip(wanted, laboratory.try_out([one.settings for one in wanted.values()], workloads.held_back)))
        usual_unseen = laboratory.try_out([space.fixed], workloads.held_back)[0]
        for one in (usual_unseen, unseen[best.number]):
            if one.failure:
                raise RefusedError(f"a run on what was held back failed: {one.failure}", where="tune")
        gains = tuple(
            gain_of(one, (best.tried.values, usual.values), (unseen[best.number].values, usual_unseen.values), confidence)
            for one in objectives
        )
        held = {
            one.number: scores_of(objectives, unseen[one.number].values, usual_unseen.values)
            for one in front_of(found)
            if workloads.held_back and not unseen[one.number].failure
        }
        tuned = Tuned(space, tuple(objectives), found, best, held, workloads, usual.values, gains, folder)
        _keep(tuned, place, laboratory)
    return tuned


def _as_it_is(laboratory: Laboratory, space: SearchSpace, workloads: Workloads) -> Tried:
    """The settings as they are: what scores are in proportion to, and where an objective shows that it cannot be answered."""
    usual = laboratory.try_out([space.fixed], workloads.tuned_on)[0]
    if usual.failure:
        raise RefusedError(f"the policy cannot be run with its settings as they are: {usual.failure}", where="tune")
    return usual


def _claim(folder: Path, space: SearchSpace, objectives: Sequence[Objective], workloads: Workloads, seed: int) -> None:
    """Write down what is tuned here; refuse to mix it with another search."""
    sides = {"tuned on": workloads.tuned_on, "held back": workloads.held_back}
    listed = {side: [[setting.pinned().hash for setting in one.settings] for one in some] for side, some in sides.items()}
    wanted = plain_values({**space.to_dict(), "objectives": [str(one) for one in objectives], "seed": seed, **listed})
    file = folder / MANIFEST
    if file.is_file():
        there = loads(file.read_text(encoding="utf-8"))
        other = sorted(key for key in wanted if there.get(key) != wanted[key])
        if other:
            fix = "give the same, or choose another --out"
            raise RefusedError(f"holds a search with another {', '.join(other)}", where=str(folder), fix=fix)
    write_json(file, wanted)


def _keep(tuned: Tuned, place: ExperimentFolder, laboratory: Laboratory) -> None:
    cases = list(laboratory.cases.values())
    place.write_manifest(cases)
    place.write_results(results_frame(cases, [place.record(case.hash) for case in cases]))
    write_frame(tuned.folder / "trials.parquet", tuned.frame)
    write_text(tuned.folder / BEST, tuned.settings_file(tuned.best, tuned.folder))
    if len(tuned.objectives) > 1:
        for one in tuned.front:
            write_text(tuned.folder / FRONT / f"{one.number}.yaml", tuned.settings_file(one, tuned.folder / FRONT))
    write_text(tuned.folder / "gain.txt", f"{tuned}\n")
