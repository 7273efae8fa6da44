"""What is written into the order of an incarnation in an allocation: as on one machine, and the step that it becomes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gantline.engine.executor import Order
from gantline.live.job_environment import seats
from gantline.live.local.fork_server import ROOT
from gantline.live.local.incarnation import Incarnation
from gantline.live.local.orders import Writer
from gantline.live.premises import Task

if TYPE_CHECKING:
    from gantline.live.local.files import Values

#: the program of each task; the nodes have the same Python under the same path
PART = (sys.executable, "-S", "-E", "-c", f"import sys; sys.path[0] = {ROOT!r}; from gantline.live.slurm.part import main; main()")
_STEP = (
    "srun", "--overlap", "--mpi=none", "--mem=0", "--cpu-bind=none", "--kill-on-bad-exit=0", "--wait=0", "--chdir=/", "--quiet",
    "--ntasks-per-node=1", "--input=all", "--export=ALL",
)  # fmt: skip


@dataclass
class SlurmWriter(Writer):
    """Writes orders for an allocation."""

    job: str = ""
    by_node: Callable[[tuple[int, ...]], Mapping[str, list[int]]] = lambda devices: {}
    address: Callable[[str], str] = lambda node: node  # where the other nodes reach one

    def order(self, order: Order, task: Task, one: Incarnation) -> Values:
        written, places = super().order(order, task, one), self.by_node(order.devices)
        ranks = seats(task.launch, places, "", 0)  # where they meet is known when they are there
        counts = {name: sum(seat.node == name for seat in ranks) for name in places}
        nodes = [name for name in places if counts[name]]
        return {
            **written, "ranks": [seat.env for seat in ranks], "nodes": nodes, "parts": [counts[name] for name in nodes],
            "places": [places[name] for name in nodes], "address": self.address(nodes[0]), "allocation": self.job,
            "device_names": [f"{name}:{place}" for name, held in places.items() for place in held],
            "srun": [*_STEP, *self._step(f"gantline-{task.job}.{order.epoch}", nodes), *PART],
        }  # fmt: skip

    def _step(self, name: str, nodes: list[str]) -> list[str]:
        """Its step has a task on each node. Output of one node comes as it is printed; that of several in whole lines."""
        found = [f"--jobid={self.job}", f"--job-name={name}", f"--nodelist={','.join(nodes)}", f"--nodes={len(nodes)}"]
        return [*found, f"--ntasks={len(nodes)}", *(["--unbuffered"] if len(nodes) == 1 else [])]
