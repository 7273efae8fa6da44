"""``gantline status``: how the service stands."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from gantline.cli.console import show_object
from gantline.cli.live.connection import HomeOption, connect

app = App(name="status")


@app.default
def status(
    *,
    home: HomeOption = None,
    output: Annotated[Literal["table", "json"], Parameter(name=["--output", "-o"], help="Lines for people, or JSON.")] = "table",
) -> None:
    """Say where the service is, which policy decides, which devices there are, and how many jobs are in which state."""
    with connect(home) as client:
        answer = client.status()
    show_object(answer if output == "json" else _for_people(answer), output)


def _for_people(values: dict[str, Any]) -> dict[str, Any]:
    devices = ", ".join(f"{kind}: {one['busy']} of {one['count']} busy" for kind, one in values["devices"].items())
    jobs = ", ".join(f"{count} {state}" for state, count in sorted(values["jobs"].items())) or "none"
    shown = {key: values[key] for key in ("address", "pid", "version", "home", "policy")}
    aside = "; ".join(f"journal line {one['number']} {one['why']}" for one in values["set_aside"])
    rules = values["rules"]
    spared = f"a job runs for {rules['min_run']:g} s before it is stopped for others, and up to {rules['grace']:g} s until it has saved"
    spared += f"; an order that moves by itself stops jobs every {rules['turn']:g} s" if rules["turn"] else ""
    shown |= {
        "rules": spared,
        "devices": devices,
        "jobs": jobs,
        "deciding": values["deciding"],
        "incidents": "; ".join(values["incidents"]),
    }
    chosen = {"in charge": values["in_charge"]} if values["in_charge"] else {}
    return {**shown, **chosen, **({"set aside": aside} if aside else {})}
