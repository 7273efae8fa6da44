"""A policy that packs: in order of arrival, two jobs to a GPU where measured pairs say that it pays, one to a CPU slot."""

from dataclasses import dataclass, field
from typing import ClassVar

from gantline import Assignment, Mode, Plan, Policy, Snapshot


@dataclass(frozen=True)
class Packed(Policy):
    """First come, first served, with space sharing; nobody is stopped."""

    name: ClassVar[str] = "packed"

    pairs: str = field(default="", metadata={"help": "ratios that were measured: conv+lm=0.7/0.6,... (speed together over speed alone)"})
    least: float = field(default=1.1, metadata={"help": "what two jobs must do together, over one alone, to share a GPU"})

    def gain(self, one: str, other: str) -> float:
        """What two models do together on one device, over what one does alone; zero where nobody knows."""
        for part in self.pairs.split(","):
            names, _, ratios = part.partition("=")
            if sorted(names.split("+")) == sorted((one, other)):
                return sum(float(ratio) for ratio in ratios.split("/"))
        return 0.0

    def decide(self, snapshot: Snapshot) -> Plan:
        jobs, cluster = snapshot.jobs, snapshot.cluster
        node, up = cluster.device_node, cluster.node_up
        on: dict[int, list[int]] = {device: [] for device in range(len(node)) if up[node[device]]}
        order = sorted(range(len(jobs)), key=lambda job: (not jobs.running[job], jobs.arrival[job], job))
        given = []
        for job in order:
            held = jobs.devices(job)
            device = held[0] if held else self._place(snapshot, job, on)
            if device is None:
                continue
            on.setdefault(device, []).append(job)
            kind = int(cluster.node_type[cluster.device_node[device]])
            if cluster.types[kind].startswith("cpu"):
                given.append(Assignment(job, type=kind, gpus=1, devices=(device,)))
            else:
                given.append(Assignment(job, type=kind, gpus=1, devices=(device,), group=device, mode=Mode.SPACE, size=1))
        return Plan.assign(given)

    def _place(self, snapshot: Snapshot, job: int, on: dict[int, list[int]]) -> int | None:
        """A free device, in the order of the job's options; else a GPU whose job it may join."""
        jobs, cluster = snapshot.jobs, snapshot.cluster
        model = snapshot.models[jobs.model[job]]
        for option in jobs.options(job):
            for device, there in on.items():
                kind = int(cluster.node_type[cluster.device_node[device]])
                if kind != option.type:
                    continue
                if not there:
                    return device
                shares = not cluster.types[kind].startswith("cpu") and len(there) == 1
                if shares and self.gain(model, snapshot.models[jobs.model[there[0]]]) >= self.least:
                    return device
        return None
