"""What a job reports about itself, with its own token."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gantline.live.service.failures import NoRightError
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["training"])
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ProgressRequest(BaseModel):
    """Other sizes that the job would like to have."""

    model_config = ConfigDict(extra="forbid")
    gpus: Annotated[int, Field(ge=1, le=100_000)] | None = None
    min_gpus: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_gpus: Annotated[int, Field(ge=1, le=100_000)] | None = None


class ProgressReport(BaseModel):
    """How far a job is; docs/design/live.md defines the fields."""

    model_config = ConfigDict(extra="forbid")
    epoch: Annotated[int, Field(ge=0)]
    step: Amount | None = None
    done: Amount | None = None
    total: Amount | None = None
    saved: Amount | None = None
    throughput: Amount | None = None
    batch: Annotated[int, Field(ge=1)] | None = None
    loss: float | None = None
    gradient_square: float | None = None
    gradient_variance: float | None = None
    request: ProgressRequest | None = None


@router.at("POST", "/v1/jobs/{id}/progress", Role.JOB)
def report_progress(id: str, report: ProgressReport, here: Here) -> dict[str, Any]:
    """Take a report; the answer says whether to save, to stop or to change."""
    if id != here.caller.job:
        raise NoRightError(f"this token is that of job '{here.caller.job}'", where="token")
    values = report.model_dump(exclude_none=True)
    answer = here.scheduler.report(id, values)
    here.service.curves.add(id, here.scheduler.wall(), values)
    return answer


@router.at("GET", "/v1/jobs/{id}/curve", Role.VIEWER)
def get_curve(id: str, here: Here) -> dict[str, Any]:
    """What the job has reported since the service started, as columns: time, done, throughput, loss."""
    return here.service.curves.of(here.job(id).id)
