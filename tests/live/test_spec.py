"""A job's specification: what may be written, what the engine is told, and how a mistake is shown."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.live.specs import must_succeed, running

from gantline import simulate
from gantline.core.cluster_spec import parse_cluster
from gantline.core.errors import NotFoundError, RefusedError, UsageError
from gantline.core.inputs import Action, Input, JobRequest, Submit
from gantline.live.jobs import amounts
from gantline.live.jobs.launch import Launch, Submittable
from gantline.live.jobs.spec import JobSpec
from gantline.live.jobs.spec_file import check_promises, parse_spec, read_spec, spec_of
from gantline.live.service.questions import history_rows
from gantline.policies.registry import make_policy


def test_an_image_is_refused_where_jobs_are_plain_processes(tmp_path: Path) -> None:
    with running(tmp_path) as scheduler:
        for asked in ("image: pytorch", "mounts: [/data:/data:ro]", "runtime_env: {env_vars: {MODE: fast}}"):
            with pytest.raises(RefusedError, match="plain processes of its machine"):
                scheduler.submit(parse_spec(f"run: [a]\n{asked}"))
    with pytest.raises(UsageError, match="is not a mount"):
        parse_spec("run: [a]\nmounts: [data]")


FULL = """
name: bert-finetune
queue: research/nlp
labels: {team: nlp}
resources:
  any_of:
    - {accelerators: H100:8, nodes: 1:4}
    - {accelerators: A100:8, nodes: 2:8}
  cpus: 16+
  memory: 64GiB+
  topology: {within: rack, mode: preferred}
  share: {mode: mps, fraction: 0.5}
