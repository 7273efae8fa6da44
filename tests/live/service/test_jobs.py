"""Jobs over HTTP: submitted once, seen by their owners, refused with a reason, and what they print."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.live.service.asking import becomes, over, succeed
from tests.live.service.conftest import Running, until

from gantline.core.errors import NotFoundError, RefusedError, UnreachableError, UsageError
from gantline.live.service.client import Client
from gantline.live.service.home import find_address

SLEEP = ["sleep", "600"]


def state_of(client: Client, id: str) -> str:
    return str(client.job(id)["state"])


def test_a_job_runs_and_tells_how_it_ended(owner: Client) -> None:
    good, bad = owner.submit(["sh", "-c", "echo out; echo err >&2"], name="good"), owner.submit(["sh", "-c", "echo no; exit 3"])
    jobs = over(owner, *good, *bad)
    assert [(job["state"], job["exit_code"]) for job in jobs] == [("succeeded", 0), ("failed", 3)]
    assert jobs[0]["name"] == "good"
    assert jobs[0]["submitted"] <= jobs[0]["started"] <= jobs[0]["ended"]
    assert "".join(owner.logs(good[0])) == "out\nerr\n"
    told = owner.job(bad[0])
    assert told["lines"] == ["no"]
    assert told["reason"] == "exit-code"
    assert [event["state"] for event in told["history"] if event.get("state")][-1] == "failed"
    assert told["spec"]["run"] == ["sh", "-c", "echo no; exit 3"]


def test_a_job_finds_its_own_token_and_reports_with_it(owner: Client, service: Running, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import json, os, time, urllib.request\n"
        "url = os.environ['GANTLINE_URL'] + '/v1/jobs/' + os.environ['GANTLINE_JOB_ID'] + '/progress'\n"
        "body = {'epoch': int(os.environ['GANTLINE_EPOCH']), 'done': 5, 'total': 10, 'throughput': 2.5}\n"
        "head = {'Authorization': 'Bearer ' + os.environ['GANTLINE_JOB_TOKEN'], 'Content-Type': 'application/json'}\n"
        "for _ in range(600):\n"
        "    answer = json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), head)))\n"
        "    print(answer, flush=True)\n"
        "    if answer['stop']: break\n"
        "    time.sleep(0.1)\n",
        encoding="utf-8",
    )
    (id,) = owner.submit(["python3", str(script)])
    job = until(lambda: (found := owner.job(id))["progress"].get("done") and found, "a report")
    assert job["progress"]["total"] == 10
    assert "gantline_job_progress_ratio" in owner.metrics()
    owner.cancel(id)
    until(lambda: state_of(owner, id) == "cancelled")
    assert "'stop': False" in "".join(owner.logs(id))


def test_what_can_never_run_is_refused_and_not_queued(owner: Client) -> None:
    before = len(owner.jobs())
    with pytest.raises(RefusedError, match="more devices than the cluster has"):
        owner.submit(["true"], resources={"gpus": 5})
    with pytest.raises(RefusedError, match="device type that the cluster does not have"):
        owner.submit(["true"], resources={"accelerators": "h100:1"})
    with pytest.raises(RefusedError, match="more devices"):
        owner.submit(["true"], resources={"gpus": 5}, array="0-3", dry_run=True)
    with pytest.raises(NotFoundError, match="no job '99999'"):
        owner.submit(["true"], after=[{"job": "99999"}])
    with pytest.raises(UsageError, match=r"field 'limits\.time'"):
        owner.submit({"run": ["true"], "limits": {"time": "soon"}})
    assert len(owner.jobs()) == before


def test_who_follows_output_too_slowly_is_told_how_much_of_it_is_gone(owner: Client, tmp_path: Path) -> None:
    go = tmp_path / "go"
    script = f"echo first; until [ -e {go} ]; do sleep 0.05; done; seq 100000; echo last"
    (job,) = owner.submit(["sh", "-c", script], limits={"log": "0.0002GB"})
    pieces = owner.logs(job, follow=True)
    assert next(pieces) == "first\n"
    go.touch()
    becomes(owner, job, "succeeded")
    told, *rest = list(pieces)
    whole = "first\n" + "".join(f"{number}\n" for number in range(1, 100_001)) + "last\n"
    missing = len(whole) - len("first\n") - len("".join(rest))
    assert told == f"gantline: {missing} bytes of output are kept no more\n"
    assert whole.endswith("".join(rest))
    assert missing > len(whole) - 200_100


def test_a_dry_run_checks_and_queues_nothing(owner: Client) -> None:
    before = len(owner.jobs())
    told = owner.submission(["true"], dry_run=True, array="0-3", deadline="4h")
    assert (told["ids"], told["tasks"]) == ([], 4)
    assert told["submit"]["gpus"] == 1
    assert len(owner.jobs()) == before


class Losing(httpx.BaseTransport):
    """Loses the first requests before they arrive, and then the first answers on their way back."""

    def __init__(self, requests: int, answers: int) -> None:
        self.inner, self.requests, self.answers = httpx.HTTPTransport(), requests, answers

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.requests:
            self.requests -= 1
            raise httpx.ReadTimeout("lost on the way", request=request)
        answer = self.inner.handle_request(request)
        if self.answers:
            self.answers -= 1
            answer.read()
            raise httpx.RemoteProtocolError("lost on the way back", request=request)
        return answer


def test_lost_requests_and_lost_answers_are_one_submission(owner: Client, service: Running) -> None:
    before = len(owner.jobs())
    lossy = Client(service.url, service.token)
    lossy._http = httpx.Client(base_url=service.url, headers=lossy._http.headers, transport=Losing(1, 2))
    ids = lossy.submit(["true"])
    assert [job["id"] for job in owner.jobs()][before:] == ids
    lossy._http = httpx.Client(base_url=service.url, headers=lossy._http.headers, transport=Losing(99, 0))
    with pytest.raises(UnreachableError, match="lost on the way"):
        lossy.submit(["true"])


def test_people_see_and_touch_their_own_jobs(owner: Client, service: Running) -> None:
    ana, bo, operator, viewer = (
        service.client("ana"),
        service.client("bo"),
        service.client("op", "operator"),
        service.client("ana", "viewer"),
    )
    (mine,) = ana.submit(SLEEP)
    (other,) = bo.submit(SLEEP)
    assert [job["id"] for job in ana.jobs()] == [mine]
    assert {mine, other} <= {job["id"] for job in operator.jobs()}
    assert [job["id"] for job in viewer.jobs()] == [mine]
    for act in (
        bo.job,
        lambda id: [*bo.logs(id)],
        bo.cancel,
        bo.hold,
        bo.requeue,
        lambda id: bo.events(job=id),
        lambda id: bo.resize(id, 2),
    ):
        with pytest.raises(NotFoundError, match=f"no job '{mine}'"):
            act(mine)
    with pytest.raises(NotFoundError):
        bo.wait(mine)
    with pytest.raises(RefusedError, match="needs the role submitter"):
        viewer.cancel(mine)
    until(lambda: state_of(ana, mine) == "running" and state_of(bo, other) == "running")
    assert {event["job"] for event in bo.events()} == {other}
    shown = {job for node in bo.nodes() for job in node["jobs"]}
    assert other in shown
    assert mine not in shown
    assert f'job="{mine}"' not in bo.metrics()
    assert f'job="{mine}"' in operator.metrics()
    operator.cancel(mine, other)
    until(lambda: {state_of(owner, mine), state_of(owner, other)} == {"cancelled"})


def resizes_of(client: Client) -> float:
    """How many resizes the service has counted, whoever asked for them."""
    return float(re.search(r"^gantline_resizes_total (\S+)$", client.metrics(), re.MULTILINE)[1])  # type: ignore[index]


def test_hold_release_requeue_resize(owner: Client) -> None:
    earlier = resizes_of(owner)
    (id,) = owner.submit(SLEEP, resources={"gpus": "1:4"})
    until(lambda: state_of(owner, id) == "running")
    owner.hold(id)
    assert until(lambda: (job := owner.job(id))["state"] == "held" and not job["devices"] and job)["reason"] == "held"
    owner.resize(id, 2)
    owner.release(id)
    until(lambda: (job := owner.job(id))["state"] == "running" and len(job["devices"]) == 2)
    before = owner.job(id)["epoch"]
    owner.requeue(id)
    until(lambda: (job := owner.job(id))["state"] == "running" and job["epoch"] > before)
    assert owner.job(id)["resizes"] == 1
    assert resizes_of(owner) == earlier + 1
    with pytest.raises(RefusedError, match="more devices"):
        owner.resize(id, 9)
    owner.cancel(id)
    until(lambda: state_of(owner, id) == "cancelled")
    with pytest.raises(NotFoundError, match="no job 'x'"):
        owner.cancel(id, "x")
    with pytest.raises(UsageError, match="no job is named"):
        owner.cancel()


def test_arrays_and_jobs_that_wait_for_others(owner: Client) -> None:
    tasks = owner.submit(["sh", "-c", "echo task $ARRAY_INDEX"], array="0-2%1", name="many")
    number = tasks[0].partition("_")[0]
    assert tasks == [f"{number}_{index}" for index in range(3)]
    (last,) = owner.submit(["true"], after=[{"job": tasks[2]}])
    (vain,) = owner.submit(["true"], after=[{"job": last, "when": "failed"}])
    jobs = {job["id"]: job["state"] for job in over(owner, number, last, vain)}
    assert jobs == {**dict.fromkeys(tasks, "succeeded"), last: "succeeded", vain: jobs[vain]}
    assert jobs[vain] in ("failed", "cancelled")
    assert owner.job(vain)["reason"] == "dependency-failed"
    assert "".join(owner.logs(tasks[1])) == "task 1\n"


def test_jobs_are_found_by_label_state_and_queue(owner: Client) -> None:
    owner.set_queue("found/here")
    one, other = (owner.submit(["true"], labels={"team": team, "kind": "x"}, queue="found/here")[0] for team in ("nlp", "vision"))
    over(owner, one, other)
    assert [job["id"] for job in owner.jobs(label=["team=nlp", "kind"])] == [one]
    assert [job["id"] for job in owner.jobs(label=["kind=x"], queue="found", state=["succeeded"])] == [one, other]
    assert owner.jobs(label=["team"], state=["failed"]) == owner.jobs(label=["nobody"]) == []
    assert owner.jobs(id=[one])[0]["labels"] == {"team": "nlp", "kind": "x"}


def test_a_job_that_was_resized_often_enough_keeps_its_size(owner: Client) -> None:
    (id,) = owner.submit(SLEEP, resources={"gpus": "1:4"}, limits={"resizes": 1})
    until(lambda: state_of(owner, id) == "running")
    owner.hold(id)
    owner.resize(id, 3, 1, 4)
    owner.release(id)
    kept = until(lambda: (job := owner.job(id))["resizes"] == 1 and job["min_gpus"] == 3 and job)
    assert (kept["gpus"], kept["max_gpus"]) == (3, 3)
    assert any(event["event"] == "resize-limit" for event in owner.events(job=id))
    owner.cancel(id)


def test_profiles_that_a_job_names_are_read_where_it_is_submitted(owner: Client, tmp_path: Path) -> None:
    known = {"alone": [{"type": "cpu", "gpus": 1, "seconds": 0.5, "startup": 1.0}], "steps": 40}
    file = tmp_path / "profiles.json"
    file.write_text(json.dumps({"format": "gantline-profiles/1", "jobs": {"bert": known}}), encoding="utf-8")
    told = owner.submission(["true"], dry_run=True, model={"family": "bert", "hint": str(file)})
    assert (told["submit"]["estimate"], told["spec"]["model"]) == (20.0, {"family": "bert"})
    with pytest.raises(NotFoundError, match="no such file"):
        owner.submit(["true"], model={"family": "bert", "hint": "missing.json"})
    with pytest.raises(UsageError, match="read where the job is submitted"):
        owner._send("POST", "/v1/jobs", {"run": ["true"], "model": {"family": "bert", "hint": "/etc/passwd"}})


def test_logs_are_followed_to_the_end(owner: Client) -> None:
    (id,) = owner.submit(["sh", "-c", "for i in 1 2 3; do echo line $i; sleep 0.2; done"])
    assert "".join(owner.logs(id, follow=True)) == "line 1\nline 2\nline 3\n"
    assert "".join(owner.logs(id, tail=1)) == "line 3\n"
    with pytest.raises(NotFoundError, match="no incarnation 77"):
        [*owner.logs(id, epoch=77)]


def test_each_rank_of_several_is_told_apart(owner: Client) -> None:
    script = "printf 'half of '; sleep 0.1; echo rank $RANK of $WORLD_SIZE"
    (id,) = owner.submit(["sh", "-c", script], processes="gpus", resources={"gpus": 2})
    succeed(owner, id)
    assert sorted("".join(owner.logs(id)).splitlines()) == ["[0] half of rank 0 of 2", "[1] half of rank 1 of 2"]
    assert "".join(owner.logs(id, rank=1)) == "[1] half of rank 1 of 2\n"
    assert "".join(owner.logs(id, rank=7)) == ""


def test_letters_are_not_torn_between_two_pieces(owner: Client, service: Running) -> None:
    (id,) = owner.submit(["sh", "-c", "printf 'aé€𝄞z'"])
    over(owner, id)
    text, offset = "", 0
    while True:
        piece: dict[str, Any] = owner.get(f"/v1/jobs/{id}/logs", offset=offset, limit=4)
        text, offset = text + piece["text"], piece["next"]
        if piece["end"]:
            break
    assert text == "aé€𝄞z"


def test_clients_find_the_service_by_its_home_or_by_the_environment(
    service: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GANTLINE_HOME", str(service.home))
    with Client() as client:
        assert client.status()["address"] == service.url
    monkeypatch.setenv("GANTLINE_URL", service.url + "/")
    monkeypatch.setenv("GANTLINE_TOKEN", service.token)
    monkeypatch.setenv("GANTLINE_HOME", str(tmp_path))
    with Client() as client:
        assert client.status()["address"] == service.url
    monkeypatch.delenv("GANTLINE_TOKEN")
    with pytest.raises(UsageError, match="GANTLINE_TOKEN is not set"):
        find_address()
    with pytest.raises(UnreachableError, match="no service runs here"):
        find_address(tmp_path)
    with pytest.raises(UnreachableError, match="does not answer"):
        Client("http://127.0.0.1:1", "t").status()


def test_a_job_that_cannot_save_and_go_on_is_left_alone_when_it_is_asked_to(service: Running) -> None:
    client = service.client()
    (plain,) = client.submit(["sleep", "300"], name="plain")
    handles = "trap 'echo saved; touch $GANTLINE_CHECKPOINT/saved' USR1; echo ready; while true; do sleep 0.05; done"
    (able,) = client.submit(["sh", "-c", handles], checkpoint={"save": "USR1"})
    (later,) = client.submit(["sleep", "300"], resources={"gpus": 4})
    until(lambda: "ready" in "".join(client.logs(able)), "it can save")
    until(lambda: all(client.job(id)["state"] == "running" for id in (plain, able)), "they are known to run")
    with pytest.raises(RefusedError, match=r"cannot save while it runs: its specification has no checkpoint\.save"):
        client.save(able, plain)
    with pytest.raises(RefusedError, match="is pending: it has nothing to save"):
        client.save(later)
    assert not [event for id in (plain, able, later) for event in client.events(job=id) if event["event"] == "save"]
    assert "saved" not in "".join(client.logs(able)), "all of them, or none"
    assert client.save(able) == [able]
    until(lambda: "saved" in "".join(client.logs(able)), "it saves")
    assert [client.job(id)["epoch"] for id in (plain, able)] == [1, 1]
    client.cancel(plain, able, later)
    until(lambda: all(client.job(id)["state"] == "cancelled" for id in (plain, able, later)), "their end")


def test_a_long_list_is_read_page_by_page(owner: Client) -> None:
    ids = owner.submit(["true"], array="0-6")
    name = {"id": [ids[0].split("_")[0]]}
    pages: list[dict[str, Any]] = []
    while not pages or pages[-1]["next"]:
        pages.append(owner.listing(limit=3, before=pages[-1]["next"] if pages else "", **name))
    assert [[job["id"] for job in page["jobs"]] for page in pages] == [ids[4:], ids[1:4], ids[:1]]
    assert pages[0]["total"] == 7
    assert owner.listing(limit=3, state=["held"], **name)["next"] is None
    with pytest.raises(NotFoundError, match="no job 'nobody'"):
        owner.jobs(before="nobody")
    (job,) = over(owner, ids[0])
    assert job["state"] == "succeeded", "a job is not listed as it was before"


def test_cpus_and_memory_that_jobs_ask_for_are_shown_as_taken(owner: Client) -> None:
    (id,) = owner.submit(SLEEP, resources={"gpus": 1, "cpus": 0.5, "memory": "100MB"})
    until(lambda: state_of(owner, id) == "running")
    node = until(lambda: next((one for one in owner.nodes() if id in one["jobs"] and one["cpus_taken"]), None), "a node with its job")
    assert 0.5 <= node["cpus_taken"] <= node["cpus"]
    assert 0.09 <= node["memory_taken"] <= node["memory"]
    metrics = owner.metrics()
    for name in ("cpus", "cpus_taken", "memory_gigabytes", "memory_taken_gigabytes"):
        assert f'gantline_node_{name}{{node="{node["name"]}"}}' in metrics
    owner.cancel(id)
    until(lambda: state_of(owner, id) == "cancelled")
