"""A job's specification: the shape of the YAML file, and the engine's input that is made of it."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictBool, StrictInt, model_validator

from gantline.core.errors import UsageError
from gantline.core.fields import SHORTEST_STEP, step_of_time
from gantline.core.inputs import Submit
from gantline.core.slices import is_slice
from gantline.live.jobs import amounts
from gantline.live.jobs.launch import PER_NODE, Launch
from gantline.live.jobs.spec_parts import (
    After,
    Array,
    Checkpoint,
    Deadline,
    Elastic,
    EndBy,
    Environment,
    Folder,
    Limits,
    Metrics,
    Model,
    Mount,
    Name,
    Part,
    Priority,
    Progress,
    QueueName,
    Resources,
    Retry,
    RuntimeEnvironment,
    Seconds,
    Text,
    Variant,
    mistake,
    reads,
)

_GRACE, _LOG = Launch(()).grace, Launch(()).log_bytes
_RANKS = {"gpus": 0, "nodes": PER_NODE}
_VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")


def _after(value: Any, where: str) -> Any:
    """``ok:17`` on a command line, or a mapping."""
    found = []
    if not isinstance(value, (str, dict, list, tuple)):
        return value
    for item in [value] if isinstance(value, (str, dict)) else value:
        when, sign, job = item.partition(":") if isinstance(item, str) else ("", "", "")
        found.append({"job": job or item, **({"when": when} if sign else {})} if isinstance(item, str) else item)
    return found


def _deadline(value: Any, where: str) -> Any:
    """``4h`` from now, a moment, or a mapping."""
    if isinstance(value, Mapping) or value is None or isinstance(value, Deadline):
        return value
    try:
        return {"within": step_of_time(value, "")}
    except UsageError:
        return {"at": value}


def _command(value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if not value or (isinstance(value, str) and not value.strip()):
        raise mistake("is empty", "write the command to run: [python, train.py]")
    if isinstance(value, str):
        try:
            shlex.split(value)
        except ValueError as error:
            raise mistake(f"cannot be split into words: {error}", "close the quotes, or write a list") from None
    return value


def _words(value: Any, where: str) -> Any:
    """Numbers among the words are words: ``[sleep, 5]``."""
    numbers = (int, float)
    return (
        [str(one) if isinstance(one, numbers) and not isinstance(one, bool) else one for one in value] if isinstance(value, list) else value
    )


Command = Annotated[Text | tuple[Text, ...], reads(_words), AfterValidator(_command)]


class JobSpec(Part):
    """One job, or an array of them. Only `run` must be there."""

    run: Command
    name: Name = ""
    queue: QueueName = ""
    labels: dict[Name, Name] = Field(default_factory=dict)
    resources: Resources = Resources()
    elastic: Elastic | None = None
    priority: Priority = 0
    weight: Annotated[float, Field(gt=0)] = 1.0
    deadline: Annotated[Deadline | None, reads(_deadline)] = None
    estimate: Seconds | None = None
    limits: Limits = Limits()
    end_by: EndBy | None = None  # None: as the service ends jobs by their loss
    checkpoint: Checkpoint | None = None
    progress: Progress = Progress()
    model: Annotated[Model | None, reads(lambda value, where: {"family": value} if isinstance(value, str) else value)] = None
    metrics: Metrics = Field(default_factory=dict)  # numbers that policies and performance models read by name
    array: Annotated[Array | None, reads(lambda value, where: {"range": value} if isinstance(value, (str, int)) else value)] = None
    after: Annotated[tuple[After, ...], reads(_after)] = ()
    retry: Annotated[Retry, reads(lambda value, where: {"max": value} if isinstance(value, int) else value)] = Retry()
    env: Environment = Field(default_factory=dict)
    setup: Command | None = None
    shell: StrictBool = False
    processes: Annotated[StrictInt, Field(ge=1, le=4096)] | Literal["gpus", "nodes"] = 1
    workdir: Folder = ""
    image: Text = ""
    mounts: tuple[Mount, ...] = ()
    runtime_env: RuntimeEnvironment | None = None
    object: Text = ""  # the engine's own object that it is, KIND/NAME/UID; only a runner that has found it says so
    index: Annotated[StrictInt, Field(ge=0)] | None = None  # which task of its array it is; `expand` says so

    @model_validator(mode="after")
    def _sensible(self) -> JobSpec:
        for field in ("run", "setup"):
            value = getattr(self, field)
            if isinstance(value, str) and "\n" in value.strip() and not self.shell:
                raise mistake(f"'{field}' has several lines", "add shell: true to run it with /bin/sh, or write a list of arguments")
        if self.index is not None and (self.array is None or self.index not in self.array.indices):
            raise mistake("'index' is no task of an array", "leave it out, and write array: 0-9")
        if self.workdir and self.runtime_env is not None and self.runtime_env.working_dir:
            raise mistake("'workdir' and 'runtime_env.working_dir' both say where it runs", "name one of them")
        low, _ = self.sizes
        if self.elastic is not None and not (self.elastic.min <= low <= self.elastic.max):
            raise mistake(f"asks for {low} devices, 'elastic' for {self.elastic.min} to {self.elastic.max}", "let them overlap")
        for asked in (_devices_of(variant) for variant in self.resources.variants) if self._steps else ():
            if (asked - self._steps[0]) % self._steps.step:
                text = ", ".join(map(str, self._steps[:6])) + (", ..." if len(self._steps) > 6 else "")
                raise mistake(f"asks for {asked} devices, and 'elastic' has {text}", "ask for one of these, or change step")
        return self

    @property
    def title(self) -> str:
        """Its name, or the most telling word of its command: the script that Python runs, else the program."""
        if self.name:
            return self.name
        first, *rest = self.words
        if first.rsplit("/", 1)[-1].startswith("python") and rest:
            script = rest[1] if rest[0] == "-m" and len(rest) > 1 else rest[0]
            first = first if script.startswith("-") else script
        shown = "".join(sign if sign.isprintable() else " " for sign in first.rsplit("/", 1)[-1])
        return shown.strip()[:60] or "job"

    @property
    def words(self) -> list[str]:
        """The command as a list of arguments."""
        return shlex.split(self.run) if isinstance(self.run, str) else list(self.run)

    @property
    def sizes(self) -> tuple[int, int]:
        """The least and the most devices of its preferred option; `elastic` widens it."""
        variant = self.resources.variants[0]
        _, low, high = amounts.devices(variant.accelerators or 1, "accelerators")
        return low * variant.nodes[0], high * variant.nodes[1]

    @property
    def _steps(self) -> range:
        """The numbers of devices that it can have, where these are not all between the least and the most."""
        return self.elastic.sizes if self.elastic is not None and self.elastic.step > 1 else range(0)

    def expand(self) -> list[JobSpec]:
        """Itself, or the tasks of its array."""
        if self.array is None or self.index is not None:
            return [self]
        return [self.model_copy(update={"index": index}) for index in self.array.indices]

    def first(self) -> JobSpec:
        """Itself, or the first task of its array."""
        return self if self.array is None or self.index is not None else self.model_copy(update={"index": self.array.indices[0]})

    def on(self, types: Sequence[str], wall: float) -> JobSpec:
        """The same job for devices of these types, submitted at `wall` (seconds since 1970): nothing in it depends on the day."""
        change: dict[str, Any] = {}
        if self.deadline is not None:
            change["deadline"] = Deadline(within=max(self.deadline.moment(wall) - wall, SHORTEST_STEP), kind=self.deadline.kind)
        variants = self.resources.variants
        by_type = (
            any(variant.host_resources or variant.is_spread for variant in variants)
            or self._steps
            or any(self.on_one_gpu(k, self.sizes[1]) for k in types)
        )
        if by_type and any(not amounts.devices(variant.accelerators or 1, "")[0] for variant in variants):
            change["resources"] = self.resources.model_copy(
                update={"any_of": tuple(_typed(variants, types)), "gpus": None, "accelerators": None}
            )
        return self.model_copy(update=change)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON, without what is at its default; `spec_of` reads it."""
        found: dict[str, Any] = self.model_dump(mode="json", exclude_defaults=True)
        return found

    def launch(self) -> Launch:
        """What the runner needs."""
        saves, limits, known = self.checkpoint, self.limits, dict(self.env)
        if saves is not None and saves.path:
            known["CHECKPOINT_PATH"] = saves.path
        if self.index is not None:
            known["ARRAY_INDEX"] = str(self.index)
        retries = self.retry.max if "failed" in self.retry.on else 0
        return Launch(
            command=tuple(self.argv(known)),
            env={name: value for name, value in known.items() if name != "ARRAY_INDEX"},
            cwd=self.workdir,
            image=self.image,
            mounts=self.mounts,
            runtime_env={} if self.runtime_env is None else self.runtime_env.model_dump(mode="json", exclude_defaults=True),
            object=self.object,
            processes=_RANKS[self.processes] if isinstance(self.processes, str) else self.processes,
            stop_signal=saves.signal if saves is not None else "TERM",
            grace=saves.grace if saves is not None else _GRACE,
            save_signal=(saves.save or "") if saves is not None else "",
            resumes=saves is not None,
            stopped_exit=saves.stopped if saves is not None else None,
            changes=("devices", *(("batch",) if self.elastic.batch else ())) if self.elastic is not None and self.elastic.live else (),
            share="" if self.resources.share.fraction == 1.0 else self.resources.share.mode,
            part=self.resources.share.fraction,
            retries=retries if limits.restarts is None else min(retries, limits.restarts),
            backoff=self.retry.backoff,
            resizes=limits.resizes,
            time_limit=math.inf if limits.time is None else limits.time,
            log_bytes=int(limits.log * 1e9) if limits.log else _LOG,
            memory=limits.memory or 0.0,
            pids=limits.processes or 0,
            after=tuple((one.job, "ended" if one.when == "any" else one.when) for one in self.after),
            array_index=-1 if self.index is None else self.index,
            parallel=self.array.most if self.array is not None else 0,
        )

    def launches(self, number: str) -> list[Launch]:
        """The same for each task of the array of that number; only what names the index differs from task to task."""
        if self.array is None or self.index is not None:
            return [self.launch()]
        if "ARRAY_INDEX" in f"{self.run} {self.setup}":
            return [replace(task.launch(), array=number) for task in self.expand()]
        common = self.launch()
        return [replace(common, array=number, array_index=index) for index in self.array.indices]

    def argv(self, variables: Mapping[str, str]) -> list[str]:
        """The argument list to start: ``$NAME`` is replaced where it is known; a shell runs it only if asked for.

        A `setup` runs first; where it fails, the command is not started.
        """
        text = self.run if isinstance(self.run, str) else shlex.join(self.run)
        run = ["/bin/sh", "-ec", text] if self.shell else _filled(self.words, variables)
        if self.setup is None:
            return run
        before = self.setup if isinstance(self.setup, str) else shlex.join(self.setup)
        if not self.shell:
            before = shlex.join(_filled(shlex.split(before), variables))
        return ["/bin/sh", "-ec", before + '\nexec "$@"', "setup", *run]

    def to_submit(self, id: str, now: float) -> Submit:
        """The engine's input for this job."""
        low, high = self.sizes
        least, most = (self.elastic.sizes[0], self.elastic.sizes[-1]) if self.elastic is not None else (low, high)
        job: dict[str, Any] = {"id": id, "gpus": low, "min_gpus": least, "max_gpus": most}
        names = {"queue": self.queue, "model": self.model.family if self.model is not None else ""}
        job |= {key: value for key, value in names.items() if value}
        if options := self._options():
            job["options"] = options
        job |= {"priority": float(self.priority)} if self.priority else {}
        job |= {"weight": self.weight} if self.weight != 1.0 else {}
        if self.deadline is not None and self.deadline.within is not None:
            job["deadline"] = now + self.deadline.within
        if expected := self.estimate or self.limits.time:
            job["estimate"] = expected
        job["checkpoint"] = self.checkpoint.every if self.checkpoint is not None and self.checkpoint.every is not None else "inf"
        part = self.resources.share.fraction
        known = {**self.metrics, **({"gpu_demand": part} if part < 1.0 else {})}  # the latter is what the policy 'sharing' reads
        job |= {"metrics": known} if known else {}
        job |= {"consolidate": 1} if self.on_one_node(most) else {}
        return Submit(now, job)

    def on_one_node(self, size: int) -> bool:
        """Whether a gang of that size must be on one node: as it requires, or because a process of its uses several devices."""
        required = self.resources.topology.within == "node" and self.resources.topology.mode == "required"
        return size > 1 and (required or (isinstance(self.processes, int) and self.processes < size))

    def on_one_gpu(self, kind: str, size: int) -> bool:
        """Whether so many slices must be cut from one GPU: as it requires, or because each of its processes uses all of them."""
        required = self.resources.topology.within == "gpu" and self.resources.topology.mode == "required"
        return size > 1 and is_slice(kind) and (required or self.processes not in ("gpus", size))

    def _options(self) -> list[dict[str, Any]]:
        """Its options; none: any type that has devices, which is the engine's default.

        One that changes in steps, or by whole nodes, lists every size, the one that it asks for first: elastic policies then give it no
        other.
        """
        found = []
        for variant in self.resources.variants:
            kind, low, high = amounts.devices(variant.accelerators or 1, "accelerators")
            amount = {name: value / low for name, value in variant.host_resources.items()}  # per device
            asked, nodes = _devices_of(variant), _nodes_by_size(variant, low, high)
            sizes = self._steps or sorted(nodes)
            others = [*(size for size in sizes[::-1] if size < asked), *(size for size in sizes if size > asked)]
            for size in [asked, *others] if kind else ():
                rate = variant.rate * size / asked
                near = {"nodes": 1 if self.on_one_gpu(kind, size) else nodes.get(size, 0)}
                found.append(
                    {"type": kind, "gpus": size, **amount, **(near if near["nodes"] else {}), **({"rate": rate} if rate != 1.0 else {})}
                )
        return found


def _devices_of(variant: Variant) -> int:
    """How many devices it asks for at first."""
    return amounts.devices(variant.accelerators or 1, "accelerators")[1] * variant.nodes[0]


def _nodes_by_size(variant: Variant, low: int, high: int) -> dict[int, int]:
    """Over how many nodes it goes with so many devices, the fewest; nothing where it does not say."""
    found: dict[int, int] = {}
    for nodes in range(variant.nodes[0], variant.nodes[1] + 1) if variant.is_spread else ():
        for each in range(low, high + 1):
            found.setdefault(nodes * each, nodes)
    return found


def _typed(variants: Sequence[Variant], types: Sequence[str]) -> Iterator[Variant]:
    """Options that name their type: one without a type becomes one for every type."""
    for variant in variants:
        kind, low, high = amounts.devices(variant.accelerators or 1, "accelerators")
        for name in [kind] if kind else types:
            yield variant.model_copy(update={"accelerators": amounts.spell_devices(name, low, high)})


def _filled(words: Sequence[str], known: Mapping[str, str]) -> list[str]:
    """Arguments with known variables replaced; others stay as written."""
    return [_VARIABLE.sub(lambda m: known.get(m[1] or m[2], m[0]), word) for word in words]
