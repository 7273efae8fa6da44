"""The same futures on a GPU: one thread rolls one future forward, then the next.

The loop is compiled a second time, from the same source, for the GPU. Multiplications and additions are not fused there, so every number is
the processor's, to the last bit. Memory of futures is interleaved: the same place of neighbouring futures lies side by side, and threads
that walk together read together. Needs numba-cuda (``pip install 'gantline[gpu]'``).
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import FunctionType
from typing import Any

import numpy as np

from gantline._machine_code import Kernel
from gantline.core.arrays import Floats
from gantline.drivers.futures import heap_room as h
from gantline.drivers.futures import places as p
from gantline.drivers.futures.counted import Counted
from gantline.drivers.futures.draws import Draws, drawn
from gantline.drivers.futures.heap_loop import run_heap_future
from gantline.drivers.futures.heap_room import HeapRoom, heap_shapes, takes_heap
from gantline.drivers.futures.loop import add_up, run_future
from gantline.drivers.futures.places import FutureCase, FutureRoom, room_shapes

BLOCK = 64  # threads of a block
REGISTERS = 64  # of a thread: with more, fewer threads are at hand while others wait for memory
PER_PROCESSOR = 1024  # threads of a multiprocessor: fewer leave it waiting for memory


def _cuda() -> Any:
    """Numba's part for GPUs, which has no types."""
    return importlib.import_module("numba.cuda")


@functools.cache
def missing() -> str:
    """Why futures cannot run on a GPU here; empty: they can."""
    try:
        cuda = _cuda()
    except ImportError:
        return "numba-cuda is not installed (pip install 'gantline[gpu]')"
    try:
        return "" if cuda.is_available() else "no CUDA device is visible"
    except Exception as error:  # a broken GPU driver is reported by the message of the first failure
        return f"the CUDA driver does not work: {error}"


