"""Runtime environments in specifications: what can be written, and what cannot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gantline.cli.live.submit import EnvironmentOptions, _environment
from gantline.core.errors import UsageError
from gantline.live.jobs.launch import Launch
from gantline.live.jobs.spec import JobSpec
from gantline.live.jobs.spec_file import spec_of
from gantline.live.runners.kubernetes.access import ClusterAccess
from gantline.live.runners.kubernetes.client import ApiClient
from gantline.live.runners.kubernetes.pods_and_nodes import PodTerms
from gantline.live.runners.kubernetes.runner import KubernetesRunner


def written(environment: Any, **more: Any) -> JobSpec:
    return spec_of({"run": ["python", "train.py"], "runtime_env": environment, **more})


def test_an_environment_is_the_same_after_it_was_stored() -> None:
    spec = written({"working_dir": "/code", "excludes": ["data"], "env_vars": {"LAYERS": 3}, "pip": ["einops"]})
    assert spec.launch().runtime_env == {"working_dir": "/code", "excludes": ["data"], "env_vars": {"LAYERS": "3"}, "pip": ["einops"]}
    assert spec_of(spec.to_json()) == spec
    assert Launch.from_json(spec.launch().to_json()) == spec.launch()


@pytest.mark.parametrize(
    ("environment", "told"),
    [
        ({"working_dirr": "/code"}, "did you mean 'working_dir'"),
        ({"working_dir": "code"}, "neither an absolute path nor a URI"),
        ({"excludes": ["data"]}, "no folder to leave something out of"),
        ({"working_dir": "s3://bucket/code.zip", "excludes": ["data"]}, "no folder to leave something out of"),
        ({"pip": ["einops"], "conda": "base"}, "more than one of pip, uv and conda"),
        ({"pip": "requirements.txt"}, "not an absolute path"),
        ({"py_modules": ["/code/module"]}, "is not a URI"),
        ({"env_vars": {"GANTLINE_URL": "x"}}, "set by the runner"),
        ({"env_vars": {"CUDA_VISIBLE_DEVICES": "0"}}, "set by the runner"),
        ({"config": {"setup_timeout_seconds": 0}}, "setup_timeout_seconds"),
        (["einops"], "is not a mapping"),
    ],
)
def test_what_would_not_act_is_refused(environment: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        written(environment)


def test_a_job_runs_in_one_folder() -> None:
    with pytest.raises(UsageError, match="both say where it runs"):
        written({"working_dir": "/code"}, workdir="/elsewhere")


def test_options_name_folders_of_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "env.yaml").write_text("working_dir: code\npip: [einops]\n")
    assert _environment(EnvironmentOptions(runtime_env="env.yaml")) == {"working_dir": f"{tmp_path}/code", "pip": ["einops"]}
    assert _environment(EnvironmentOptions(None, ".", '{"uv": ["einops"]}')) == {"working_dir": str(tmp_path), "uv": ["einops"]}
    assert _environment(EnvironmentOptions(None, "s3://bucket/code.zip")) == {"working_dir": "s3://bucket/code.zip"}
    (tmp_path / "env.yaml").write_text("[einops]")
    with pytest.raises(UsageError, match="is not a mapping"):
        _environment(EnvironmentOptions(runtime_env="env.yaml"))


def test_pods_have_their_environment_by_their_image(tmp_path: Path) -> None:
    runner = KubernetesRunner(
        tmp_path, ApiClient(ClusterAccess("http://127.0.0.1:9")), PodTerms("jobs", "home", "", image="pytorch"), True, 300.0
    )
    assert "by their image" in runner.refusal(Launch(("true",), runtime_env={"env_vars": {"MODE": "fast"}}))
    assert not runner.refusal(Launch(("true",)))
