"""What Sia's simulator charges for a (re)start, what its policy believes that to cost, and a slowdown fitted to its authors' cluster."""

from __future__ import annotations

from collections.abc import Mapping

from gantline.systems.sia.imitation.jobs import Charges

_OTHER = Charges(restart=30.0, assumed=30.0, slowdown=1.0)

_KNOWN: Mapping[str, Charges] = {
    "cifar10": Charges(50.0, 30.0, 1.8),
    "deepspeech2": Charges(25.0, 25.0, 1.2),
    "bert": Charges(120.0, 120.0, 1.2),
    "yolov3": Charges(80.0, 45.0, 1.2),
    "imagenet": Charges(250.0, 250.0, 1.2),
    "ncf": Charges(15.0, 30.0, 1.5),
}


def charges_of(application: str, assumed: float) -> Charges:
    """The charges for an application; one that the artifact does not know is not slower than measured."""
    return _KNOWN.get(application, Charges(_OTHER.restart, assumed, _OTHER.slowdown))
