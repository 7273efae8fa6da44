"""What a look becomes for `advise`: the jobs and the cluster on which policies are compared, from that instant on.

Jobs that run arrive first, with what is left of them, so that under every policy they find the cluster empty and start. Those that wait
follow a second later, in order of submission. What is closed, or held without an end, is not part of the cluster.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from gantline.core.cluster import Cluster, Node
from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import UsageError
from gantline.core.json_reader import Reader
from gantline.core.options import OptionTable, decode_option
from gantline.lab.experiment.advice import Advice
from gantline.lab.experiment.api import Policies, advise, choices_of
from gantline.lab.experiment.grid import PolicyChoice
from gantline.live.watch.watched import ClusterLook, Document, left_out_notes, spelled_time
from gantline.simulator.simulate import with_options
from gantline.traces.files.clusters import short_form
from gantline.traces.options import WrittenOption, format_options
from gantline.traces.to_tables import can_hold
from gantline.traces.trace import Trace

_WAITING_FROM = 1.0  # seconds: jobs that run have started by then
_FIX = "give jobs or partitions time limits in Slurm, pods activeDeadlineSeconds or the annotation gantline.io/estimate in Kubernetes"


@dataclass(frozen=True)
class LookedAt:
    """A look as what `advise` compares policies on. `rests_on` says in words what the verdict rests on."""

    trace: Trace
    cluster: str
    present: PolicyChoice
    rests_on: tuple[str, ...]
    notes: tuple[str, ...]

    def beside_present(self, others: Sequence[PolicyChoice]) -> tuple[PolicyChoice, ...]:
        """The policy in force first, so that others are compared with it."""
        same = (self.present.policy, dict(self.present.settings))
        return (self.present, *(one for one in others if one.handed is not None or (one.policy, dict(one.settings)) != same))


def as_trace(look: ClusterLook) -> LookedAt:
    """The jobs, the cluster and the policy in force; refused where no job waits, or none of those that wait has an estimate."""
    return _Reading(look).read()


@dataclass
class _Reading:
    look: ClusterLook
    left_out: Counter[str] = field(default_factory=Counter)
    fitting: dict[str, bool] = field(default_factory=dict)  # ways to run, and whether one of them fits the cluster

    def read(self) -> LookedAt:
        runs = [entry for entry in self.jobs if self._hosts(entry)]
        waits = sorted((entry for entry in self.jobs if not self._hosts(entry)), key=lambda entry: float(entry["arrival"]))
        self._refuse_nothing_to_decide(waits)
        cluster = self._cluster(runs)
        rows = [self._running(entry, cluster) for entry in runs if self._goes_on(entry)]
        going_on = len(rows)
        rows += [row for entry in waits if (row := self._waiting(entry, cluster)) is not None]
        if len(rows) == going_on:
            raise self._refused("none of the jobs that wait can be compared", "; ".join(left_out_notes(self.left_out)))
        trace = Trace.from_records(rows, source=self.look.source)
        return LookedAt(trace, cluster.spec, self._present(), self._words(going_on, len(rows) - going_on), tuple(self._notes()))

    # --- what the look shows --------------------------------------------------------------------------------------------
    @cached_property
    def jobs(self) -> list[Document]:
        return list(self.look.snapshot["jobs"])

    @cached_property
    def unestimated(self) -> set[str]:
        return set(self.look.snapshot["unestimated"])

    @cached_property
    def host_of(self) -> list[str]:
        """The node of each device."""
        return [node["name"] for node in self.look.snapshot["cluster"]["nodes"] for _ in range(node["gpus"])]

    @cached_property
    def closed(self) -> set[str]:
        """Nodes that take no new job now: down, cordoned or reserved at present."""
        now, seen = self.look.snapshot["now"], self.look.snapshot
        reserved = (window["places"] for window in seen["windows"] if window["start"] <= now)
        return {*seen["down"], *(self.host_of[device] for device in seen["cordoned"]), *(host for hosts in reserved for host in hosts)}

    def _hosts(self, entry: Document) -> Counter[str]:
        """How many devices a job holds on each node; a job of CPUs alone holds none of one."""
        if "node" in entry:
            return Counter({entry["node"]: 0})
        return Counter(self.host_of[device] for device in entry.get("devices", ()))

    # --- the cluster ----------------------------------------------------------------------------------------------------
    def _cluster(self, runs: list[Document]) -> Cluster:
        """The open nodes, without what jobs hold that are not compared."""
        held: dict[str, Counter[str]] = {}
        for entry in runs:
            if self._goes_on(entry):
                continue
            variant = entry["options"][0]
            for host, gpus in self._hosts(entry).items():
                amounts = {name: float(variant.get(name, 0.0)) * (gpus or 1) for name in ("cpus", "memory")}
                held.setdefault(host, Counter()).update({"gpus": gpus, **amounts})
        nodes = [self._open_part(node, held.get(node["name"], Counter())) for node in self.look.snapshot["cluster"]["nodes"]]
        nodes = [node for node in nodes if node.name not in self.closed and (node.gpus or node.cpus)]
        if not nodes:
            raise self._refused("no node is open", "look again when nodes are back")
        return parse_cluster(short_form(Cluster(tuple(nodes))))

    def _open_part(self, node: Document, held: Mapping[str, float]) -> Node:
        cpus, memory = (max(float(node.get(name, 0.0)) - held.get(name, 0.0), 0.0) for name in ("cpus", "memory"))
        return Node(node["name"], _type_name(node["type"]), int(node["gpus"] - held.get("gpus", 0)), cpus=cpus, memory=memory)

    # --- jobs -----------------------------------------------------------------------------------------------------------
    def _goes_on(self, entry: Document) -> bool:
        """Whether a job that runs is compared: it ends, and its nodes are open."""
        return entry["id"] not in self.unestimated and self.closed.isdisjoint(self._hosts(entry))

    def _running(self, entry: Document, cluster: Cluster) -> Document:
        variants = _variants(entry, cluster)
        if not self._fits(variants, cluster):  # on nodes with unequal parts, which a trace cannot say
            variants = [{**variant, "nodes": 0} for variant in variants]
        return self._row(entry, variants, 0.0)

    def _waiting(self, entry: Document, cluster: Cluster) -> Document | None:
        if entry["id"] in self.unestimated:
            self.left_out["wait and have no time limit"] += 1
            return None
        variants = _variants(entry, cluster)
        if not self._fits(variants, cluster):
            self.left_out["ask for more than is open"] += 1
            return None
        return self._row(entry, variants, _WAITING_FROM)

    def _fits(self, variants: list[Document], cluster: Cluster) -> bool:
        asked = repr(variants)
        if asked not in self.fitting:  # few jobs ask differently
            table = OptionTable.build([decode_option(Reader(variant, "options"), cluster.types) for variant in variants])
            self.fitting[asked] = bool(variants) and bool(can_hold(cluster, table).any())
        return self.fitting[asked]

    def _row(self, entry: Document, variants: list[Document], arrival: float) -> Document:
        rest = float(entry["estimate"]) - float(entry.get("service", 0.0))
        written = [
            WrittenOption(variant["type"], variant["gpus"], rest, *_host_resources(variant), 0.0, variant.get("nodes", 0))
            for variant in variants
        ]
        found = {"job": entry["id"], "arrival": arrival, "gpus": entry["gpus"], "duration": rest, "time_limit": rest}
        known = {"user": entry["user"], "queue": entry["queue"], "priority": self._priority(entry), "options": format_options(written)}
        return {**found, **known, **entry.get("metrics", {})}

    def _priority(self, entry: Document) -> float:
        """As it is now: what age has added until the look stays, and in the run all age alike."""
        weight, longest = (float(self.look.settings.get(name, usual)) for name, usual in (("age_weight", 0.0), ("max_age", 1.0)))
        age = float(self.look.snapshot["now"]) - float(entry["arrival"])
        return float(entry["priority"]) + weight * min(age / longest, 1.0)

    # --- what is said ---------------------------------------------------------------------------------------------------
    def _present(self) -> PolicyChoice:
        return PolicyChoice(self.look.policy, self.look.settings, f"{self.look.policy} (in force)")

    def _words(self, runs: int, waits: int) -> tuple[str, ...]:
        return (
            f"This rests on {runs + waits} jobs which {self.look.source} showed at {spelled_time(self.look.at)}: "
            f"{runs} running, with what is left of them, and {waits} waiting; times count from then.",
            "Durations are time limits (estimates): each job is taken to run for all of its own.",
        )

    def _notes(self) -> list[str]:
        now, seen = self.look.snapshot["now"], self.look.snapshot
        endless = sum(bool(self._hosts(entry)) and entry["id"] in self.unestimated for entry in self.jobs)
        on_closed = sum(not self.closed.isdisjoint(self._hosts(entry)) and entry["id"] not in self.unestimated for entry in self.jobs)
        later = sum(window["start"] > now for window in seen["windows"])
        found = [*self.look.notes, *left_out_notes(self.left_out)]
        found += [f"{endless} running jobs have no time limit; what they hold is left out"] if endless else []
        found += [f"{on_closed} running jobs hold nodes that are closed; what they hold is left out"] if on_closed else []
        found += [f"{len(self.closed)} nodes that are down, drained or reserved now are left out"] if self.closed else []
        return [*found, *([f"{later} reservations that begin later are not followed"] if later else [])]

    def _refuse_nothing_to_decide(self, waits: list[Document]) -> None:
        if not waits:
            before = f" ({'; '.join(self.look.notes)})" if self.look.notes else ""
            raise self._refused(f"no job waits for room, so policies have nothing to decide{before}", "look again when jobs wait")
        if all(entry["id"] in self.unestimated for entry in waits):
            raise self._refused(f"none of the {len(waits)} jobs that wait has a time limit or an estimate", _FIX)

    def _refused(self, what: str, fix: str) -> UsageError:
        return UsageError(what, where=f"--watch {self.look.source}", fix=fix)


def _variants(entry: Document, cluster: Cluster) -> list[Document]:
    """The ways to run of a job, on types that are open."""
    named = [{**variant, "type": _type_name(variant["type"])} for variant in entry["options"]]
    return [variant for variant in named if variant["type"] in cluster.types]


def _host_resources(variant: Document) -> tuple[float, float]:
    """CPUs and memory of the whole job, where a look counts them by device."""
    devices = variant["gpus"] or 1
    return float(variant.get("cpus", 0.0)) * devices, float(variant.get("memory", 0.0)) * devices


def _type_name(kind: str) -> str:
    """A type as a short specification can hold it: ``3090`` begins with no letter."""
    plain = re.sub(r"[^\w.\-]", "-", kind)
    return plain if plain[:1].isalpha() else f"gpu-{plain}"


# `advise` straight from a look, in Python: which policy would serve the jobs best that are there now.


@partial(with_options, single=False)
def advise_look(
    look: ClusterLook,
    policies: Policies,
    *,
    grow: float = 0.1,
    also: Sequence[str] = (),
    workers: int = 1,
    folder: str | Path | None = None,
    **options: Any,
) -> Advice:
    """Compare policies with the one in force on the jobs of a look, and say whether a larger cluster would help.

    >>> found = advise_look(look_at_slurm(), "srtf,las")
    >>> found.answer, found.means
    """
    seen = as_trace(look)
    chosen = seen.beside_present(choices_of(policies))
    chosen_options = {"estimates": "limit", **options}
    found = advise(seen.trace, seen.cluster, chosen, grow=grow, also=also, workers=workers, folder=folder, **chosen_options)
    return found.resting_on([*seen.rests_on, *(f"Note: {note}." for note in seen.notes)])
