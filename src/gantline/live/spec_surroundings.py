"""What a job finds around its processes: a container's mounts, or a runtime environment that the engine makes on each node."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, JsonValue, StrictInt, model_validator

from gantline.live.spec_parts import Environment, Folder, Part, Text, mistake


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


def _variables(values: dict[str, str]) -> dict[str, str]:
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
    env_vars: Annotated[Environment, AfterValidator(_variables)] = Field(default_factory=dict)
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
