"""Jobs that are submitted while a run goes on: each becomes a row, unless it could never run."""

from __future__ import annotations

import math

import numpy as np

from gantline.core.columns import ASKED_TOGETHER, DEVICE_MEMORY, HIGH, LOW, Job, JobTable
from gantline.core.errors import NotFoundError, RefusedError, UsageError, near
from gantline.core.host_resources import amounts_beside
from gantline.core.inputs import SetJob, Submit
from gantline.core.job_json import CODES, decode_job, default_options, fill_metrics
from gantline.core.json_reader import Reader
from gantline.core.options import Option, decode_option
from gantline.core.phases import Phase
from gantline.core.reasons import Reason, sentence
from gantline.core.tables import Tables
from gantline.engine.gang import set_due
from gantline.engine.gates.quotas import QuotaGate
from gantline.engine.host_resources import check_side_demands, options_with_memory
from gantline.engine.lists import RowCount
from gantline.engine.state import State

#: what a submitted job may say: all that a snapshot says of one that waits and has done nothing yet
SUBMITTED = frozenset({"id", "options", "metrics"} | {one.key for one in JobTable.columns() if one.source == "submit" and not one.secret})


class RejectedError(RefusedError):
    """A job that can never run here is refused when it is submitted; `reason` is the code from the closed list."""

    def __init__(self, reason: Reason, job: str, fix: str) -> None:
        super().__init__(f"job '{job}' {sentence(reason)}", where="submit", fix=fix)
        self.reason = reason


class Submissions:
    """Takes jobs in."""

    def __init__(self, state: State, quotas: QuotaGate, rows: JobRows) -> None:
        self.state, self.quotas, self.rows = state, quotas, rows

    def check(self, value: Submit) -> None:
        """Raise what `submit` would, and change nothing."""
        reader, _, own = self._asked(value)
        blank = Tables.empty(self.state.tables.cluster, 1)
        for option in own:
            blank.options.append(option)
        decode_job(reader, blank, 0, value.time, own, 0)

    def submit(self, value: Submit) -> None:
        """A new row for each job, which arrives at the next look; one that can never run gets none."""
        state, t = self.state, self.state.tables
        reader, names, own = self._asked(value)
        row, first = len(t.ids), len(t.options)
        for name in names:
            t.add_row(name)
            for option in own:
                t.options.append(option)
        for column in CODES:
            getattr(t.jobs, column.name)[row] = code_of(getattr(t, column.names), reader.text(column.key, ""))
        decode_job(reader, t, row, value.time, own, first)
        fill_metrics(reader, t, row)
        if t.I[Job.CONSOLIDATE, row]:
            t.I[Job.CONSOLIDATE, row] = ASKED_TOGETHER
        t.F[Job.ARRIVAL, row] = t.F[Job.SINCE, row] = value.time
        t.I[Job.PHASE, row] = int(Phase.FUTURE)
        t.F[Job.WORK, row] = float("inf") if value.work is None else value.work
        if value.work is not None and "estimate" not in reader:
            t.F[Job.ESTIMATE, row] = value.work
        if value.work is None and "estimate" not in reader:
            t.unestimated.update(range(row, row + len(names)))
        t.repeat(row, len(names) - 1)
        state.judge_models(row)
        state.make_room(row)

    def _asked(self, value: Submit) -> tuple[Reader, tuple[str, ...], list[Option]]:
        """What is submitted, the ids, and the options of each."""
        state, t = self.state, self.state.tables
        reader = Reader({"id": value.ids[0], **value.job} if value.ids else value.job, "job")
        reader.only(sorted(SUBMITTED))
        name, gpus = reader.text("id"), reader.whole("gpus", 1)
        names = value.ids or (name,)
        twice = next((one for one in names if self.rows.is_open(one)), None)
        if twice is not None or len(set(names)) < len(names):
            raise UsageError(f"there is a job '{twice or name}' already", where="submit", fix="give every job its own id")
        to_come = t.F[Job.ARRIVAL, state.lists.number[RowCount.NEXT] : len(t.ids)]
        if (to_come > value.time).any():
            raise RefusedError("jobs of a trace are still to come", where="submit", fix="submit when the last of them has arrived")
        own = self._options(reader, name, gpus)
        if state.placement.picks and any(max(amounts_beside(option)) > 0 for option in own):
            what = f"placement '{state.placement.name}' picks devices: it does not count the CPUs, memory or storage of job '{name}'"
            raise RefusedError(what, where="submit", fix="leave cpus, memory and storage out, or use another placement")
        if state.placement.picks and any(option.nodes for option in own):
            what = f"placement '{state.placement.name}' picks devices: it does not keep job '{name}' on {own[0].nodes} node"
            raise RefusedError(what, where="submit", fix="start a process for each device (processes: gpus), or use another placement")
        if t.cluster.links:
            _check_traffic(Reader(reader.raw("metrics", {}), reader.at("metrics")))
        least = reader.whole("min_gpus", 0) or min(option.gpus for option in own)
        self.quotas.check_size(name, reader.text("queue", ""), least)
        return reader, names, own

    def _options(self, reader: Reader, name: str, gpus: int) -> list[Option]:
        """The options of a job; it is rejected where none can ever run."""
        cluster = self.state.tables.cluster
        for item, path in reader.items("options"):
            kind = Reader(item, path).text("type", cluster.types[0] if cluster.types else "")
            if kind not in cluster.types:
                raise RejectedError(Reason.NO_SUCH_TYPE, name, near(kind, cluster.types))
        own = [decode_option(Reader(item, path), cluster.types) for item, path in reader.items("options")]
        own = own or default_options(self.state.tables, gpus)
        if not any(option.gpus <= cluster.gpus_of(cluster.types[option.type]) for option in own):
            raise RejectedError(Reason.TOO_LARGE, name, "ask for less, or let nodes join first")
        if reader.whole("consolidate", 0):
            from gantline.engine.option_rows import on_one_node  # few jobs ask for it

            own = on_one_node(cluster, name, own, reader.whole("max_gpus", gpus))
        check_side_demands(cluster, name, own)
        return options_with_memory(cluster, name, own, Reader(reader.raw("metrics", {}), reader.at("metrics")).number(DEVICE_MEMORY, 0.0))


