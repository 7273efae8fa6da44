"""A pytest plugin: kernels run as the Python that they are written in, so that one with a planted defect need not be compiled.

The first example that falls is enough: nobody reads it, so it is not made smaller.
"""

from __future__ import annotations

from typing import Any

from hypothesis import Phase, settings

from gantline._machine_code import Kernel


def _plainly(kernel: Kernel, *args: Any) -> Any:
    return kernel.py_func(*args)


Kernel.__call__ = _plainly  # type: ignore[method-assign]
settings.register_profile("mutants", parent=settings.get_profile("default"), phases=(Phase.explicit, Phase.generate))
settings.load_profile("mutants")
