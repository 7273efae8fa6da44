"""The objects that make up a gang: one pod for each of its nodes, and the name under which they find each other.

A pod's first process is a shell that starts the ranks of its node, hands the stop signal on and ends with the exit code of the first rank
that fails: a program that is process 1 itself would not be ended by a signal that it does not handle.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gantline.engine.executor import Order
from gantline.live.jobs.launch import Launch
from gantline.live.runners.job_environment import gang_ranks, job_environment
from gantline.live.runners.kubernetes.access import Object
from gantline.live.runners.kubernetes.pods_and_nodes import FINALIZER, MARK, SCHEDULER, gang_name, thousandths
from gantline.live.runners.runner_context import Task

_PORT = 29500  # every pod has ports of its own
_LAUNCH = """\
mine=$$; stopped=; failed=; pids=; rank=0; hand_on=TERM
[ $LOCAL_WORLD_SIZE -gt 1 ] || hand_on=$GANTLINE_STOP_SIGNAL
stop() { woken=1; stopped=1; for p in $pids; do kill -$hand_on $p 2>/dev/null; done; }
fail() { woken=1; failed=1; [ -z "$stopped" ] || return; for p in $pids; do kill -ALRM $p 2>/dev/null; done; }
code_of() {  # a signal to this shell ends its wait: then it waits again, and what was known already counts
  known=
  while :; do
    woken=; wait $1 2>/dev/null; code=$?
    [ $code -ne 127 ] || [ -z "$known" ] || code=$known
    [ -n "$woken" ] || break
    known=$code
  done
}
one() {
  own=; told=
  trap 'woken=1; told=$GANTLINE_STOP_SIGNAL; [ -z "$own" ] || kill -$told $own 2>/dev/null' TERM
  trap 'woken=1; told=KILL; [ -z "$own" ] || kill -KILL $own 2>/dev/null' ALRM
  trap - USR1
  "$@" & own=$!
  [ -z "$told" ] || kill -$told $own
  code_of $own
  [ $code -eq 0 ] || kill -USR1 $mine 2>/dev/null
  exit $code
}
trap stop TERM
trap fail USR1
while [ $rank -lt $LOCAL_WORLD_SIZE ]; do
  export RANK=$((GANTLINE_FIRST_RANK + rank)) LOCAL_RANK=$rank
  if [ $LOCAL_WORLD_SIZE -eq 1 ]; then "$@" & else ( one "$@" ) & fi
  pids="$pids $!"; rank=$((rank + 1))
done
[ -z "$stopped" ] || stop
[ -z "$failed" ] || fail
worst=0
for p in $pids; do
  code_of $p
  case $worst in 0|137|142) [ $code -eq 0 ] || worst=$code;; esac  # 137 and 142: ended because another one failed
