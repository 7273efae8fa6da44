"""Train `learned.py` by evolution strategies (Salimans et al., arXiv:1703.03864) in a minute or two on two cores.

python examples/learned/train.py --out learned.yaml

Each generation tries pairs of weights on both sides of the present ones, on the same workloads, and moves towards those that ranked
better. The workloads that judge the result at the end have seeds which training never draws.
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path

import numpy as np
import yaml

import gantline
from gantline.lab.environment import JOB_FEATURES, ClusterEnv

POLICY = Path(__file__).with_name("learned.py")
WORKLOAD = {"generate": "day", "settings": {"jobs": 60, "gpus": 16, "load": 1.5}}
CLUSTER = "4x4"
SEEN, UNSEEN = 1_000, 1_000_000  # training draws seeds below the first, judges have seeds from the second on


@lru_cache(maxsize=1)
def environment() -> ClusterEnv:
    return ClusterEnv(WORKLOAD, CLUSTER, act="order", objective="mean-jct", slots=64, seeds=range(SEEN))


def play(weights: np.ndarray, seed: int) -> float:
    """The return of an episode: -1 is as good as FIFO."""
    env, total, over = environment(), 0.0, False
    observation, _ = env.reset(options={"seed": seed})
    while not over:
        action = np.tanh((observation["jobs"] * weights).sum(axis=1)).astype(np.float32)  # within -1 and 1, in the same order
        observation, reward, terminated, truncated, _ = env.step(action)
        total, over = total + reward, terminated or truncated
    return total


def mean_return(task: tuple[np.ndarray, list[int]]) -> float:
    weights, seeds = task
    return float(np.mean([play(weights, seed) for seed in seeds]))


def train(generations: int, pairs: int, episodes: int, workers: int, seed: int = 0, step: float = 0.6, spread: float = 0.5) -> np.ndarray:
    """Weights that rank jobs well."""
    rng, weights = np.random.default_rng(seed), np.zeros(len(JOB_FEATURES))
    pool = ProcessPoolExecutor(workers) if workers > 1 else None
    run = map if pool is None else pool.map
    for generation in range(generations):
        noise = rng.standard_normal((pairs, len(weights)))
        noise = np.concatenate([noise, -noise])
        seeds = rng.integers(SEEN, size=episodes).tolist()  # the same for all, so that they differ by their weights alone
        returns = np.array(list(run(mean_return, [(weights + spread * one, seeds) for one in noise])))
        ranks = returns.argsort().argsort() / (len(returns) - 1) - 0.5  # ranks: one terrible episode must not decide the direction
        weights = weights + step / spread * (ranks @ noise) / len(noise) * 2.0
        print(f"generation {generation + 1}: mean return {returns.mean():.3f}, best {returns.max():.3f}", flush=True)
    if pool is not None:
        pool.shutdown()
    return weights


def write(weights: np.ndarray, out: Path) -> None:
    """The weights as a file that --policy takes."""
    settings = {"weights": [round(float(one), 4) for one in weights]}
    out.write_text(yaml.safe_dump({"policy": os.path.relpath(POLICY, out.parent), "settings": settings}, sort_keys=False))


def main(argv: list[str] | None = None) -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--generations", type=int, default=20)
    options.add_argument("--pairs", type=int, default=8)
    options.add_argument("--episodes", type=int, default=2)
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--judges", type=int, default=10, help="workloads that judge the result")
    options.add_argument("--out", type=Path, default=POLICY.with_name("learned.yaml"))
    given = options.parse_args(argv)
    write(train(given.generations, given.pairs, given.episodes, given.workers), given.out)
    rivals = ["fifo", str(given.out), str(POLICY), ("fifo", {"backfill": "easy"}), "srtf"]
    verdicts = gantline.compare(WORKLOAD, CLUSTER, rivals, metrics="jct_mean", seeds=range(UNSEEN, UNSEEN + given.judges))
    print(f"on workloads that training has not seen:\n{verdicts}")


if __name__ == "__main__":
    main()
