"""The parts of a job's specification: resources, limits, checkpoints, and what else stands below a key of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    StrictBool,
    StrictInt,
    model_validator,
)
from pydantic_core import PydanticCustomError

from gantline.core.columns import HOST_RESOURCE_NAMES
from gantline.core.errors import GantlineError
from gantline.core.fields import is_text, step_of_time
from gantline.live.jobs import amounts
from gantline.live.jobs.amounts import rule_of
from gantline.traces.schema import is_metric

_ENV_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]*$")
_QUEUE = re.compile(r"^\w[\w.\-]{0,99}(/\w[\w.\-]{0,99}){0,9}$")
_CLASSES = {"low": -100, "normal": 0, "high": 100}


def reads(read: Callable[[Any, str], Any]) -> BeforeValidator:
    """A validator from one of our readers; its remedy goes along."""

    def checked(value: Any) -> Any:
        try:
            return read(value, "")
        except GantlineError as error:
            raise mistake(error.what, error.fix) from None

    return BeforeValidator(checked)


def mistake(what: str, fix: str = "") -> PydanticCustomError:
    """A mistake in a specification, with its remedy."""
    return PydanticCustomError("gantline", "{what}", {"what": what, "fix": fix})


def _plain(text: str) -> str:
    if "\0" in text or len(text) > 100_000 or not is_text(text):
        raise mistake("holds a NUL or half of a character, or is too long", "use plain text in UTF-8")
    return text


def _name(text: str) -> str:
    if not text.isprintable() or len(text) > 200:
        raise mistake(f"{text[:40]!r} is not a name", "use at most 200 printable characters")
    return text


def is_queue(text: str) -> bool:
    """Whether a queue may be called that."""
    return _QUEUE.match(text) is not None


def _queue(text: str) -> str:
    if text and not is_queue(text):
        raise mistake(f"'{text[:64]}' is not a queue", "write names with slashes between them: research/nlp")
    return text


def _folder(text: str) -> str:
    if text and not text.startswith("/"):
        raise mistake(f"'{text}' is not an absolute path", "begin it with /")
    return _plain(text)


def _environment(values: dict[str, str]) -> dict[str, str]:
    for key in values:
        if not _ENV_NAME.match(key):
            raise mistake(f"'{key}' is not the name of a variable", "use letters, digits and _")
        if key.startswith("GANTLINE_"):
            raise mistake(f"'{key}' is set by the runner", "choose another name")
    return values


def _metrics(values: dict[str, float]) -> dict[str, float]:
    if "gpu_demand" in values:
        raise mistake("'gpu_demand' is what resources.share says", "write resources: {share: 0.5}")
    if values:
        for key in values:
            if not key.strip():
                raise mistake("a metric has no name", "write {stage_io: 0.3}")
            if not is_metric(key):
                raise mistake(f"'{key}' is a column of traces with a meaning of its own", "choose another name")
    return values


def _priority(value: Any, where: str) -> Any:
    if isinstance(value, str):
        if value not in _CLASSES:
            raise mistake(f"'{value}' is no class of priority", "write low, normal, high or a whole number")
        return _CLASSES[value]
    return value


def _variables(value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        return value
    return {key: _spelled(item) if isinstance(item, (bool, int, float)) else item for key, item in value.items()}


def _spelled(value: bool | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


Text = Annotated[str, AfterValidator(_plain)]
Name = Annotated[str, AfterValidator(_name)]
QueueName = Annotated[str, AfterValidator(_queue)]
Folder = Annotated[str, AfterValidator(_folder)]
Environment = Annotated[dict[str, Text], reads(_variables), AfterValidator(_environment)]
Metrics = Annotated[dict[Name, Annotated[float, Field(allow_inf_nan=False)]], AfterValidator(_metrics)]
Seconds = Annotated[float, reads(step_of_time)]
Priority = Annotated[StrictInt, reads(_priority), Field(ge=-1_000_000, le=1_000_000)]
Sizes = Annotated[tuple[int, int], reads(amounts.sizes), PlainSerializer(lambda pair: amounts.spell_devices("", *pair), str)]
Devices = Annotated[str, reads(lambda value, where: amounts.spell_devices(*amounts.devices(value, where)))]
Memory = Annotated[float, reads(amounts.gigabytes)]
Bandwidth = Annotated[float, reads(amounts.storage_bandwidth)]
Cpus = Annotated[float, reads(amounts.cpus)]
EndBy = Annotated[str, reads(lambda value, where: str(rule_of(value)) if isinstance(value, str) else value)]
Count = Annotated[StrictInt, Field(ge=0, le=1_000_000)]


class Part(BaseModel):
    """A part of a specification: unknown keys are mistakes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Variant(Part):
    """One variant of a job: devices per node, and how many nodes."""

    accelerators: Devices | None = None
    nodes: Sizes = (1, 1)
    cpus: Cpus = 0.0
    memory: Memory = 0.0
    storage: Bandwidth = 0.0
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0  # how fast it is this way: the estimate is for rate 1

    @property
    def is_spread(self) -> bool:
        """Whether it says over how many nodes it goes."""
        return self.nodes != (1, 1)

    @property
    def host_resources(self) -> dict[str, float]:
        """What it asks for beside the devices of a node, as far as it does."""
        return {name: amount for name in HOST_RESOURCE_NAMES if (amount := getattr(self, name))}


