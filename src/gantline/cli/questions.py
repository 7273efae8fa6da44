"""What the commands ``explain``, ``forecast`` and ``what-if`` share: a question about a file, or about the service."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from gantline.cli.arguments import settings_of
from gantline.cli.console import printable, show_json
from gantline.cli.live.connection import HomeOption
from gantline.core.errors import UsageError

if TYPE_CHECKING:
    from gantline.live.watch.watched import Document

PresentSettings = Annotated[list[str] | None, Parameter(negative="", help="A parameter of the policy in force, key=value.")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """What a question is about, and how it is answered."""

    snapshot: Annotated[
        Path | None, Parameter(help="Ask about this file (docs/snapshots.md) instead of the service.", show_default=False)
    ] = None
    watch: Annotated[
        str,
        Parameter(
            help="Ask about a cluster that others schedule: slurm or kubernetes; slurm:FILE for a recording (docs/watch.md).",
            show_default=False,
        ),
    ] = ""
    present: Annotated[
        str, Parameter(help="The policy in force, where a file is asked about; by default as a watched cluster says.", show_default=False)
    ] = ""
    placement: Annotated[
        str,
        Parameter(help="Which devices, where a file is asked about; by default as the file says.", show_default=False),
    ] = ""
    profiles: Annotated[
        Path | None,
        Parameter(
            help="Measured profiles of the jobs, where a file is asked about: starts, stops and speeds are drawn from them.",
            show_default=False,
        ),
    ] = None
    samples: Annotated[
        int | None,
        Parameter(
            name=["--draws", "--samples"],
            help="How often the present is rolled forward: 40 times, or 200 where profiles have a spread.",
            show_default=False,
        ),
    ] = None
    sigma: Annotated[
        float, Parameter(help="How far work may be from its estimate: sigma of a log-normal, where nothing better is known.")
    ] = 0.5
    newcomers: Annotated[
        str,
        Parameter(
            help="Let others come: 'past', as those that have ended came; or as in this table of jobs. Beside Slurm they come as the "
            "latest did, where enough are known; 'none': no other comes.",
            show_default=False,
        ),
    ] = ""
    home: HomeOption = None
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"], help="Words for people, or JSON.")] = "text"

    def about_file(self, ask: str, settings: list[str] | None, **more: Any) -> dict[str, Any]:
        """The answer to a question about the snapshot in the file, or of the cluster that is watched."""
        from gantline.lab.questions.asked import answer
        from gantline.traces.files.policies import code_named
        from gantline.traces.files.python_file import only_given

        document = self._document()
        instant = document.get("snapshot", document) if isinstance(document, dict) else document
        in_force = document.get("present", {}) if isinstance(document, dict) else {}
        policy = self.present or in_force.get("policy", "")
        if not policy:
            raise UsageError("a file does not say which policy is in force", where="--snapshot", fix="add --present NAME")
        latest = document.get("arrivals") if in_force else None
        if self.newcomers in ("", "past") and latest:
            more["newcomers"] = latest
        elif self.newcomers not in ("", "none"):
            more["newcomers"] = self.coming()
        given = {} if self.present else in_force.get("settings", {})
        question = {
            "ask": ask,
            "snapshot": instant,
            "policy": policy,
            "settings": {**given, **settings_of(settings)},
            "placement": self.placement,
        }
        shown = {"ratios": document["ratios"]} if in_force and document.get("ratios") else {}
        if self.profiles is not None:
            more["profiles"] = str(self.profiles)
        with only_given(code_named(self.present, self.placement, more.get("other"))):  # the file, or the recording, may be somebody else's
            return answer({**question, **shown, "samples": self.samples, "sigma": self.sigma, **more})

    @property
    def about_others(self) -> bool:
        """Whether something else than our own service is asked about."""
        return self.snapshot is not None or bool(self.watch)

    def refuse_profiles(self, why: str) -> None:
        """Where they would decide nothing."""
        if self.profiles is not None:
            raise UsageError(why, where="--profiles", fix="leave --profiles out")

    def _document(self) -> Document:
        if self.watch:
            from gantline.live.watch.sources import look

            if self.snapshot is not None:
                raise UsageError("a question is about a file or about a cluster", where="--watch", fix="leave --snapshot out")
            return look(self.watch).as_json()
        from gantline.cli.decide import read_json

        assert self.snapshot is not None
        return read_json(self.snapshot)

    def coming(self) -> list[dict[str, Any]]:
        """The jobs of the table like which others may come."""
        from gantline.traces.trace import Trace

        if self.newcomers == "past":
            what = "too few jobs are known, or all came at once" if self.watch else "a file does not hold the past"
            raise UsageError(what, where="--newcomers", fix="name a table of jobs")
        return list(Trace.load(self.newcomers).frame.iter_rows(named=True))

    def asked(self) -> dict[str, Any]:
        """What the service receives on how to answer."""
        if self.newcomers not in ("", "none", "past"):
            raise UsageError("the service has only its own past", where="--newcomers", fix="write --newcomers past")
        self.refuse_profiles("the service answers by its own profiles")
        return {"samples": self.samples, "sigma": self.sigma, "newcomers": self.newcomers == "past"}


NOTHING_SAID = QuestionOptions()


def show_answer(found: dict[str, Any], form: str) -> int:
    """Print it."""
    if form == "json":
        show_json({key: value for key, value in found.items() if key != "lines"})
    else:
        print("\n".join(map(printable, found["lines"])))
    return 0
