"""How the cluster is found, and one message for each mistake."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import yaml

from gantline.cli.live.up import up_app
from gantline.core.errors import GantlineError
from gantline.live.runners.kubernetes.access import find_access
from gantline.live.runners.kubernetes.client import ApiClient
from gantline.live.runners.kubernetes.runner import KubernetesRunner, check_version


def write(path: Path, **changes: object) -> str:
    config = {
        "current-context": "here", "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": "jobs"}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }  # fmt: skip
    path.write_text(yaml.safe_dump(config | changes))
    return str(path)


def test_a_kubeconfig_names_server_namespace_and_token(tmp_path: Path) -> None:
    found = find_access(write(tmp_path / "config"))
    assert (found.host, found.port, found.namespace, found.bearer()) == ("127.0.0.1", 9, "jobs", "secret")
    assert find_access(write(tmp_path / "config"), namespace="other").namespace == "other"


@pytest.mark.parametrize(
    ("changes", "context", "said"),
    [
        ({"current-context": ""}, "", "no current context"), ({}, "hare", "did you mean 'here'?"),
        ({"clusters": []}, "", "no cluster 'c' in it"), ({"clusters": [{"name": "c", "cluster": {"server": "here"}}]}, "", "is no address"),
        ({"users": []}, "", "no user 'u' in it"),
        ({"clusters": [{"name": "c", "cluster": {"server": "https://h", "certificate-authority-data": "eA=="}}]}, "", "certificates"),
    ],
)  # fmt: skip
def test_a_mistake_in_it_is_said_with_its_place(tmp_path: Path, changes: dict[str, object], context: str, said: str) -> None:
    with pytest.raises(GantlineError) as error:
        find_access(write(tmp_path / "config", **changes), context)
    assert said in str(error.value)


def test_no_cluster_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with pytest.raises(GantlineError, match="no cluster is named"):
        find_access()
    with pytest.raises(GantlineError, match="cannot be read"):
        find_access(str(tmp_path / "absent"))


def test_a_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    with pytest.raises(GantlineError) as error:
        ApiClient(find_access(write(tmp_path / "config"))).get("/version")
    assert "http://127.0.0.1:9" in str(error.value)
    assert error.value.exit_code == 5


@pytest.mark.parametrize(
    ("devices", "options", "said"), [("a100:4", {}, "write cpu"), (None, {"gang-timeout": "soon"}, "no number of seconds")]
)
def test_options_that_cannot_be_are_refused(devices: str | None, options: dict[str, str], said: str) -> None:
    with pytest.raises(GantlineError, match=said):
        KubernetesRunner.check(devices, options)


@pytest.mark.parametrize(("minor", "refused"), [("19", True), ("9+", True), ("20", False), ("31+", False)])
def test_a_server_that_is_too_old_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minor: str, refused: bool) -> None:
    client = ApiClient(find_access(write(tmp_path / "config")))
    monkeypatch.setattr(client, "get", lambda path: {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}"})
    with pytest.raises(GantlineError, match=r"1\.20 or later") if refused else nullcontext():
        check_version(client)


# The recipe of the image and the deployment fit what is installed: files, extras, the command and its options.

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


# Whoever does not use Kubernetes imports nothing of it.


def test_gantline_and_its_list_of_runners_import_none_of_it() -> None:
    code = "import sys, gantline, gantline.live.runners.registry, gantline.live.watch.sources\n"
    code += "print([n for n in sys.modules if 'kubernetes' in n])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
