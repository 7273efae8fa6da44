"""``gantline watch``: look at a cluster that others schedule, and ask about it; nothing is changed unless --apply says so."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from gantline.cli.arguments import Settings, settings_of
from gantline.cli.console import printable, say, show_json
from gantline.core.errors import UsageError
from gantline.lab.whole_files import write_json
from gantline.live.watch import held_against, slurm_advice, slurm_recording
from gantline.live.watch.kubernetes_snapshot import COMMAND
from gantline.live.watch.sources import look_at_kubernetes, look_at_slurm
from gantline.live.watch.watched import ClusterLook

app = App(
    name="watch",
    help_epilogue="""Slurm's own order (multifactor priority, backfill) is the policy in force in what is written. Examples:

  gantline watch slurm
  gantline what-if --watch slurm --policy srtf
  gantline watch slurm --script | sh > now.txt
  gantline forecast --watch slurm:now.txt
  gantline watch slurm --record looks --every 60 --times 60
  gantline watch slurm --check looks
  gantline watch slurm --advise srtf --at-most 5
  gantline watch kubernetes
  gantline what-if --watch kubernetes --policy srtf""",
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LooksOverTime:
    """Recordings that are kept, and what they show of forecasts.

    Args:
        record: Keep recordings in this folder.
        every: With --record: seconds between two; 60 by default.
        times: With --record: how many; 60 by default.
        check: Hold forecasts against what recordings in this folder show.
    """

    record: Path | None = None
    every: float | None = None
    times: int | None = None
    check: Path | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class OrderAdvice:
    """Another order for the queue, and what may be done for it.

    Args:
        requeue: With --advise: requeue jobs that the policy would stop.
        apply: With --advise: carry the commands out.
        advise: Print the commands that give the queue the order of this policy.
        at_most: With --advise: how many changes; 20 by default.
    """

    advise: str = ""
    set_: Settings = None
    at_most: int | None = None
    requeue: bool = False
    apply: bool = False


_NO_LOOKS, _NO_ADVICE = LooksOverTime(), OrderAdvice()


@app.command
def slurm(
    *,
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
    out: Path | None = None,
    script: bool = False,
    json: bool = False,
    looks: LooksOverTime = _NO_LOOKS,
    order: OrderAdvice = _NO_ADVICE,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Look at Slurm: what runs, what waits, what is in force; what to ask about it.

    Args:
        out: Write the snapshot, the policy in force and known run times to this file.
        script: Print the shell script that makes a recording.
        json: Ask Slurm's commands for JSON where they can print it.
        from_: A recording in place of Slurm's commands on this machine.
        output: Words for people, or JSON.
    """
    acts = {"--script": script, "--record": looks.record is not None, "--check": looks.check is not None, "--advise": bool(order.advise)}
    _one_of(acts)
    _check(looks, order, from_)
    if any(acts.values()) and out is not None:
        raise UsageError("--out writes a look, and nothing else", where="--out", fix="leave it out, or the other")
    if json and (from_ is not None or looks.record is not None or looks.check is not None):
        raise UsageError("a recording says itself what it is", where="--json", fix="leave it out, or give it to --script")
    if script and from_ is not None:
        raise UsageError("the script makes a recording and reads none", where="--from", fix="leave it out")
    if script:
        print(slurm_recording.script(json), end="")
        return 0
    if looks.record is not None:
        held_against.keep_recordings(looks.record, 60.0 if looks.every is None else looks.every, looks.times or 60, say)
        return 0
    if looks.check is not None:
        held = held_against.hold_against(looks.check)
        return _show(held.as_json(), held.lines(), output)
    look = look_at_slurm(from_, json)
    if order.advise:
        found = slurm_advice.advise_order(
            look, order.advise, settings_of(order.set_), 20 if order.at_most is None else order.at_most, order.requeue
        )
        shown = _show(found.as_json(), found.lines(), output)
        if order.apply:
            say(f"{slurm_advice.apply(found, say)} changes made")
        return shown
    return _show_look(look, out, output)


@app.command
def kubernetes(
    *,
    kubeconfig: str = "",
    context: str = "",
    from_: Annotated[Path | None, Parameter(name="--from")] = None,
    out: Path | None = None,
    script: bool = False,
    output: Annotated[Literal["text", "json"], Parameter(name=["--output", "-o"])] = "text",
) -> int:
    """Look at a Kubernetes cluster: pods with GPUs that run and wait, and the order in force.

    Args:
        out: Write the snapshot and the policy in force to this file.
        script: Print the command that makes a recording.
        kubeconfig: The cluster, and our identity there; by default as for kubectl.
        context: A context of the kubeconfig; by default its current one.
        from_: A recording in place of the cluster (see --script).
        output: Words for people, or JSON.
    """
    if script and (from_ is not None or out is not None or kubeconfig or context):
        raise UsageError("the script makes a recording, and looks at nothing", where="--script", fix="leave the others out")
    if from_ is not None and (kubeconfig or context):
        raise UsageError("a recording is of one cluster already", where="--from", fix="leave --kubeconfig and --context out")
    if script:
        print(COMMAND)
        return 0
    return _show_look(look_at_kubernetes(from_, kubeconfig, context), out, output)


def _show_look(look: ClusterLook, out: Path | None, output: str) -> int:
    if out is None:
        return _show(look.as_json(), look.lines(), output)
    write_json(out, look.as_json())
    say(f"wrote {out}: gantline forecast --snapshot {out}")
    return 0


def _check(looks: LooksOverTime, order: OrderAdvice, recording: Path | None) -> None:
    if (order.apply or order.requeue or order.set_ or order.at_most is not None) and not order.advise:
        raise UsageError("without --advise there is nothing to change", where="watch slurm", fix="add --advise POLICY")
    if (looks.every is not None or looks.times is not None) and looks.record is None:
        raise UsageError("without --record there is one look", where="watch slurm", fix="add --record FOLDER")
    if recording is not None and (order.apply or looks.record is not None or looks.check is not None):
        raise UsageError("a recording is neither changed nor recorded again", where="--from", fix="leave --from out")
    if (order.at_most or 0) < 0 or (looks.every is not None and looks.every <= 0) or (looks.times is not None and looks.times < 1):
        raise UsageError("a count or an interval is not above zero", where="watch slurm", fix="see --at-most, --every and --times")


def _one_of(chosen: dict[str, bool]) -> None:
    names = [name for name, is_chosen in chosen.items() if is_chosen]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} are different things to do", where="watch slurm", fix="give one of them")


def _show(found: dict[str, object], lines: list[str], output: str) -> int:
    if output == "json":
        show_json(found)
    else:
        print("\n".join(map(printable, lines)))
    return 0
