"""Random Gavel instances for the solver tests."""

from __future__ import annotations

import numpy as np
import pytest

from gantline.systems.gavel.policies.instance import Instance


def random_instance(seed: int, *, packed: bool = False, repeated: bool = True) -> Instance:
    """A small cluster with mixed gang sizes, some throughputs zero, some jobs alike."""
    rng = np.random.default_rng(seed)
    m, k = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    models = rng.choice([0.5, 1.0, 2.0, 3.0, 5.0], size=(m, k)) * rng.uniform(0.9, 1.1, size=(m, 1))
    models[rng.random((m, k)) < 0.1] = 0.0
    models[models.sum(axis=1) == 0, 0] = 1.0
    sizes = rng.choice([1, 1, 2], size=m)
    pick = rng.integers(0, m, size=m) if repeated else np.arange(m)
    speed, scale = models[pick], sizes[pick]
    pairs = None
    if packed:
        own = rng.uniform(0.3, 1.0, size=(m, m))
        members, rates = [], []
        for i in range(m):
            for j in range(i + 1, m):
                if scale[i] == scale[j]:
                    both = (speed[i] > 0) & (speed[j] > 0)
                    members.append((i, j))
                    rates.append((speed[i] * own[pick[i], pick[j]] * both, speed[j] * own[pick[j], pick[i]] * both))
        pairs = (np.array(members).reshape(-1, 2), np.array(rates).reshape(-1, 2, k))
    return Instance.of(
        types=[f"type{j}" for j in range(k)],
        capacity=rng.integers(2, 7, size=k),
        throughput=speed,
        scale=scale,
        weight=rng.choice([1.0, 2.0], size=m)[pick],
        pairs=pairs,
        steps=rng.choice([100.0, 5000.0], size=m) * rng.uniform(1, 2, size=m),
        elapsed=rng.choice([0.0, 300.0, 4000.0], size=m),
    )


@pytest.fixture(params=[(seed, packed) for seed in range(6) for packed in (False, True)], ids=str)
def instance(request: pytest.FixtureRequest) -> Instance:
    """A few fixed random instances, without and with pairs."""
    seed, packed = request.param
    return random_instance(seed, packed=packed)
