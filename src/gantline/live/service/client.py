"""The service from Python: one method per verb of the command line."""

from __future__ import annotations

import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias
from urllib.parse import quote

from gantline.core.errors import UsageError
from gantline.live.jobs.spec import JobSpec
from gantline.live.jobs.spec_file import hinted, read_spec, spec_of
from gantline.live.service.http_client import HttpClient, path_part

Job: TypeAlias = "JobSpec | Mapping[str, Any] | Path | str | Sequence[str]"
ENDED = frozenset({"succeeded", "failed", "cancelled", "rejected", "timeout"})
_LONGEST_PAUSE = 1.0  # seconds between two polls of a forecast that is being made
_PAUSE = 0.25  # seconds between two polls of what is being waited for


class Client(HttpClient):
    """A client of one service. ``Client()`` finds it as the command line does."""

    # --- the service ------------------------------------------------------------------------------------------------------
    def status(self) -> dict[str, Any]:
        """Process, address, policy, devices, jobs by state."""
        return self._get("/v1/status")

    def shutdown(self, *, drain: bool = True) -> dict[str, Any]:
        """End the service; with `drain` its jobs are stopped and saved first."""
        return self._send("POST", "/v1/shutdown", {"drain": drain})

    def metrics(self) -> str:
        """Prometheus' text."""
        return self._request("GET", "/metrics").text

    def compact(self) -> dict[str, Any]:
        """Archive jobs that are due, and delete what the store does not need; bytes before and after."""
        return self._send("POST", "/v1/compact")

    def me(self) -> dict[str, Any]:
        """Who the token belongs to, and which operations it may call."""
        return self._get("/v1/me")

    def login_code(self) -> dict[str, Any]:
        """A code that logs a browser in, once, and the address to open."""
        return self._send("POST", "/v1/login/code")

    def board(self) -> dict[str, Any]:
        """Jobs and devices as columns, with a version."""
        return self._get("/v1/board")

    def changes(self, after: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """What happens to the board behind a version, as events with a name, until the service or the token ends, or a `reset`."""
        return self._stream("/v1/stream", after=after)

    def use_policy(self, policy: str, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Let another policy decide from now on."""
        return self._send("PUT", "/v1/policy", {"policy": policy, "settings": dict(settings or {})})

    def snapshot(self) -> dict[str, Any]:
        """This instant as a policy would see it."""
        return self._get("/v1/snapshot")

    # --- questions --------------------------------------------------------------------------------------------------------
    def explain(
        self, id: str, *, wait: bool = False, samples: int | None = None, sigma: float = 0.5, newcomers: bool = False
    ) -> dict[str, Any]:
        """Why a job waits and what is ahead of it, at once; `wait` for its `forecast`, and for what would start it."""
        path, query = f"/v1/jobs/{path_part(id)}/explain", {"samples": samples, "sigma": sigma, "newcomers": newcomers}
        return self._until(lambda found: not wait or (found["forecast"] or {}).get("status") != "pending", path, **query)

    def forecast(
        self, *jobs: str, wait: bool = True, samples: int | None = None, sigma: float = 0.5, newcomers: bool = False, learn: bool = False
    ) -> dict[str, Any]:
        """When jobs are expected to start and to end; `newcomers`: others arrive as in the past; `learn`: jobs are late as in the past."""
        query = {"job": list(jobs), "samples": samples, "sigma": sigma, "newcomers": newcomers, "learn": learn}
        return self._until(_is_ready if wait else lambda found: True, "/v1/forecast", **query)

    def _until(self, enough: Callable[[dict[str, Any]], bool], path: str, **query: Any) -> dict[str, Any]:
        """Ask again until the answer is complete; one about the state at the first request will do."""
        found, pause = self._get(path, **query), 0.05
        while not enough(found):
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
            found = self._get(path, **query, since=found["since"])
        return found

    def what_if(
        self,
        other: str = "",
        *,
        add: str = "",
        lose: Sequence[str] = (),
        samples: int | None = None,
        sigma: float = 0.5,
        newcomers: bool = False,
        settings: Mapping[str, Any] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """The present queue under another policy with its `settings`, with nodes added or lost."""
        query = {"samples": samples, "sigma": sigma, "newcomers": newcomers, "set": [f"{key}={value}" for key, value in settings.items()]}
        return self._until(_is_ready, "/v1/what-if", other=other, add=add, lose=list(lose), **query)

    def past_what_if(self, other: str = "", *, add: str = "", lose: Sequence[str] = (), replicas: int = 20) -> dict[str, Any]:
        """The jobs that have ended under another policy, with nodes added or lost."""
        return self._get("/v1/past", other=other, add=add, lose=list(lose), replicas=replicas)

    def history(self) -> dict[str, Any]:
        """The jobs that have succeeded as rows of a trace, with what such a trace cannot express."""
        return self._get("/v1/history")

    # --- jobs -------------------------------------------------------------------------------------------------------------
    def submit(
        self,
        job: Job,
        *,
        request: str | None = None,
        dry_run: bool = False,
        **fields: Any,
    ) -> list[str]:
        """Submit a specification, a YAML file or an argument list; the ids.

        A request without a reply is repeated under the same key, which is one submission however often it arrives.
        """
        return list(self.submission(job, request=request, dry_run=dry_run, **fields)["ids"])

    def submission(
        self,
        job: Job,
        *,
        request: str | None = None,
        dry_run: bool = False,
        **fields: Any,
    ) -> dict[str, Any]:
        """As `submit`, with all of the answer."""
        if isinstance(job, (Path, str)):
            job = read_spec(Path(job))
        value = job.to_json() if isinstance(job, JobSpec) else dict(job) if isinstance(job, Mapping) else {"run": list(job)}
        spec = hinted(spec_of({**value, **fields}))
        headers = {"Idempotency-Key": request or uuid.uuid4().hex}
        return self._send("POST", "/v1/jobs", spec.to_json(), headers=headers, params={"dry_run": dry_run})

    def jobs(self, **wanted: Any) -> list[dict[str, Any]]:
        """Jobs, by `state`, `user`, `queue`, `id`, `label` (KEY=VALUE); the newest `limit`, of those `before` a job."""
        return list(self.listing(**wanted)["jobs"])

    def listing(self, **wanted: Any) -> dict[str, Any]:
        """The same with how many there are in all (`total`), and what to give as `before` for those that are older (`next`)."""
        return self._get("/v1/jobs", **wanted)

    def job(self, id: str) -> dict[str, Any]:
        """One job with its specification and history."""
        return self._get(f"/v1/jobs/{path_part(id)}")

    def curve(self, id: str) -> dict[str, list[float | None]]:
        """What a job has reported since the service started: time, done, throughput, loss."""
        return self._get(f"/v1/jobs/{path_part(id)}/curve")

    def wait(self, *ids: str, timeout: float | None = None) -> list[dict[str, Any]]:
        """Wait until all have ended and their processes have gone; those that have not are among what comes back when the time is over."""
        end = None if timeout is None else time.monotonic() + timeout
        pause = 0.05
        while True:
            found = self.jobs(id=list(ids))
            if all(job["state"] in ENDED and not job["devices"] for job in found) or (end is not None and time.monotonic() >= end):
                return found
            time.sleep(min(pause, max(0.0, end - time.monotonic())) if end is not None else pause)
            pause = min(2 * pause, _PAUSE)

    def cancel(self, *ids: str) -> list[str]:
        return self._act("cancel", ids)

    def hold(self, *ids: str) -> list[str]:
        return self._act("hold", ids)

    def release(self, *ids: str) -> list[str]:
        return self._act("release", ids)

    def requeue(self, *ids: str) -> list[str]:
        return self._act("requeue", ids)

    def save(self, *ids: str) -> list[str]:
        """Have jobs save their work now, and go on."""
        return self._act("save", ids)

    def resize(self, id: str, gpus: int, min_gpus: int = 0, max_gpus: int = 0) -> list[str]:
        """Let it ask for another number of devices."""
        return self._act("resize", [id], gpus=gpus, min_gpus=min_gpus, max_gpus=max_gpus)

    def set_many(self, ids: Sequence[str], **changes: Any) -> list[str]:
        """Change several jobs alike: all of them, or none if one cannot be changed."""
        return list(self._send("PATCH", "/v1/jobs", {"jobs": list(ids), **changes})["jobs"])

    def set(self, id: str, **changes: Any) -> dict[str, Any]:
        """Change the `name`, `priority`, `time_limit` or `estimate` of a job that has not ended, or the `queue` of one that waits."""
        return self._send("PATCH", f"/v1/jobs/{path_part(id)}", changes)

    def _act(self, action: str, ids: Sequence[str], **sizes: int) -> list[str]:
        if not ids:
            raise UsageError("no job is named", where=action, fix="give at least one id")
        return list(self._send("POST", "/v1/requests", {"action": action, "jobs": list(ids), **sizes})["jobs"])

    def logs(
        self, id: str, *, follow: bool = False, tail: int | None = None, rank: int | None = None, epoch: int | None = None
    ) -> Iterator[str]:
        """Pieces of a job's output; with `follow` until it has ended, through all incarnations that begin meanwhile.

        Without an epoch it is that of the newest incarnation; if the one before it broke, its last lines come first.
        """
        query = {key: value for key, value in (("tail", tail), ("rank", rank), ("epoch", epoch)) if value is not None}
        place: dict[str, Any] = dict(query)
        now: int | None = epoch
        while True:
            piece = self._get(f"/v1/jobs/{path_part(id)}/logs", **place)
            if broke := piece.get("broke"):
                yield f"gantline: incarnation {broke['epoch']} ended: {broke['why']}; its last lines:\n{broke['text']}"
                yield f"gantline: incarnation {piece['epoch']}:\n"
            if (missing := piece["offset"] - place.get("offset", piece["offset"])) > 0:
                yield f"gantline: {missing} bytes of output are kept no more\n"
            if piece["text"]:
                yield str(piece["text"])
            now = piece["epoch"] if now is None else now
            more = piece["next"] < piece["size"]
            place = {**({"rank": rank} if rank is not None else {}), "offset": piece["next"], **({"epoch": now} if now is not None else {})}
            if not more and epoch is None and now is not None and any(later > now for later in piece["epochs"]):
                now = min(later for later in piece["epochs"] if later > now)
                place = {**place, "epoch": now, "offset": 0}
            elif not more and (not follow or piece["end"]):
                return
            elif not more:
                time.sleep(_PAUSE)

    # --- nodes, queues, history, tokens -------------------------------------------------------------------------------------
    def nodes(self) -> list[dict[str, Any]]:
        return list(self._get("/v1/nodes")["nodes"])

    def cordon(self, *nodes: str) -> dict[str, Any]:
        return self._nodes(nodes, "cordon")

    def drain(self, *nodes: str) -> dict[str, Any]:
        return self._nodes(nodes, "drain")

    def uncordon(self, *nodes: str) -> dict[str, Any]:
        return self._nodes(nodes, "uncordon")

    def _nodes(self, nodes: Sequence[str], action: str) -> dict[str, Any]:
        return self._send("POST", "/v1/nodes", {"nodes": list(nodes), "action": action})

    def queues(self) -> list[dict[str, Any]]:
        return list(self._get("/v1/queues")["queues"])

    def set_queue(self, name: str, *, quota: float | None = None, borrow: float = 0.0, weight: float = 1.0) -> dict[str, Any]:
        """Make a queue or change it: devices that it is promised (None: no quota), how many more it may borrow (inf: no limit)."""
        return self._send(
            "PUT", f"/v1/queues/{quote(name)}", {"quota": quota, "borrow": borrow if math.isfinite(borrow) else "inf", "weight": weight}
        )

    def drop_queue(self, name: str) -> dict[str, Any]:
        return self._send("DELETE", f"/v1/queues/{quote(name)}")

    def reservations(self) -> list[dict[str, Any]]:
        """Windows that have not ended."""
        return list(self._get("/v1/reservations")["reservations"])

    def reserve(
        self, seconds: float, *, start: float | None = None, nodes: int | None = None, gpus: int | None = None,
        places: Sequence[str] = (), name: str | None = None, users: Sequence[str] = (), queues: Sequence[str] = (),
    ) -> dict[str, Any]:  # fmt: skip
        """Keep so many nodes, so many devices or those at `places` free from `start` (seconds since 1970; None: now) for so long."""
        window = {"name": name, "nodes": nodes, "gpus": gpus, "start": start, "seconds": seconds}
        return self._send("POST", "/v1/reservations", {**window, "places": list(places), "users": list(users), "queues": list(queues)})

    def cancel_reservation(self, name: str) -> dict[str, Any]:
        return self._send("DELETE", f"/v1/reservations/{path_part(name)}")

    def events(self, *, after: int = 0, job: str = "", limit: int = 1000) -> list[dict[str, Any]]:
        return list(self._get("/v1/events", after=after, job=job, limit=limit)["events"])

    def decisions(self, *, after: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        return list(self._get("/v1/decisions", after=after, limit=limit)["decisions"])

    def tokens(self) -> list[dict[str, Any]]:
        return list(self._get("/v1/tokens")["tokens"])

    def create_token(self, user: str, role: str = "submitter", lifetime: float | None = None) -> dict[str, Any]:
        """A new token; it is shown this once."""
        return self._send("POST", "/v1/tokens", {"user": user, "role": role, "lifetime": lifetime})

    def change_token(self, id: str, role: str) -> dict[str, Any]:
        """Give a token another role."""
        return self._send("PATCH", f"/v1/tokens/{path_part(id)}", {"role": role})

    def revoke_token(self, id: str) -> dict[str, Any]:
        return self._send("DELETE", f"/v1/tokens/{path_part(id)}")


def _is_ready(found: Mapping[str, Any]) -> bool:
    return bool(found["status"] != "pending")
