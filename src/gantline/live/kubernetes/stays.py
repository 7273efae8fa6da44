"""An object of the cluster while it is a job here: what it asked for when it was submitted, and what is said to its owner."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gantline.live.kubernetes.guests import Guest
from gantline.live.kubernetes.notes import line
from gantline.live.kubernetes.objects import Object
from gantline.live.kubernetes.pods import MARK


@dataclass
class Stay:
    """One object."""

    asked: Object  # what its owner asked for when it was submitted
    job: str = ""  # empty: it is not submitted yet, or cannot be
    refused: str = ""  # why what it asks for now is not done
    answered: Object | None = None  # the change of a job that the scheduler has refused: the same is not tried again
    is_busy: bool = False  # the scheduler has been asked, and has not answered
    is_leaving: bool = False  # its owner has taken the label away
    is_over: bool = False  # its job was cancelled, because it had ended

    def marks(self, guest: Guest, home: str) -> dict[str, str | None]:
        """Annotations that the object shall have."""
        return {"asked": line(self.asked), "home": home, "job": self.job or None, "refused": self.refused or guest.spoilt or None}

    def is_marked(self, guest: Guest, home: str) -> bool:
        return all(guest.notes.get(f"{MARK}/{key}") == value for key, value in self.marks(guest, home).items())

    def changed(self, asks: Object) -> set[str]:
        """Names of what is asked for now, and was not when it was submitted."""
        return {name for name in {*asks, *self.asked} if asks.get(name) != self.asked.get(name)}


def runs_as_it_was(job: str, names: Iterable[str]) -> str:
    """Said of one whose owner asks for something else, which a job cannot become while it runs."""
    what = ", ".join(sorted(names))
    return f"it runs as it was submitted; {what}: as it is now when it is next suspended (gantline requeue {job} does that at once)"
