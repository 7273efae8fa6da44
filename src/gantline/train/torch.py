"""PyTorch's side of `gantline.train`: gangs that agree by all-reduce, gradient noise, states that are saved whole.

Nothing else in the package imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from gantline.train.job import Job
    from gantline.train.membership import Membership


def sum_over_ranks(values: list[float]) -> list[float]:
    """Sum numbers over the process group; give this function to `gantline.train.join`."""
    if not dist.is_initialized():
        raise RuntimeError("call torch.distributed.init_process_group before gantline.train.join in a gang")
    numbers = torch.tensor(values, dtype=torch.float64, device=_device())
    dist.all_reduce(numbers)
    return [float(number) for number in numbers.tolist()]


class ProcessGroup:
    """The gang of `torch.distributed`, formed again whenever its ranks change; give one to `gantline.train.join`."""

    def __init__(self, backend: str = "gloo", *, limit: float = 300.0) -> None:
        self.backend, self.limit = backend, limit

    def form(self, member: Membership) -> None:
        self.close()
        meeting = f"tcp://{member.address}:{member.port}"
        dist.init_process_group(
            self.backend, init_method=meeting, rank=member.rank, world_size=member.world, timeout=timedelta(seconds=self.limit)
        )

    def sum(self, values: list[float]) -> list[float]:
        return sum_over_ranks(values)

    def spread(self, data: bytes) -> bytes:
        first = dist.get_rank() == 0
        length = torch.tensor([len(data) if first else 0], dtype=torch.int64, device=_device())
        dist.broadcast(length, 0)
        if not first:
            data = bytes(int(length))
        content = torch.frombuffer(bytearray(data or b"\0"), dtype=torch.uint8).to(_device())
        dist.broadcast(content, 0)
        return bytes(content.cpu().numpy()[: int(length)])

    def close(self) -> None:
        if dist.is_initialized():
            dist.destroy_process_group()


def _device() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")


def keep(job: Job, **parts: Any) -> bool:
    """Let a job save and load these parts (models, optimisers, schedulers: whatever has a state_dict), and torch's random state."""

    def save(path: Path | BytesIO) -> None:
        states = {name: part.state_dict() for name, part in parts.items()}
        torch.save({"parts": states, "random": torch.get_rng_state()}, path)

    def load(path: Path | BytesIO) -> None:
        kept = torch.load(path, map_location="cpu", weights_only=True)
        missing = sorted(set(parts) ^ set(kept["parts"]))
        if missing:
            raise RuntimeError(f"{path} and this program do not both have {', '.join(missing)}")
        for name, part in parts.items():
            part.load_state_dict(kept["parts"][name])
        torch.set_rng_state(kept["random"])

    def pack() -> bytes:
        memory = BytesIO()
        save(memory)
        return memory.getvalue()

    return job.keep(save, load, pack=pack, unpack=lambda data: load(BytesIO(data)))


def square(gradients: Iterable[torch.Tensor]) -> float:
    """The squared norm of gradients."""
    return float(sum(float(one.detach().double().pow(2).sum()) for one in gradients))


class NoiseOfGang:
    """Gradient noise from the ranks of a gang: what each has, and what they have in common.

    With `DistributedDataParallel`, give `hook()` to `register_comm_hook`: it looks at both sides of each all-reduce.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._own = self._mean = 0.0

    def hook(self) -> Callable[[Any, Any], Any]:
        """A communication hook that averages as usual and notes the squared norms on the way."""

        def average(state: Any, bucket: Any) -> Any:
            own = bucket.buffer()
            self._own += square([own])
            future = dist.all_reduce(own.div_(self._job.world), async_op=True).get_future()

            def note(done: Any) -> Any:
                mean = done.value()[0]
                self._mean += square([mean])
                return mean

            return future.then(note)

        average.__annotations__.clear()  # torch reads them, and wants none that are texts
        return average

    def end_step(self) -> None:
        """The step's gradients are all averaged: measure."""
        (total,) = self._job.sum([self._own])
        if self._job.world > 1:
            self._job.noise.add(total / self._job.world, self._mean, self._job.world, self._job.batch / self._job.base_batch)
        self._own = self._mean = 0.0