class Topology(Part):
    """How near the devices must be."""

    within: Literal["gpu", "node", "rack", "cluster"] = "node"
    mode: Literal["preferred", "required"] = "preferred"


class Share(Part):
    """Which part of a device it needs, and how it shares the device with others: side by side, or in turns."""

    mode: Literal["exclusive", "mps", "time"] = "exclusive"
    fraction: Annotated[float, Field(gt=0, le=1)] = 1.0

    @model_validator(mode="after")
    def _sensible(self) -> Share:
        if self.fraction < 1.0 and self.mode == "exclusive":
            raise mistake(f"needs {self.fraction:g} of a device and does not share it", "add mode: mps, or mode: time")
        return self


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


class Resources(Variant):
    """What the job needs; `any_of` lists alternatives in order of preference."""

    gpus: Sizes | None = None
    any_of: tuple[Variant, ...] = ()
    topology: Topology = Topology()
    share: Annotated[Share, reads(lambda value, where: {"mode": "mps", "fraction": value} if _is_number(value) else value)] = Share()

    @model_validator(mode="after")
    def _once(self) -> Resources:
        if sum((self.accelerators is not None, self.gpus is not None, bool(self.any_of))) > 1:
            raise mistake("says the devices twice", "give one of gpus, accelerators and any_of")
        return self

    @property
    def variants(self) -> tuple[Variant, ...]:
        """The alternatives; one where there is no choice."""
        if self.any_of:
            return tuple(variant.model_copy(update=self.host_resources | variant.host_resources) for variant in self.any_of)
        devices = self.accelerators or amounts.spell_devices("", *(self.gpus or (1, 1)))
        return (Variant(accelerators=devices, nodes=self.nodes, **self.host_resources),)


class Batch(Part):
    """Which batch sizes the job can train with."""

    base: Annotated[StrictInt, Field(ge=1)]
    max: Annotated[StrictInt, Field(ge=1)] | None = None


class Elastic(Part):
    """Between how many devices the job can run, and in which steps; `live`: it can change without a stop."""

    min: Annotated[StrictInt, Field(ge=1, le=100_000)]
    max: Annotated[StrictInt, Field(ge=1, le=100_000)]
    step: Annotated[StrictInt, Field(ge=1)] = 1
    live: StrictBool = False
    batch: Batch | None = None

    @model_validator(mode="after")
    def _ordered(self) -> Elastic:
        if self.min > self.max:
            raise mistake(f"{self.min} to {self.max} is no range", "give min <= max")
        return self

    @property
    def sizes(self) -> range:
        """All numbers of devices that it can have."""
        return range(self.min, self.max + 1, self.step)


class Deadline(Part):
    """When it must be done: at a time, or so long after its submission."""

    at: datetime | None = None
    within: Seconds | None = None
    kind: Literal["soft", "hard"] = "soft"

    @model_validator(mode="after")
    def _once(self) -> Deadline:
        if (self.at is None) == (self.within is None):
            raise mistake("needs a time", "write {at: 2026-12-01T08:00Z} or {within: 4h}")
        return self

    def moment(self, wall: float) -> float:
        """As seconds since 1970, for a job that is submitted at `wall`."""
        if self.at is None:
            return wall + (self.within or 0.0)
        return (self.at if self.at.tzinfo else self.at.replace(tzinfo=UTC)).timestamp()


class Limits(Part):
    """What a job may not exceed: time on its devices, retries, changes of its size, memory, processes and threads, output that is kept."""

    time: Seconds | None = None
    restarts: Count | None = None
    resizes: Count | None = None
    memory: Memory | None = None
    processes: Count | None = None
    log: Annotated[float, reads(amounts.output)] | None = None


