"""The Gymnasium environment: an episode is a workload, a step is a decision, the return is minus the objective, relative to FIFO's."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError, UsageError, near
from gantline.core.plan import Plan
from gantline.engine.assembly.run_rules import RunRules
from gantline.engine.assembly.spec import RunSpec
from gantline.engine.imitations.registry import find_imitation
from gantline.lab.environment.actions import (
    CLUSTER_FEATURES,
    HIGH,
    JOB_FEATURES,
    KINDS,
    LOW,
    Actions,
    cluster_features,
    job_features,
    shown,
)
from gantline.lab.environment.episode import Episode, played
from gantline.lab.experiment.trace_source import TraceSource
from gantline.policies.registry import make_policy
from gantline.simulator.objective import Ended, Objective
from gantline.traces.files.clusters import read_cluster

try:
    import gymnasium
    from gymnasium.spaces import Box, Dict
except ModuleNotFoundError as error:
    if (error.name or "").split(".")[0] != "gymnasium":
        raise
    raise UsageError("environments need gymnasium", where="gantline.lab.environment", fix="pip install 'gantline[learn]'") from None

_UNKNOWN_ON_THE_WAY = ("dollars", "kwh")
_CHOSEN = JOB_FEATURES.index("chosen")


class ClusterEnv(gymnasium.Env[dict[str, Any], Any]):
    """A cluster and its queue.

    >>> env = ClusterEnv("day", "8x8", act="pick", objective="mean-jct", seeds=range(100))
    >>> observation, info = env.reset(seed=1)
    >>> observation, reward, terminated, truncated, info = env.step(0)

    `trace`: a file, a generator, {"generate": "day", "settings": {...}}, or a list of these; each episode draws one of them, and of a
    generator one of `seeds` (by default any). `reset(options={"seed": 3})` takes that one. `act`: "order" (a number per row: the greatest
    goes first), "pick" (the row that starts next; the last action: none), or "sizes" (a size per row). `slots`: rows of the observation;
    jobs beyond them wait behind. `preempt`: with "order", jobs that run have rows and may be stopped.
    Other options are those of `simulate`.

    The rewards of an episode add up to minus the objective in proportion to that of FIFO on the same workload: -1 is as good as FIFO.
    `info` has `now`, `values` (of the objective so far), `fifo` (its values) and, for "pick", `allowed`: the actions that do something.
    """

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own name and type)

    def __init__(
        self,
        trace: Any = "day",
        cluster: Cluster | str | Path = "8x8",
        *,
        act: str = "order",
        objective: str = "mean-jct",
        slots: int = 32,
        seeds: Sequence[int] | None = None,
        preempt: bool = False,
        **options: Any,
    ) -> None:
        if act not in KINDS:
            raise UsageError(f"no action '{act}'", where="act", fix=near(act, KINDS))
        if slots < 1:
            raise UsageError(f"{slots} rows show no job", where="slots", fix="give at least 1")
        if preempt and act != "order":
            raise UsageError(f"'{act}' decides by itself what goes on", where="preempt", fix="leave it out, or use act='order'")
        if seeds is not None and not len(seeds):
            raise UsageError("names none", where="seeds", fix="give at least one, or leave it out")
        self.objective = Objective.parse(objective)
        if unknown := [word for word in self.objective.words if word in _UNKNOWN_ON_THE_WAY]:
            raise RefusedError(f"'{unknown[0]}' is not known while a run goes on", where="objective", fix="use another, such as mean-jct")
        self.sources = [_source(one) for one in (trace if isinstance(trace, (list, tuple)) else [trace])]
        self.cluster, self.run_spec = read_cluster(cluster), RunSpec.of(options)
        regime = RunRules.of(self.run_spec, self.cluster).regime.name
        if find_imitation(regime) is not None:
            raise RefusedError(f"regime '{regime}' has a loop of its own", where="regime", fix="leave it out")
        self.actions: Actions = KINDS[act](preempt) if act == "order" else KINDS[act]()
        self.slots, self.seeds = slots, seeds
        self.action_space = self.actions.space(slots)
        self.observation_space = Dict(
            jobs=Box(LOW, HIGH, (slots, len(JOB_FEATURES)), np.float32), cluster=Box(LOW, HIGH, (len(CLUSTER_FEATURES),), np.float32)
        )
        self._episode: Episode | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        """A new workload, up to its first decision."""
        super().reset(seed=seed)
        given = dict(options or {})
        place = int(given.pop("trace", self.np_random.integers(len(self.sources))))
        drawn = int(self.np_random.integers(2**31 if self.seeds is None else len(self.seeds)))
        number = int(given.pop("seed", drawn if self.seeds is None else self.seeds[drawn]))
        if given:
            raise UsageError(f"no option '{next(iter(given))}'", where="reset", fix="give trace or seed")
        trace, spec = self.sources[place].load(number), RunSpec.of({"seed": number}, self.run_spec)
        self.fifo = self._answers(played(trace, self.cluster, spec, make_policy("fifo")))
        self._episode = Episode(trace, self.cluster, spec, self.actions.ranks)
        self._chosen: list[int] = []
        self._so_far, self._values = 0.0, dict.fromkeys(self.objective.words, 0.0)
        self._workload = {"trace": place, "seed": number}
        going_on = self._episode.advance()
        if not going_on:
            raise RefusedError("in this workload nothing is to be decided", where="reset", fix="use one with more jobs")
        self._look()
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Decide, and go on to the next decision."""
        if self._episode is None:
            raise UsageError("the episode is over", where="step", fix="call reset first")
        plan = self.actions.answer(self._snapshot, self._shown, self._chosen, action)
        if plan is None:
            return self._observation(), 0.0, False, False, self._info()
        return self._decide(plan)

    def _decide(self, plan: Plan) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        episode = self._episode
        assert episode is not None
        self._chosen = []
        going_on = episode.answer(plan)
        if episode.lost:
            raise RefusedError(f"a decision was not taken: {episode.lost}", where="step")
        reward = self._reward(episode.ended())
        if going_on:
            self._look()
            return self._observation(), reward, False, False, self._info()
        cut = math.isfinite(self.run_spec.until)
        found = self._info()
        self._episode = None
        return self._empty(), reward, not cut, cut, found

    def _look(self) -> None:
        assert self._episode is not None
        self._snapshot = self._episode.snapshot()
        self._shown = shown(self._snapshot, self.slots, self.actions.shows_running)
        self._rows = np.zeros((self.slots, len(JOB_FEATURES)), dtype=np.float32)
        self._rows[: len(self._shown)] = job_features(self._snapshot)[self._shown]
        self._whole = cluster_features(self._snapshot, len(self._snapshot.jobs) - len(self._shown)).astype(np.float32)

    def _observation(self) -> dict[str, Any]:
        rows = self._rows.copy()
        if self._chosen:
            rows[: len(self._shown), _CHOSEN] = np.isin(self._shown, self._chosen)
        return {"jobs": rows, "cluster": self._whole.copy()}

    def _empty(self) -> dict[str, Any]:
        return {"jobs": np.zeros_like(self._rows), "cluster": np.zeros_like(self._whole)}

    def _info(self) -> dict[str, Any]:
        assert self._episode is not None
        found: dict[str, Any] = {"now": self._episode.simulation.state.now, "fifo": dict(self.fifo), **self._workload}
        found["values"] = dict(self._values)
        if (allowed := self.actions.allowed(self._snapshot, self._shown, self._chosen, self.slots)) is not None:
            found["allowed"] = allowed
        return found

    def _reward(self, ended: Ended) -> float:
        """Minus the growth of the objective; values that are not known yet count as unchanged."""
        values = {word: ended.value(word) for word in self.objective.words}
        self._values = {word: value if math.isfinite(value) else 0.0 for word, value in values.items()}
        before, self._so_far = self._so_far, self.objective.proportion(self._values, self.fifo)
        return before - self._so_far

    def _answers(self, ended: Ended) -> Mapping[str, float]:
        return self.objective.values(ended)


def make_vec(count: int, *, processes: bool = False, **settings: Any) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """So many environments side by side, in this process or each in its own; `settings` are those of `ClusterEnv`."""
    if count < 1:
        raise UsageError(f"{count} environments are none", where="make_vec", fix="give at least 1")
    made: list[Callable[[], ClusterEnv]] = [partial(ClusterEnv, **settings) for _ in range(count)]
    if processes:
        return gymnasium.vector.AsyncVectorEnv(made)
    return gymnasium.vector.SyncVectorEnv(made)


def _source(given: Any) -> TraceSource:
    if isinstance(given, TraceSource):
        return given
    if not isinstance(given, (str, Path, Mapping)):
        fix = "name a file or a generator, or {'generate': NAME, 'settings': {...}}"
        raise UsageError(f"{given!r:.60} is no trace", where="trace", fix=fix)
    return TraceSource.read(str(given) if isinstance(given, Path) else given)


gymnasium.register("gantline/Cluster-v0", entry_point="gantline.lab.environment.environment:ClusterEnv")
