"""How the cluster is found, and one message for each mistake."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

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