done
exit $worst
"""


@dataclass(frozen=True)
class PodTerms:
    """What all pods of a service have in common."""

    namespace: str
    home: str  # the identity of its home
    url: str  # of the service, as pods reach it
    image: str = ""
    checkpoints: str = ""  # a claim, or a path of every node


def manifests(terms: PodTerms, order: Order, task: Task, places: Mapping[str, Sequence[int]], resource: str) -> list[Object]:
    """The pods of a gang, in the order of its nodes; `places`: the devices on each node, `resource`: what counts them."""
    name, nodes = gang_name(task.job, order.epoch), list(places)
    names = [f"{node}:{place}" for node, at in places.items() for place in at]
    common = {"PYTHONUNBUFFERED": "1", **task.launch.env, **job_environment(task, order, names, terms.url, _checkpoint(terms, task.job))}
    ranks = gang_ranks(task.launch, places, _address(name, terms.namespace) if len(nodes) > 1 else "127.0.0.1", _PORT)
    found: list[Object] = []
    for number, node in enumerate(nodes):
        first = next((rank.env for rank in ranks if rank.node == node), {**ranks[0].env, "LOCAL_WORLD_SIZE": "0", "NODE_RANK": str(number)})
        env = common | {key: value for key, value in first.items() if key not in ("RANK", "LOCAL_RANK")}
        env |= {"GANTLINE_FIRST_RANK": first["RANK"], "GANTLINE_STOP_SIGNAL": task.launch.stop_signal or "TERM"}
        notes = {"home": terms.home, "epoch": str(order.epoch), "node": node, "places": ",".join(map(str, places[node]))}
        head = {
            "name": f"{name}.{number}", "namespace": terms.namespace, "finalizers": [FINALIZER],
            "labels": {f"{MARK}/job": task.job, f"{MARK}/epoch": str(order.epoch), f"{MARK}/node-rank": str(number)},
            "annotations": {f"{MARK}/{key}": value for key, value in notes.items()},
        }  # fmt: skip
        spec = _spec(terms, task, env, order, len(places[node]), resource)
        spec |= {"hostname": f"rank-{number}", "subdomain": _subdomain(name)} if len(nodes) > 1 else {}
        found.append({"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec})
    return found


def meeting_point(terms: PodTerms, job: str, epoch: int) -> Object:
    """A headless service, by which the ranks of several pods find the first one."""
    name = gang_name(job, epoch)
    head = {"name": _subdomain(name), "namespace": terms.namespace, "labels": {f"{MARK}/job": job, f"{MARK}/epoch": str(epoch)}}
    spec = {
        "clusterIP": "None", "publishNotReadyAddresses": True, "selector": {f"{MARK}/job": job, f"{MARK}/epoch": str(epoch)},
        "ports": [{"name": "meet", "port": _PORT, "protocol": "TCP"}],
    }  # fmt: skip
    return {"apiVersion": "v1", "kind": "Service", "metadata": head, "spec": spec}


def _subdomain(name: str) -> str:
    return name.replace(".", "-")


def _address(name: str, namespace: str) -> str:
    return f"rank-0.{_subdomain(name)}.{namespace}.svc"


def _checkpoint(terms: PodTerms, job: str) -> str:
    """Where a pod sees the saved work of its job; a path of the nodes has the same name inside."""
    if not terms.checkpoints:
        return ""
    root = terms.checkpoints if terms.checkpoints.startswith("/") else "/gantline"
    return f"{root.rstrip('/')}/{job}"


def _spec(terms: PodTerms, task: Task, env: Mapping[str, str], order: Order, devices: int, resource: str) -> Object:
    launch = task.launch
    command = ["/bin/sh", "-c", launch.command[0]] if launch.shell else list(launch.command)
    volumes, mounts = _volumes(terms, task)
    container: Object = {
        "name": "main", "image": launch.image or terms.image, "command": ["/bin/sh", "-c", _LAUNCH, "gantline", *command],
        "env": [{"name": name, "value": value} for name, value in sorted(env.items())],
        "resources": _resources(order, launch, devices, resource),
    }  # fmt: skip
    container |= ({"workingDir": launch.cwd} if launch.cwd else {}) | ({"volumeMounts": mounts} if mounts else {})
    spec: Object = {
        "schedulerName": SCHEDULER, "restartPolicy": "Never", "terminationGracePeriodSeconds": max(1, math.ceil(launch.grace)),
        "containers": [container],
    }  # fmt: skip
    if resource and resource != "cpu":
        spec["tolerations"] = [{"key": resource, "operator": "Exists", "effect": "NoSchedule"}]
    return spec | ({"volumes": volumes} if volumes else {})


def _resources(order: Order, launch: Launch, devices: int, resource: str) -> Object:
    """Slots of CPUs are shared in equal parts by gangs that are on them together."""
    if resource == "cpu":
        found: Object = {"requests": {"cpu": thousandths(max(devices, 1) / (1 + len(order.mates)))}}
    else:
        found = {"requests": {}, "limits": {resource: str(devices)}} if devices else {"requests": {}}
        cpus = order.grant.assignment.cpus if order.grant is not None else math.nan
        if math.isfinite(cpus) and cpus > 0.0:
            found["requests"]["cpu"] = thousandths(cpus * devices / max(len(order.devices), 1) if devices else cpus)
    if launch.memory:
        found.setdefault("limits", {})["memory"] = str(int(launch.memory * 2**30))
    return {key: value for key, value in found.items() if value}


def _volumes(terms: PodTerms, task: Task) -> tuple[list[Object], list[Object]]:
    """Volumes and where they are seen: what the job asks for (FROM:TO[:ro]), and its saved work."""
    volumes: list[Object] = []
    mounts: list[Object] = []
    asked = [(one.split(":"), "") for one in task.launch.mounts]
    if terms.checkpoints:
        asked.append(([terms.checkpoints, _checkpoint(terms, task.job)], task.job))
    for number, (parts, below) in enumerate(asked):
        source, name = parts[0], f"mount-{number}"
        kind: Object = {"hostPath": {"path": source}} if source.startswith("/") else {"persistentVolumeClaim": {"claimName": source}}
        volumes.append({"name": name, **kind})
        mount = {"name": name, "mountPath": parts[1], "readOnly": parts[2:] == ["ro"]}
        mounts.append(mount | ({"subPath": below} if below else {}))
    return volumes, mounts
