"""The recipe of the image and the deployment fit what is installed: files, extras, the command and its options."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from gantline.cli.live.up import up_app
from gantline.live.runners.kubernetes.runner import KubernetesRunner

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy" / "kubernetes"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def steps() -> list[tuple[str, str]]:
    """Instructions of the recipe, and what each is given."""
    lines = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ").splitlines()
    return [tuple(line.split(maxsplit=1)) for line in lines if line and not line.startswith("#")]  # type: ignore[misc]


def container() -> dict[str, Any]:
    (deployment,) = [one for one in yaml.safe_load_all((DEPLOY / "deployment.yaml").read_text()) if one["kind"] == "Deployment"]
    (found,) = deployment["spec"]["template"]["spec"]["containers"]
    return found


def test_what_the_recipe_copies_is_there(steps: list[tuple[str, str]]) -> None:
    sources = [word for step, given in steps if step in ("COPY", "ADD") for word in given.split()[:-1] if not word.startswith("--")]
    assert sources
    assert not [one for one in sources if not (ROOT / one).exists()]


def test_what_the_recipe_installs_is_this_package_with_an_extra_that_it_has(steps: list[tuple[str, str]]) -> None:
    (target,) = [given.split()[-1] for step, given in steps if step == "COPY"]
    (line,) = [given for step, given in steps if step == "RUN" and "pip install" in given]
    extras = re.findall(rf'"{re.escape(target)}\[([\w,]+)\]"', line)
    assert extras
    assert set(extras[0].split(",")) <= set(PROJECT["optional-dependencies"])


def test_the_image_starts_the_command_that_the_package_installs(steps: list[tuple[str, str]]) -> None:
    (entry,) = [json.loads(given) for step, given in steps if step == "ENTRYPOINT"]
    assert entry[0] in PROJECT["scripts"]
    assert "command" not in container()  # which would replace it


def test_the_interpreter_of_the_image_is_one_that_the_package_admits(steps: list[tuple[str, str]]) -> None:
    (base,) = [given for step, given in steps if step == "FROM"]
    (minor,) = re.findall(r"^python:3\.(\d+)", base)
    assert int(minor) >= int(PROJECT["requires-python"].rpartition(".")[2])


def test_the_deployment_gives_options_that_the_command_has() -> None:
    command, *words = container()["args"]
    _, bound, _ = up_app.parse_args(words, exit_on_error=False, print_error=False)
    assert (command, bound.arguments["executor"]) == ("up", "kubernetes")
    own = {one.name for one in KubernetesRunner.options}
    assert {"image", "checkpoints"} <= own
    mounts = {one["mountPath"] for one in container()["volumeMounts"]}
    assert {str(bound.arguments["home"]), str(bound.arguments["tls_cert"].parent)} <= mounts
