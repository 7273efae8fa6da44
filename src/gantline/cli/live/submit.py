"""``gantline submit``: a YAML file, or a command after ``--``."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, Parameter

from gantline.cli.console import say, show_json
from gantline.cli.live.connection import HomeOption, connect
from gantline.core.errors import UsageError, near
from gantline.core.fields import key_values, number
from gantline.live.jobs.spec_file import read_spec, spec_of
from gantline.traces.files.marked_yaml import load_marked

app = App(
    name="submit",
    help_epilogue="""Examples:

  gantline submit --gpus 2 -- python train.py --epochs 3
  gantline submit --gpus h100:2:8 --time 1-12:00:00 --retries 3 --env MODEL=bert -- torchrun train.py
  gantline submit --array 0-99%8 --after ok:17 -- ./evaluate.sh
  gantline submit job.yaml --priority high

Options count more than the file. docs/live.md lists every field of the file.""",
)
Text = Annotated[str | None, Parameter()]


@Parameter(name="*")
@dataclass(frozen=True)
class ResourceOptions:
    """What it needs beside whole devices.

    Args:
        cpus: CPUs beside the devices of a node.
        memory: Memory beside the devices of a node: 64GiB.
        storage: Bandwidth from storage beside the devices of a node: 500MB/s.
        share: The part of one device that it needs, such as 0.5; others may have the rest.
    """

    cpus: str | None = None
    memory: str | None = None
    storage: str | None = None
    share: float | None = None


@Parameter(name="*")
@dataclass(frozen=True)
class EnvironmentOptions:
    """Where it runs, and what is made there before it starts.

    Args:
        workdir: Where to run it; by default here.
        working_dir: On Ray: a folder or zip file that is brought to its nodes and run in; or a URI that they can read.
        runtime_env: On Ray: its runtime environment, a YAML or JSON file, or the JSON itself.
    """

    workdir: Path | None = None
    working_dir: str | None = None
    runtime_env: str | None = None


@app.default
def submit(
    *words: Annotated[str, Parameter(allow_leading_hyphen=True)],
    home: HomeOption = None,
    gpus: str | None = None,
    name: str | None = None,
    queue: str | None = None,
    priority: str | None = None,
    deadline: str | None = None,
    time: str | None = None,
    estimate: str | None = None,
    end_by: str | None = None,
    array: str | None = None,
    after: list[str] | None = None,
    env: list[str] | None = None,
    retries: int | None = None,
    asked: ResourceOptions | None = None,
    around: EnvironmentOptions | None = None,
    model: str | None = None,
    processes: str | None = None,
    label: list[str] | None = None,
    metric: list[str] | None = None,
    resumes: bool | None = None,
    shell: bool | None = None,
    request: str | None = None,
    dry_run: bool = False,
    output: Annotated[Literal["id", "name", "json"], Parameter(name=["--output", "-o"])] = "id",
) -> None:
    """Submit a job, or an array of them; prints the id.

    Args:
        gpus: Devices: 4, 2:8 (elastic), h100:8, cpu:2.
        name: What to call it.
        queue: Its queue, such as research/nlp.
        priority: low, normal, high or a whole number; higher goes first.
        deadline: 4h from now, or 2026-12-01T08:00Z.
        time: How long it may run: 90s, 2h, D-HH:MM:SS.
        estimate: How long it will likely run.
        end_by: End it by the loss that it reports: never, plateau:BOUND[%][@REPORTS], target:LOSS.
        array: Many of it: 0-9, 0-99%8 (eight at once).
        after: ok:ID, failed:ID, any:ID or started:ID; may be repeated.
        env: A variable, NAME=VALUE; may be repeated.
        retries: How often to try again after a failure.
        model: What is trained, for policies that know throughputs.
        processes: How many ranks to start; 'gpus': one per device; 'nodes': one on each node.
        label: KEY=VALUE; may be repeated.
        metric: A number that policies and models read, NAME=NUMBER; may be repeated.
        resumes: It saves its work in GANTLINE_CHECKPOINT and goes on from there.
        shell: Let /bin/sh run it.
        request: An id of this request: the same one again is the same submission.
        dry_run: Check it, show what would be submitted, and say when it would start.
        words: A YAML file; or, after --, the command and its arguments.
        output: The id (of an array its number, which means all of its tasks); with name the id of each task, a line
            each; or JSON.
    """
    with connect(home) as client:
        value = _base(words)
        fields = {"name": name, "queue": queue, "deadline": deadline, "estimate": estimate, "array": array, "model": model, "shell": shell}
        fields["end_by"] = end_by
        value |= {key: one for key, one in fields.items() if one is not None}
        if priority is not None:
            value["priority"] = int(priority) if priority.lstrip("+-").isdigit() else priority
        if processes is not None:
            value["processes"] = int(processes) if processes.isdigit() else processes
        _merge(value, "limits", {"time": time})
        _merge(value, "retry", {"max": retries})
        if gpus is not None:
            value["resources"] = {key: one for key, one in value.get("resources", {}).items() if key not in ("gpus", "any_of")}
        _merge(value, "resources", {"accelerators": gpus, **(asdict(asked) if asked is not None else {})})
        _merge(value, "env", key_values(env or (), "--env"))
        _merge(value, "labels", key_values(label or (), "--label"))
        _merge(value, "metrics", {key: number(one, f"--metric {key}") for key, one in key_values(metric or (), "--metric").items()})
        if after:
            value["after"] = [*value.get("after", ()), *after]
        if resumes and "checkpoint" not in value:
            value["checkpoint"] = {}
        around = around or EnvironmentOptions()
        _merge(value, "runtime_env", _environment(around))
        if around.workdir is not None or not value.get("runtime_env", {}).get("working_dir"):
            value["workdir"] = str((around.workdir or Path(value.get("workdir") or os.getcwd())).absolute())
        answer = client.submission(spec_of(value, "submit"), request=request, dry_run=dry_run)
    if dry_run:
        show_json({key: answer[key] for key in ("tasks", "spec", "submit", "then")})
        for line in answer["then"]["lines"]:
            say(line if line.startswith("note:") else f"note: {line}")
        say(f"note: nothing was submitted; it would be {answer['tasks']} job{'s' if answer['tasks'] != 1 else ''}")
    elif output == "json":
        show_json({"ids": answer["ids"]})
    elif output == "name":
        print(*answer["ids"], sep="\n")
    elif len(answer["ids"]) > 1:
        print(answer["ids"][0].partition("_")[0])
        say(f"note: {len(answer['ids'])} tasks, {answer['ids'][0]} to {answer['ids'][-1]}")
    else:
        print(*answer["ids"])


def _base(words: tuple[str, ...]) -> dict[str, Any]:
    """The file's specification, or one of the command alone."""
    if not words:
        raise UsageError("nothing to run", where="submit", fix="name a YAML file, or put the command after --")
    of_file = words[0].endswith((".yaml", ".yml"))
    strange = next((word for word in words[: 2 if of_file else 1] if word.startswith("-")), None)
    if strange is not None:
        known = ["--" + name.replace("_", "-").rstrip("-") for name in inspect.signature(submit).parameters if name != "words"]
        raise UsageError(f"no option '{strange}'", where="submit", fix=near(strange, known))
    if of_file and len(words) > 1:
        raise UsageError(f"a file, and '{words[1]}' behind it", where="submit", fix="name the file alone, or put the command after --")
    if of_file:
        return read_spec(Path(words[0])).to_json()
    return {"run": list(words)}


def _environment(given: EnvironmentOptions) -> dict[str, object]:
    """What the options say of it; a folder is one of this machine."""
    found: dict[str, object] = {}
    if given.runtime_env is not None:
        where, text = "--runtime-env", given.runtime_env
        if not text.lstrip().startswith("{"):
            try:
                where, text = text, Path(text).read_text(encoding="utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise UsageError(f"cannot be read: {error}", where=f"--runtime-env {where}", fix="name a file, or write JSON") from None
        read = load_marked(text, where).value
        if not isinstance(read, dict):
            raise UsageError("is not a mapping", where=where, fix="write {pip: [einops]}")
        found |= read
    place = given.working_dir or found.get("working_dir")
    if isinstance(place, str):
        found["working_dir"] = place if "://" in place else str(Path(place).absolute())
    return found


def _merge(value: dict[str, Any], key: str, more: Mapping[str, object]) -> None:
    given = {name: one for name, one in more.items() if one is not None}
    if given:
        value[key] = {**value.get(key, {}), **given}