def run_on_gpu(case: FutureCase, work: Draws | Floats, coming: Floats, keep_jobs: bool) -> Counted:
    """A future for each draw or line of `work`; see `batch.run_counted`."""
    cuda = _cuda()
    futures, jobs = work.shape
    threads = min(-(-futures // BLOCK) * BLOCK, cuda.get_current_device().MULTIPROCESSOR_COUNT * PER_PROCESSOR)
    given = np.zeros((0, 0)) if isinstance(work, Draws) else np.ascontiguousarray(work.T)
    quantile, seed, first = (work.quantile, work.seed, work.first) if isinstance(work, Draws) else (np.zeros((0, 0)), 0, 0)
    columns = futures if keep_jobs else threads
    begins, ends = (cuda.device_array((jobs, columns)) for _ in range(2))
    sums, lost = cuda.device_array((p.SUMS, futures)), cuda.to_device(np.zeros(1, dtype=np.int64))
    loop, room = _heap_room(case, threads) if takes_heap(case, coming.shape[2]) else _general_room(case, coming.shape[2], threads)
    with _plain_arithmetic():
        loop[threads // BLOCK, BLOCK](
            FutureCase(*(cuda.to_device(np.ascontiguousarray(part)) for part in case)),
            room,
            (cuda.to_device(given), cuda.to_device(quantile), seed, first),
            cuda.device_array((jobs, threads)),
            cuda.to_device(np.ascontiguousarray(coming.transpose(1, 2, 0))),
            (begins, ends, sums, lost),
        )
    nothing = np.zeros((0, jobs))
    start, finish = (begins.copy_to_host().T, ends.copy_to_host().T) if keep_jobs else (nothing, nothing)
    return Counted(start, finish, np.ascontiguousarray(sums.copy_to_host().T), int(lost.copy_to_host()[0]))


def _heap_room(case: FutureCase, threads: int) -> tuple[Any, Any]:
    """The loop over a heap, and memory for it: threads take different paths through rows and gangs, so each has a contiguous part."""
    cuda = _cuda()
    numbers, wholes, (first, lane) = heap_shapes(case)
    rows = [cuda.device_array((threads, *shape)) for shape in numbers]
    rows += [cuda.device_array((threads, *shape), dtype=np.int32) for shape in wholes]
    lanes = (cuda.device_array((*first, threads)), cuda.device_array((*lane, threads), dtype=np.int32))
    return _heap_loop(), (*rows, *lanes)


def _general_room(case: FutureCase, newcomers: int, threads: int) -> tuple[Any, Any]:
    """The general loop, and memory for it: threads sweep over the same places, so those lie side by side."""
    cuda = _cuda()
    numbers, wholes = room_shapes(case, newcomers)
    rows = [cuda.device_array((*shape, threads)) for shape in numbers]
    return _general_loop(), (*rows, *(cuda.device_array((*shape, threads), dtype=np.int32) for shape in wholes))


@functools.cache
def _heap_loop() -> Any:
    """`heap_loop` over the futures of a thread."""
    cuda = _cuda()
    known: dict[int, Any] = {}
    run, draw, add = (_for_gpu(one, known) for one in (run_heap_future, drawn, add_up))
    counters, gave_up = h.COUNTERS, p.GAVE_UP
    decisions, started, stopped = h.DECISIONS, h.STARTED, h.STOPPED

    def futures_of_a_thread(case: Any, memory: Any, source: Any, line: Any, coming: Any, found: Any) -> None:
        me, threads = cuda.grid(1), cuda.gridsize(1)
        given, quantile, seed, first = source
        begins, ends, sums, lost = found
        own, heap, watched, back, trial, losers, keys, lane = memory
        n, least = cuda.local.array(counters, np.int64), cuda.local.array(1, np.float64)
        room = HeapRoom(own[me], heap[me], watched[me], back[me], trial[me], losers[me], keys[:, me], lane[:, :, me], least, n)
        work = line[:, me]
        future = me
        while future < sums.shape[1]:
            for job in range(work.shape[0]):
                work[job] = given[job, future] if given.shape[0] > 0 else draw(quantile, seed, first + future, job)
            column = future if begins.shape[1] == sums.shape[1] else me
            if run(case, room, work, begins[:, column], ends[:, column]) == gave_up:
                cuda.atomic.add(lost, 0, 1)
            add(begins[:, column], ends[:, column], sums[:, future], n[decisions], n[started], n[stopped])
            future += threads

    return cuda.jit(futures_of_a_thread, lto=False, max_registers=REGISTERS)


@functools.cache
def _general_loop() -> Any:
    """`loop` over the futures of a thread."""
    cuda = _cuda()
    known: dict[int, Any] = {}
    run, draw, add = (_for_gpu(one, known) for one in (run_future, drawn, add_up))
    counters, times, gave_up = p.COUNTERS, p.TIMES, p.GAVE_UP
    decisions, started, stopped = p.DECISIONS, p.STARTED, p.STOPPED

    def futures_of_a_thread(case: Any, memory: Any, source: Any, line: Any, coming: Any, found: Any) -> None:
        me, threads = cuda.grid(1), cuda.gridsize(1)
        given, quantile, seed, first = source
        begins, ends, sums, lost = found
        f, s, i, si, queue, lane, low, trial = memory
        n, t = cuda.local.array(counters, np.int64), cuda.local.array(times, np.float64)
        room = FutureRoom(
            f[:, :, me], i[:, :, me], s[:, :, me], si[:, :, me], queue[:, :, me], lane[:, :, me], low[:, me], trial[:, me], n, t
        )
        work = line[:, me]
        future = me
        while future < sums.shape[1]:
            for job in range(work.shape[0]):
                work[job] = given[job, future] if given.shape[0] > 0 else draw(quantile, seed, first + future, job)
            column = future if begins.shape[1] == sums.shape[1] else me
            if run(case, room, work, coming[:, :, future], begins[:, column], ends[:, column]) == gave_up:
                cuda.atomic.add(lost, 0, 1)
            add(begins[:, column], ends[:, column], sums[:, future], n[decisions], n[started], n[stopped])
            future += threads

    return cuda.jit(futures_of_a_thread, lto=False, max_registers=REGISTERS)


def _for_gpu(kernel: Any, known: dict[int, Any]) -> Any:
    """The source of a kernel as a function of the GPU; so are the kernels that it calls."""
    cuda = _cuda()
    if id(kernel) not in known:
        plain = kernel.py_func
        names = dict(plain.__globals__)
        for name in plain.__code__.co_names:
            if isinstance(names.get(name), Kernel):
                names[name] = _for_gpu(names[name], known)
        twin = FunctionType(plain.__code__, names, plain.__name__, plain.__defaults__, plain.__closure__)
        known[id(kernel)] = cuda.jit(twin, device=True, forceinline=True)
    return known[id(kernel)]


@contextmanager
def _plain_arithmetic() -> Iterator[None]:
    """While this holds, what is compiled for the GPU rounds after each multiplication and each addition, as the processor does, and takes
    indices as they are, as `kernel_from_zero` does on the processor.

    Numba has no options for that; its parts, and the compiler behind them (NVVM), do.
    """
    nvvm: Any = importlib.import_module("numba.cuda.cudadrv.nvvm")
    indexing: Any = importlib.import_module("numba.cuda.np.arrayobj")
    compile_ir, fix_index = nvvm.compile_ir, indexing.slicing.fix_index
    nvvm.compile_ir = lambda code, **options: compile_ir(code, **{**options, "fma": False})
    indexing.slicing.fix_index = lambda builder, index, size: index
    try:
        yield
    finally:
        nvvm.compile_ir, indexing.slicing.fix_index = compile_ir, fix_index
