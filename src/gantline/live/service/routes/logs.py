"""What jobs have printed. Nothing of a request becomes part of a path: ids are looked up, epochs and ranks are numbers."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from gantline.core.errors import NotFoundError
from gantline.live.service.logfile import MOST, broken_before, read_log
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["jobs"])
Number = Annotated[int | None, Query(ge=0, le=2**53)]


@router.at("GET", "/v1/jobs/{id}/logs", Role.VIEWER)
def get_logs(
    id: str,
    here: Here,
    epoch: Number = None,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    tail: Annotated[int | None, Query(ge=0, le=100_000)] = None,
    rank: Number = None,
    limit: Annotated[int, Query(ge=4, le=MOST)] = MOST,
) -> dict[str, Any]:
    """A piece of the output from `offset` on; go on at `next`, until `end`. `tail`: only the last lines. Without an epoch: the newest.

    If that is read from its beginning, `broke` says why the previous incarnation failed, with its last lines, if it failed.
    """
    job = here.job(id)
    if job.is_archived and not here.scheduler.runner.incarnations(job.id):
        raise NotFoundError(
            f"the output of job '{job.id}' was removed: it ended longer ago than is kept",
            where="logs",
            fix=f"see gantline describe job {job.id}",
        )
    piece = read_log(here.scheduler.runner, job.id, epoch=epoch, offset=offset, tail=tail, rank=rank, limit=limit)
    broke = broken_before(here.scheduler.runner, job.id) if epoch is None and not offset and tail is None else None
    return {**piece, "broke": broke, "state": job.state, "end": job.finished is not None and piece["next"] >= piece["size"]}
