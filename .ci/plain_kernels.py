"""A pytest plugin: kernels run as the Python that they are written in, so that one with a planted defect need not be compiled."""

from __future__ import annotations

from typing import Any

from gantline._machine_code import Kernel


def _plainly(kernel: Kernel, *args: Any) -> Any:
    return kernel.py_func(*args)


Kernel.__call__ = _plainly  # type: ignore[method-assign]
