"""The service that a command speaks to."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from gantline.live.service.client import Client

HomeOption = Annotated[Path | None, Parameter(name="--home", help="The service's folder; else GANTLINE_HOME, GANTLINE_URL or ~/.gantline.")]
Ids = Annotated[list[str], Parameter(help="Ids of jobs; the number of an array means all its tasks.", negative="")]
Yes = Annotated[bool, Parameter(name=["--yes", "-y"], negative="", help="Do not ask.")]
_NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "httpx", "prometheus_client")


def need_libraries() -> None:
    """Refuse in one line where the libraries of the live part are not there."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"this command needs {', '.join(missing)}", where="gantline", fix="pip install 'gantline[live]'")


def connect(home: Path | None) -> Client:
    """A client of the service that is meant."""
    need_libraries()
    from gantline.live.service.client import Client

    return Client(home=home)
