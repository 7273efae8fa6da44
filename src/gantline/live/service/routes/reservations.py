"""Windows: devices that are reserved in advance."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from gantline.core.errors import NotFoundError, near
from gantline.core.queues import known_names
from gantline.core.windows import AdvanceWindow
from gantline.live.service.context import Context
from gantline.live.service.roles import Role
from gantline.live.service.router import Here, Router

router = Router(tags=["reservations"])

_Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
_Names = Annotated[list[Annotated[str, Field(min_length=1, max_length=256)]], Field(max_length=1000)]
_LONGEST = 10 * 366 * 86400.0  # seconds


class NewWindow(BaseModel):
    """What is to be reserved: so many `nodes`, so many `gpus`, or those at `places`; from `start` (seconds since 1970) for `seconds`."""

    model_config = ConfigDict(extra="forbid")
    name: _Name | None = None
    nodes: Annotated[int, Field(ge=1, le=10**6)] | None = None
    gpus: Annotated[int, Field(ge=1, le=10**6)] | None = None
    places: _Names = []
    start: Annotated[float, Field(ge=0, le=1e11)] | None = None
    seconds: Annotated[float, Field(gt=0, le=_LONGEST)]
    users: _Names = []
    queues: _Names = []


@router.at("GET", "/v1/reservations", Role.VIEWER)
def list_reservations(here: Here) -> dict[str, Any]:
    """Windows that have not ended, in order of their beginning."""
    windows = sorted(here.scheduler.view().windows, key=lambda window: (window.start, window.name))
    return {"reservations": [_shown(here, window) for window in windows]}


@router.at("POST", "/v1/reservations", Role.OPERATOR)
def reserve(new: NewWindow, here: Here) -> dict[str, Any]:
    """Keep devices free for a window. Until it begins, only jobs that end by then may start on them."""
    known = {*known_names(here.scheduler.loop.state.tables.queue_tree), *(row.name for row in here.service.store.queues())}
    for queue in new.queues:
        if queue not in known:
            raise NotFoundError(f"no queue '{queue[:64]}'", where="reserve", fix=near(queue[:64], known - {""}))
    _check_users(new.users, here)
    now = here.scheduler.clock.now()
    start = now if new.start is None else now + new.start - here.scheduler.wall()
    lists = (tuple(new.places), tuple(new.users), tuple(new.queues))
    wanted = AdvanceWindow(start, start + new.seconds, new.name or "", new.nodes or 0, new.gpus or 0, *lists)
    window = here.scheduler.reserve(wanted)
    here.note("reserve", why=f"{window.name}: {', '.join(window.places)}", **new.model_dump(exclude_defaults=True))
    return _shown(here, window)


@router.at("DELETE", "/v1/reservations/{name}", Role.OPERATOR)
def cancel_reservation(name: str, here: Here) -> dict[str, Any]:
    """Cancel a window, or end it early."""
    here.scheduler.unreserve(name[:64])
    here.note("unreserve", why=name[:64])
    return {"name": name}


def _check_users(users: list[str], here: Context) -> None:
    """Refuse unknown users, because their windows would stay empty: a user with a token, an account or a job is known."""
    store = here.service.store
    known = {*(row.user for row in store.tokens()), *store.recall("accounts", {}), *here.scheduler.loop.state.tables.users} - {""}
    for user in users:
        if user not in known:
            fix = f"{near(user[:64], known)}; gantline token create {user[:64]} makes the user known"
            raise NotFoundError(f"no user '{user[:64]}'", where="reserve", fix=fix)


def _shown(here: Context, window: AdvanceWindow) -> dict[str, Any]:
    begins, ends = (here.scheduler.clock.wall(at) for at in (window.start, window.end))
    state = "begun" if window.start <= here.scheduler.clock.now() else "to come"
    lists = {name: list(getattr(window, name)) for name in ("places", "users", "queues")}
    return {"name": window.name, "state": state, "start": begins, "end": ends, **lists}