elastic: {min: 8, max: 32, step: 8, live: true, batch: {base: 256, max: 4096}}
priority: high
deadline: {at: 2026-12-01T08:00Z, kind: soft}
limits: {time: 1-12:00:00, restarts: 5, memory: 8G, processes: 100}
checkpoint: {path: /ckpt, every: 15m, signal: USR1, grace: 120s, save: HUP}
progress: {metric: steps, total: 100000}
model: {family: bert}
array: {range: 0-9, parallel: 4}
after: [{job: data-prep, when: ok}]
retry: {on: [failed, preempted], max: 10}
env: {MODEL: bert-base, LAYERS: 12, FAST: true}
run: torchrun train.py --model $MODEL --seed ${ARRAY_INDEX} --price $5
"""


def test_every_key_is_understood() -> None:
    spec = parse_spec(FULL)
    assert [task.index for task in spec.expand()] == [*range(10)]
    told = spec.on(["h100", "a100"], wall=1_796_112_000.0 - 60.0).to_submit("7", 100.0).job
    assert {key: told[key] for key in ("gpus", "min_gpus", "max_gpus")} == {"gpus": 8, "min_gpus": 8, "max_gpus": 32}
    memory = 64 * 1024**3 / 1e9 / 8
    options = told["options"]
    assert [(one["type"], one["gpus"], one["cpus"], one["memory"], one.get("rate", 1.0)) for one in options] == [
        (kind, size, 2.0, memory, size / sizes[0])
        for kind, sizes in (("h100", (8, 16, 24, 32)), ("a100", (16, 8, 24, 32)))
        for size in sizes
    ]
    assert [one.get("nodes") for one in options] == [1, 2, 3, 4, 2, None, 3, 4], "eight a100 are fewer than two nodes of them"
    assert (told["deadline"], told["priority"], told["checkpoint"], told["estimate"]) == (160.0, 100.0, 900.0, 129600.0)
    assert (told["queue"], told["model"]) == ("research/nlp", "bert")


def test_the_runner_is_told_how_to_run_it() -> None:
    launch = parse_spec(FULL).expand()[3].launch()
    command = ("torchrun", "train.py", "--model", "bert-base", "--seed", "3", "--price", "$5")
    assert launch == Launch(
        command,
        env={"MODEL": "bert-base", "LAYERS": "12", "FAST": "true", "CHECKPOINT_PATH": "/ckpt"},
        stop_signal="USR1",
        save_signal="HUP",
        grace=120.0,
        resumes=True,
        changes=("devices", "batch"),
        share="mps",
        part=0.5,
        retries=5,
        time_limit=129600.0,
        memory=8.0,
        pids=100,
        after=(("data-prep", "ok"),),
        array_index=3,
        parallel=4,
    )
    assert parse_spec("run: a").launch() == Launch(("a",))


def test_a_spec_survives_json() -> None:
    spec = parse_spec(FULL)
    assert spec_of(json.loads(json.dumps(spec.to_json()))) == spec


def test_a_part_of_a_device_is_asked_for_in_one_word() -> None:
    spec = parse_spec("run: a\nresources: {gpus: 1, share: 0.25}")
    assert spec.to_submit("1", 0.0).job["metrics"] == {"gpu_demand": 0.25}
    assert (spec.launch().share, spec.launch().part) == ("mps", 0.25)
    with pytest.raises(UsageError, match="does not share it"):
        parse_spec("run: a\nresources: {share: {fraction: 0.5}}")


def test_numbers_that_policies_read_are_submitted_by_name() -> None:
    spec = parse_spec("run: a\nresources: {gpus: 1, share: 0.25}\nmetrics: {device_memory: 12, stage_io: 0.3}")
    assert spec.to_submit("1", 0.0).job["metrics"] == {"device_memory": 12.0, "stage_io": 0.3, "gpu_demand": 0.25}
    assert spec_of(json.loads(json.dumps(spec.to_json()))) == spec


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("{gpu_demand: 0.5}", "resources.share"),
        ("{util: much}", "metrics.util"),
        ("{util: .nan}", "metrics.util"),
        ("{' ': 1}", "no name"),
        ("{gpus: 7}", "meaning of its own"),
    ],
)
def test_metrics_are_numbers_with_names(metrics: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_spec(f"run: a\nmetrics: {metrics}")


@pytest.mark.parametrize("policy", ["afs", "ffdl", "optimus", "sia", "voda.elastic_tiresias", "las"])
def test_a_job_that_changes_in_steps_gets_no_other_sizes(policy: str) -> None:
    spec = parse_spec("run: a\nprocesses: gpus\nresources: {gpus: 4}\nelastic: {min: 2, max: 9, step: 2}\nestimate: 400").on(["gpu"], 0.0)
    inputs: list[Input] = [Submit(10.0 * k, spec.to_submit(f"s{k}", 10.0 * k).job, work=400.0) for k in range(3)]
    inputs.append(JobRequest(45.0, Action.RESIZE, "s1", 6, 4, 8))
    one = [{"job": "one", "arrival": 0.0, "gpus": 1, "duration": 300.0}]
    run = simulate(one, "2x5", policy, inputs=inputs)
    assert run.summary["completed"] == 4
    assert {*run.allocations["gpus"]} <= {1, 2, 4, 6, 8}
    assert len({*run.allocations["gpus"]}) > 2
    late = run.allocations.filter((run.allocations["job"] == "s1") & (run.allocations["start"] > 45.0))
    assert {*late["gpus"]} <= {4, 6, 8}, "steps are kept by a job that asked for other sizes"
    with pytest.raises(UsageError, match=r"steps of 2.*give 4 or 6"):
        simulate(one, "2x5", policy, inputs=[*inputs[:1], JobRequest(5.0, Action.RESIZE, "s0", 5)])


@pytest.mark.parametrize(
    ("resources", "spans"),
    [
        ("{gpus: 2, nodes: 2}", {2}),
        ("{accelerators: gpu:1, nodes: 3}", {3}),
        ("{accelerators: gpu:2, nodes: '1:2'}", {1, 2}),
        ("{accelerators: gpu:2}", {1}),
    ],
)
def test_a_job_goes_over_as_many_nodes_as_it_says(resources: str, spans: set[int]) -> None:
    """On nodes of which each has room for all of it."""
    spec = parse_spec(f"run: a\nprocesses: gpus\nresources: {resources}\nestimate: 400").on(["gpu"], 0.0)
    first = [{"job": "first", "arrival": 0.0, "gpus": 1, "duration": 1.0}]
    asked = Submit(1.0, spec.to_submit("a", 1.0).job, work=400.0)
    run = simulate(first, "gpu:3x8", "afs" if len(spans) > 1 else "fifo", inputs=[asked])
    held = run.allocations.filter(run.allocations["job"] == "a")
    assert {len(set(nodes)) for nodes in held["nodes"]} <= spans
    assert len(held) > 0


def test_a_size_that_is_none_of_its_steps_cannot_be_asked_for() -> None:
    with pytest.raises(UsageError, match=r"asks for 3 devices, and 'elastic' has 2, 4, 6"):
        parse_spec("run: a\nresources: {gpus: 3}\nelastic: {min: 2, max: 7, step: 2}")


@pytest.mark.parametrize(
    ("resources", "policy", "told"),
    [
        ("{topology: {within: rack}}", "fifo", "racks are not known here"),
        ("{accelerators: gpu:1, nodes: 2}", "fifo", "asks for 2 nodes, and gpu has 1 here"),
        ("{accelerators: cpu:1, nodes: 2}", "fifo", "asks for 2 nodes, and for fewer processes than devices"),
        ("{share: 0.5}", "fifo", "policy 'fifo' gives every job whole devices"),
        ("{gpus: 2, share: 0.5}", "sharing", "is a part of one device, and the job asks for up to 2"),
        ("{gpus: 1, share: 0.5}", "sharing", ""),
        ("{gpus: 2, topology: {within: node, mode: required}}", "fifo", ""),
    ],
)
def test_what_nobody_here_would_see_to_is_refused(resources: str, policy: str, told: str) -> None:
    spec, cluster = parse_spec(f"run: a\nresources: {resources}"), parse_cluster("gpu:1x4,cpu:2x4")
    with pytest.raises(RefusedError, match=told) if told else contextlib.nullcontext():
        check_promises(spec, cluster, make_policy(policy))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("resources: {gpus: 2, topology: {within: gpu}}", "a job cannot prefer slices of one GPU"),
        ("resources: {accelerators: h200.25pct:5}", "asks for 5 slices of one GPU, and 'h200.25pct' has 4"),
        ("resources: {accelerators: h200.25pct:2, cpus: 9}", "asks for 9 CPUs, and 2 x 'h200.25pct' is bound to 4"),
        ("processes: gpus\nresources: {accelerators: h200.25pct:5}", ""),
        ("resources: {accelerators: h200.25pct:2, cpus: 4, topology: {within: gpu, mode: required}}", ""),
    ],
)
def test_slices_that_no_gpu_has_are_refused(text: str, told: str) -> None:
    spec, cluster = parse_spec(f"run: a\n{text}"), parse_cluster("h200:1x2/4/16c")
    with pytest.raises(RefusedError, match=told) if told else contextlib.nullcontext():
        check_promises(spec, cluster, make_policy("fifo"))


def test_one_process_has_slices_of_one_gpu_and_ranks_have_them_anywhere_unless_that_is_required() -> None:
    types = ["h200.25pct", "cpu"]
    one = parse_spec("run: a\nresources: {gpus: 2}").on(types, 0.0).to_submit("1", 0.0).job
    assert [option.get("nodes") for option in one["options"]] == [1, None]
    assert "options" not in parse_spec("run: a\nprocesses: gpus\nresources: {gpus: 2}").on(types, 0.0).to_submit("1", 0.0).job
    near = parse_spec("run: a\nprocesses: gpus\nresources: {accelerators: h200.25pct:2, topology: {within: gpu, mode: required}}")
    assert near.to_submit("1", 0.0).job["options"] == [{"type": "h200.25pct", "gpus": 2, "nodes": 1}]
    with pytest.raises(RefusedError, match="no GPU is cut in slices here"):
        check_promises(near, parse_cluster("gpu:1x4"), make_policy("fifo"))


def test_only_run_is_needed_and_defaults_ask_for_one_device_of_any_kind() -> None:
    spec = parse_spec("run: [python, /tmp/a b/train.py]")
    assert spec.to_submit("1", 5.0).job == {"id": "1", "gpus": 1, "min_gpus": 1, "max_gpus": 1, "checkpoint": "inf"}
    assert spec.expand() == [spec]
    assert spec.title == "train.py"
    assert spec.argv({}) == ["python", "/tmp/a b/train.py"]


@pytest.mark.parametrize(
    ("command", "title"),
    [
        (["/usr/bin/python3", "dir/train.py", "--x"], "train.py"),
        (["python", "-c", "import os\nprint(1)"], "python"),
        (["python", "-m", "torch.distributed.run", "a.py"], "torch.distributed.run"),
        (["python", "-u", "a.py"], "python"),
        (["./run.sh"], "run.sh"),
        (["\n"], "job"),
        (["x" * 99], "x" * 60),
    ],
)
def test_a_job_without_a_name_is_called_after_its_command(command: list[str], title: str) -> None:
    assert spec_of({"run": command}).title == title


@pytest.mark.parametrize(
    ("written", "sizes"),
    [("gpus: 4", (4, 4)), ("gpus: 2:8", (2, 8)), ("gpus: 2..8", (2, 8)), ("accelerators: cpu:2", (2, 2)), ("accelerators: v100", (1, 1))],
)
def test_sizes_and_ranges(written: str, sizes: tuple[int, int]) -> None:
    spec = parse_spec(f"run: a\nresources: {{{written}}}")
    assert spec.sizes == sizes
    told = spec.to_submit("1", 0.0).job
    assert (told["gpus"], told["min_gpus"], told["max_gpus"]) == (sizes[0], *sizes)


def test_the_scheduler_can_take_it() -> None:
    spec: Submittable = parse_spec("run: a")
    assert [one.launch() for one in spec.expand()] == [spec.launch()]


def test_short_spellings() -> None:
    spec = parse_spec("run: a\narray: 0-20:10%2\nafter: ok:12\nretry: 5\ndeadline: 4h\nmodel: bert\nlimits: {time: 12:30:00}")
    assert [task.index for task in spec.expand()] == [0, 10, 20]
    assert spec.launch().parallel == 2
    assert [(one.job, one.when) for one in spec.after] == [("12", "ok")]
    assert spec.retry.max == 5
    assert spec.limits.time == 45000.0
    assert spec.on([], wall=999.0).to_submit("1", 10.0).job["deadline"] == 10.0 + 4 * 3600


def test_cpus_without_a_type_are_asked_of_every_type() -> None:
    spec = parse_spec("run: a\nresources: {gpus: 2, cpus: 4}").on(["v100", "cpu"], 0.0)
    options = spec.to_submit("1", 0.0).job["options"]
    assert options == [{"type": "v100", "gpus": 2, "cpus": 2.0}, {"type": "cpu", "gpus": 2, "cpus": 2.0}]


@pytest.mark.parametrize("written", ["300", "300MB/s", "0.3GB/s", "300 mbps"])
def test_storage_bandwidth_is_asked_of_every_way_that_says_nothing_else(written: str) -> None:
    text = f"run: a\nresources: {{storage: {written}, any_of: [{{accelerators: 'h100:2'}}, {{accelerators: 'v100:4', storage: 1GB/s}}]}}"
    options = parse_spec(text).to_submit("1", 0.0).job["options"]
    assert [(option["type"], option["storage"]) for option in options] == [("h100", 150.0), ("v100", 250.0)]
    assert spec_of(parse_spec(text).to_json()) == parse_spec(text)


def test_numbers_among_the_words_of_a_command_are_words() -> None:
    assert parse_spec("run: [sleep, 5, 0.5]").words == ["sleep", "5", "0.5"]
    with pytest.raises(UsageError, match="is not text"):
        parse_spec("run: [a, [b]]")


def test_a_shell_runs_only_when_it_is_asked_for() -> None:
    assert parse_spec("run: echo a; rm -r /").argv({}) == ["echo", "a;", "rm", "-r", "/"]
    assert parse_spec("run: echo $A; true\nshell: true").argv({}) == ["/bin/sh", "-ec", "echo $A; true"]
    assert parse_spec("run: [a, b c]\nsetup: make x;y").argv({}) == ["/bin/sh", "-ec", "make 'x;y'\nexec \"$@\"", "setup", "a", "b c"]


@pytest.mark.parametrize(
    ("written", "line", "field", "words"),
    [
        ("run: [a]\nresurces: {}", 2, "resurces", "did you mean 'resources'"),
        ("name: x", 1, "run", "is missing"),
        ("run: [a]\nresources:\n  gpus: 8:2", 3, "resources.gpus", "MIN:MAX"),
        ("run: [a]\nresources: {gpus: 0}", 2, "resources.gpus", "at least 1"),
        ("run: a\nresources:\n  any_of:\n    - {nodes: 1}\n    - {nod: 3}", 5, "resources.any_of.1.nod", "did you mean 'nodes'"),
        ("run: [a]\nlimits:\n  time: soon", 3, "limits.time", "D-HH:MM:SS"),
        ("run: [a]\npriority: urgent", 2, "priority", "low, normal, high"),
        ("run: 3", 1, "run", "3 is not text"),
        ("name: n\nrun: ''", 2, "run", "is empty"),
        ("name: n\nrun: |\n  a\n  b", 2, "run", "shell: true"),
        ("run: 'a \"b'", 1, "run", "close the quotes"),
        ("run: a\nenv: {GANTLINE_URL: x}", 2, "env", "set by the runner"),
        ("run: a\nenv: {'A B': x}", 2, "env", "not the name of a variable"),
        ("run: a\nshell: maybe", 2, "shell", "neither true nor false"),
        ("run: a\ncheckpoint: {signal: KILL}", 2, "checkpoint.signal", "'TERM', 'INT'"),
        ("run: a\ncheckpoint: {path: ckpt}", 2, "checkpoint.path", "absolute"),
        ("run: a\ndeadline: {kind: soft}", 2, "deadline", "within: 4h"),
        ("run: a\nqueue: ../x", 2, "queue", "not a queue"),
        ("run: a\nresources: {gpus: 3, accelerators: h100}", 2, "resources", "twice"),
        ("run: a\nresources: {gpus: 9}\nelastic: {min: 2, max: 4}", 1, "", "asks for 9 devices"),
        ("run: a\nprocesses: many", 2, "processes", "not a whole number"),
        ("run: a\narray: 5-1", 2, "array", "empty"),
        ("run: a\narray: 0-99999", 2, "array", "10000"),
        ("run: a\nresources: {storage: fast}", 2, "resources.storage", "500MB/s"),
        ("run: a\nindex: 3", 2, "index", "no task"),
        ("run: a\nafter: [{job: x, when: later}]", 2, "after.0.when", "'ok'"),
    ],
)  # fmt: skip
def test_a_mistake_names_line_and_field(written: str, line: int, field: str, words: str) -> None:
    with pytest.raises(UsageError) as mistake:
        parse_spec(written, "job.yaml")
    assert str(mistake.value).startswith(f"job.yaml:{line}:" + (f" field '{field}'" if field else ""))
    assert words in str(mistake.value)


def test_values_of_a_program_name_the_field() -> None:
    with pytest.raises(UsageError, match=r"job: field 'limits.time': 'soon' is not a time"):
        spec_of({"run": ["a"], "limits": {"time": "soon"}})


@pytest.mark.parametrize(
    "written", ["- 1", "3", "run: a\nrun: b", "run: !!python/object/apply:os.system [ls]", "{" * 600, "run: [a", "\x00"]
)
def test_what_is_no_specification_is_one_message(written: str) -> None:
    with pytest.raises(UsageError, match=r"YAML|mapping|twice"):
        parse_spec(written)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        read_spec(tmp_path / "none.yaml")
    (tmp_path / "a").write_bytes(b"\xff\xfe\x00run: a")
    (tmp_path / "b").write_text("#" * 1_000_001, encoding="utf-8")
    for name, words in (("a", "not text"), ("b", "larger than")):
        with pytest.raises(UsageError, match=words):
            read_spec(tmp_path / name)


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 10**9) | st.floats(allow_nan=True) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*JobSpec.model_fields, "gpus", "min"]), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*JobSpec.model_fields]), _VALUES, max_size=4))
def test_any_value_is_a_specification_or_one_mistake(value: dict[str, object]) -> None:
    with contextlib.suppress(UsageError):
        spec = spec_of({"run": ["a"], **value})
        spec.on(["gpu"], 1e9).to_submit("1", 0.0)
        spec.launch()
        assert spec_of(json.loads(json.dumps(spec.to_json()))) == spec


@given(st.text(alphabet="0123456789-:,%. x", max_size=12))
def test_arrays_and_sizes_never_do_worse_than_a_mistake(text: str) -> None:
    for read in (lambda: amounts.array(text, ""), lambda: amounts.sizes(text, ""), lambda: amounts.devices(text, "")):
        with contextlib.suppress(UsageError):
            read()


def test_metrics_of_a_live_job_reach_its_row_and_its_history(tmp_path: Path) -> None:
    with running(tmp_path, "cpu:1", "fifo") as scheduler:
        (job,) = scheduler.submit(spec_of({"run": "true", "metrics": {"util": 40}}, ""))
        must_succeed(scheduler, job)
        assert scheduler.loop.state.tables.metrics["util"][0] == 40.0
        (row,) = history_rows(scheduler.view().jobs.values())
    assert (row["util"], row["gpus"]) == (40.0, 1)