def _check_traffic(metrics: Reader) -> None:
    """Refuse a job whose use of links cannot be."""
    from gantline.core.topology import BANDWIDTH, ITERATION, NETWORK, traffic_fault  # few clusters name links

    fault = traffic_fault(*(np.array([metrics.number(name, np.nan)]) for name in (ITERATION, NETWORK, BANDWIDTH)))
    if fault is not None:
        raise UsageError(f"the job {fault.what}", where=metrics.at(fault.metric), fix=fault.fix)


# Which row a job has, by its id.


class JobRows:
    """Rows by id. Tables grow while it is in use; the newest row of an id counts, because a job that had ended may come back under it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._rows: dict[str, int] = {}
        self._counted = 0  # rows that are in it

    def of(self, name: str) -> int | None:
        """The row of the job of that id."""
        ids = self.state.tables.ids
        for row in range(self._counted, len(ids)):
            if ids[row]:  # else it ended before the checkpoint we began with
                self._rows[ids[row]] = row
        self._counted = len(ids)
        return self._rows.get(name)

    def known(self, name: str, where: str) -> tuple[int, Phase]:
        """The same, with its phase; refused where there is no such job."""
        row = self.of(name)
        if row is None:
            raise NotFoundError(f"no job '{name}'", where=where, fix=near(name, self._rows))
        return row, Phase(int(self.state.tables.I[Job.PHASE, row]))

    def is_open(self, name: str) -> bool:
        """Whether there is a job of that id which has not ended."""
        row = self.of(name)
        return row is not None and not Phase(int(self.state.tables.I[Job.PHASE, row])).terminal


# Changes of a submitted job: its priority, its queue, its estimate.


def set_job(tables: Tables, row: int, value: SetJob) -> bool:
    """The row has what is given from now on; what is None stays."""
    if value.priority is not None:
        tables.F[Job.PRIORITY, row] = value.priority
    if value.queue is not None:
        tables.I[Job.QUEUE, row] = code_of(tables.queues, value.queue)
    if value.estimate is not None:
        tables.F[Job.ESTIMATE, row] = value.estimate
        tables.unestimated.discard(row)
        for name in (LOW, HIGH):  # a range around the old one means nothing any more
            if name in tables.metrics:
                tables.metrics[name][row] = math.nan
        set_due(tables.F, row)
    return True


def code_of(names: list[str], name: str) -> int:
    """The code of a name, which is listed when it is new."""
    if name not in names:
        names.append(name)
    return names.index(name)