class Checkpoint(Part):
    """A job that saves its work in the folder GANTLINE_CHECKPOINT and goes on from there.

    `signal` asks it to save and end, `grace` seconds later it is killed; `save` asks it to save and go on, where it can; `every` says how
    often it saves by itself. `stopped` is the exit code with which it ends when it was asked to and has saved; without it any code but 0,
    for a job that ends with 0 has done its work, asked to stop or not.
    """

    every: Seconds | None = None
    signal: Literal["TERM", "INT", "HUP", "USR1", "USR2"] = "TERM"
    save: Literal["HUP", "USR1", "USR2"] | None = None
    grace: Seconds = 30.0
    stopped: Annotated[int, Field(ge=0, le=255)] | None = None
    path: Folder = ""  # where else it saves: its variable CHECKPOINT_PATH


class Progress(Part):
    """What the job counts, and how much of it there is."""

    metric: Name = "steps"
    total: Annotated[float, Field(gt=0)] | None = None


class Model(Part):
    """What is trained, for policies that know throughputs; `hint` is a file of profiles, read where the job is submitted."""

    family: Name
    hint: Text = ""


def _array(value: Any) -> str:
    amounts.array(str(value), "")
    return str(value)


class Array(Part):
    """Many jobs from one specification; each has its own ARRAY_INDEX."""

    range: Annotated[str, reads(lambda value, where: _array(value))]
    parallel: Count = 0

    @cached_property
    def indices(self) -> list[int]:
        return amounts.array(self.range, "array")[0]

    @cached_property  # every task of the array asks for it
    def most(self) -> int:
        """How many may run at once; 0: any number."""
        return self.parallel or amounts.array(self.range, "array")[1]


class After(Part):
    """Another job that must have ended first (well, badly, or either), or at least have started."""

    job: Name
    when: Literal["ok", "failed", "any", "started"] = "ok"


class Retry(Part):
    """How often it is tried again after it has failed, and how long it waits before the first time (doubled for each further one).

    A job that lost its node or was preempted starts again in any case.
    """

    max: Count = 0
    backoff: Seconds = 1.0
    on: tuple[Literal["failed", "node-lost", "preempted"], ...] = ("failed", "node-lost", "preempted")


# What a job finds around its processes: a container's mounts, or a runtime environment that the engine makes on each
# node.


def _mount(value: str) -> str:
    where, _, how = value.partition(":")[2].partition(":")
    if not value.startswith("/") or not where.startswith("/") or how not in ("", "ro"):
        raise mistake(f"'{value}' is not a mount", "write /data:/data, or /data:/data:ro")
    return value


def _place(value: str) -> str:
    if not value.startswith("/") and "://" not in value:
        raise mistake(f"'{value}' is neither an absolute path nor a URI", "write /home/me/project, or s3://bucket/project.zip")
    return value


def _uri(value: str) -> str:
    if "://" not in value:
        raise mistake(f"'{value}' is not a URI", "put modules of this machine into working_dir")
    return value


def _runtime_variables(values: dict[str, str]) -> dict[str, str]:
    if "CUDA_VISIBLE_DEVICES" in values:
        raise mistake("'CUDA_VISIBLE_DEVICES' is set by the runner", "leave it out: a job sees the devices that it holds")
    return values


Mount = Annotated[Text, AfterValidator(_mount)]
Place = Annotated[Text, AfterValidator(_place)]
Packages = tuple[Text, ...] | dict[Text, JsonValue] | Folder  # a list, Ray's mapping, or a file of requirements
SETUP = 600  # seconds that an environment may take on a node: Ray's own default


class EnvironmentSetup(Part):
    """How the environment is made."""

    setup_timeout_seconds: Annotated[StrictInt, Field(ge=1)] = SETUP


class RuntimeEnvironment(Part):
    """What Ray makes on each node before ranks start there. Names and meanings are those of Ray's `runtime_env`; fields of Ray's that act
    on its own workers only are not among them."""

    working_dir: Place | None = None
    excludes: tuple[Text, ...] = ()
    env_vars: Annotated[Environment, AfterValidator(_runtime_variables)] = Field(default_factory=dict)
    py_modules: tuple[Annotated[Text, AfterValidator(_uri)], ...] = ()
    pip: Packages | None = None
    uv: Packages | None = None
    conda: Text | dict[Text, JsonValue] | None = None
    config: EnvironmentSetup = EnvironmentSetup()

    @model_validator(mode="after")
    def _sensible(self) -> RuntimeEnvironment:
        if self.excludes and (self.working_dir is None or "://" in self.working_dir):
            raise mistake("'excludes' has no folder to leave something out of", "name the folder in working_dir")
        if sum(one is not None for one in (self.pip, self.uv, self.conda)) > 1:
            raise mistake("names more than one of pip, uv and conda", "choose one; conda's own mapping may have pip packages")
        return self
