"""The options of a run about power: the draw of devices, the carbon intensity of electricity, and its price."""

from __future__ import annotations

from gantline.core.cluster import Cluster
from gantline.core.errors import RefusedError, near
from gantline.core.grid import PowerGrid
from gantline.core.units import LONGEST
from gantline.engine.assembly.finders import find
from gantline.engine.assembly.spec import RunSpec


def grid_of(spec: RunSpec, cluster: Cluster) -> PowerGrid:
    """The power settings of the options; the series begin at `--series-start`."""
    carbon, electricity, power = (find(spec, name, cluster) for name in ("carbon", "electricity", "power"))
    if spec.series_start:
        from gantline.traces.files.signals import start_of

        if carbon is None and electricity is None:
            raise RefusedError("there is no series to begin in", where="--series-start", fix="give --carbon or --electricity")
        carbon, electricity = (
            one if one is None or one.step == LONGEST else start_of(one, spec.series_start) for one in (carbon, electricity)
        )
    if power:
        for name in power:
            if name not in cluster.types:
                raise RefusedError(f"the cluster has no device type '{name}'", where="--power", fix=near(name, cluster.types))
        for name in cluster.types:
            if name not in power:
                raise RefusedError(f"no power is given for device type '{name}'", where="--power", fix=f"add {name}=BUSY/IDLE")
    if electricity is not None and not power:
        raise RefusedError("a price of power, and nothing that draws any", where="--electricity", fix="give --power TYPE=BUSY/IDLE")
    return PowerGrid(carbon, electricity, power)
