"""For every regime with a loop of its own: a handful of jobs on a cluster that it knows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.records.worlds import staged_jobs
from tests.systems.allox.hybrid import some_jobs
from tests.systems.gavel import tiny_world as gavel
from tests.systems.lucid import lucid_world as lucid
from tests.systems.shockwave.test_shockwave_run import SPEEDS
from tests.systems.shockwave.test_shockwave_run import job as shockwave_job
from tests.systems.sia import worlds as sia

from gantline.simulator.run import Run
from gantline.simulator.simulate import simulate
from gantline.traces.files.profiles import MADE_UP

SENSITIVITY = Path(__file__).parents[3] / "examples" / "sensitivity"
HYBRID = "gpu:2x1/0c/64g,cpu:2x0/20c/64g"
ELASTIC = [
    {"job": "a", "arrival": 0, "gpus": 1, "duration": 1000, "max_gpus": 4, "deadline": 900, "options": "gpu:1=1000|gpu:2=600|gpu:4=400"},
    {"job": "b", "arrival": 10, "gpus": 2, "duration": 600, "max_gpus": 4, "deadline": 300, "options": "gpu:2=600|gpu:4=400"},
    {"job": "c", "arrival": 10, "gpus": 1, "duration": 50, "max_gpus": 1, "deadline": None, "options": "gpu:1=50"},
]


def make_worlds(folder: Path) -> dict[str, Callable[..., Run]]:
    """Regime -> a run with (policy, settings, options); recorded decisions and speeds are written to the folder."""
    speeds, table, rounds = folder / "speeds.csv", folder / "decisions.csv", folder / "rounds.csv"
    speeds.write_text(SPEEDS, encoding="utf-8")
    table.write_text("t_s,name,gpu_type,nodes,gpus\n0,a,slow,1,1\n0,b,fast,1,2\n", encoding="utf-8")
    rounds.write_text("round,jobs\n" + "".join(f"{k},{k % 3}\n" for k in range(200)), encoding="utf-8")

    slow_gpu, month = folder / "slow_gpu.csv", folder / "month.csv"
    slow_gpu.write_text("gpu,node,A,B\n0,0,2,1\n1,0,1,1\n2,1,1,1\n3,1,1.2,1\n", encoding="utf-8")
    month.write_text("hour,lca\n" + "".join(f"{hour},{100 + hour % 24}\n" for hour in range(800)), encoding="utf-8")

    def settled(policy: str, settings: dict[str, Any], recorded: Path) -> dict[str, Any]:
        return {"table": str(recorded)} | settings if policy == "recorded" else settings

    def run_gavel(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        rows = [(("big", "small")[k % 2], 3000.0, 90.0 * k) for k in range(4)]
        jobs = gavel.trace(*rows, deadline=[1e5] * 4, user=["u"] * 4, queue=["u"] * 4)
        return simulate(jobs, "v100:1,k80:1", policy, settings=settings, **({"throughputs": gavel.table(), "regime": "gavel"} | more))

    def run_irfsim(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        return simulate(some_jobs(1, 30, span=200.0), HYBRID, policy, settings=settings, **({"regime": "irfsim"} | more))

    def run_elasticflow(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        return simulate(ELASTIC, "gpu:1x4", policy, settings=settings, **({"regime": "elasticflow", "round": 60.0} | more))

    def run_shockwave(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        given = {"regime": "shockwave", "throughputs": speeds} | more
        return simulate([shockwave_job(k) for k in range(3)], "v100:2", policy, settings=settled(policy, settings, rounds), **given)

    def run_sia(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        jobs, given = [sia.job("a"), sia.job("b", 70.0)], {"regime": "sia", "profiles": sia.profiles()} | more
        cluster = "fast:1x8" if policy in ("shockwave", "gavel.finish_time_fairness") else "slow:2x4,fast:1x8"
        return simulate(jobs, cluster, policy, settings=settled(policy, settings, table), **given)

    def run_pollux(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        rows = ((("a", 0.0, 4), ("b", 70.0, 4)), {"duration": 100.0, "app": "vision", "batch_size": 512})
        jobs = [{"job": name, "arrival": arrival, "gpus": gpus} | rows[1] for name, arrival, gpus in rows[0]]
        return simulate(jobs, "small:1x4", policy, settings=settings, **({"regime": "pollux", "profiles": MADE_UP} | more))

    def run_pal(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        given = {"regime": "pal", "placement": "pal", "device_speeds": str(slow_gpu)} | more
        jobs = [{"job": str(k), "arrival": 10.0 * k, "gpus": 1 + k % 2, "duration": 900.0, "speed_class": "AB"[k % 2]} for k in range(4)]
        return simulate(jobs, "2x2", policy, settings=settings, **given)

    def run_gaia(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        given = {"regime": "gaia", "carbon": str(month)} | more
        jobs = [{"job": str(k), "arrival": 900.0 * k, "gpus": 0, "cpus": 1, "duration": 3600.0 * (k + 1)} for k in range(4)]
        return simulate(jobs, None, policy, settings={"start": 0} | settings, **given)

    def run_lucid(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        jobs = [job for job in lucid.some_jobs(1, 12) if job["gpus"] <= 8]
        given = {"regime": "lucid", "profiles": str(lucid.write_profiles(folder, jobs))} | more
        return simulate(jobs, lucid.write_clusters(folder), policy, settings=settings, **given)

    def run_synergy(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        given = {"regime": "synergy", "profiles": SENSITIVITY} | more
        networks = ("vision", "speech", "text")
        jobs = [{"job": str(k), "arrival": 90.0 * k, "gpus": 1 + k % 2, "duration": 900.0, "model": networks[k % 3]} for k in range(5)]
        return simulate(jobs, "1x4/12c/250g", policy, settings=settings, **given)

    def run_muri(policy: str, settings: dict[str, Any], **more: Any) -> Run:
        (folder / "restart_overhead_s.csv").write_text("num_gpu,model,overhead_s\n1,vgg16,7\n", encoding="utf-8")
        given = {"regime": "muri", "profiles": str(folder)} | more
        return simulate(staged_jobs(1, 8), "1x8", policy, settings=settings, **given)

    return {
        "muri": run_muri,
        "synergy": run_synergy,
        "lucid": run_lucid,
        "pal": run_pal,
        "gaia": run_gaia,
        "gavel": run_gavel,
        "irfsim": run_irfsim,
        "irfsim-known": lambda policy, settings, **more: run_irfsim(policy, settings, **({"regime": "irfsim-known"} | more)),
        "elasticflow": run_elasticflow,
        "shockwave": run_shockwave,
        "sia": run_sia,
        "pollux": run_pollux,
    }
