"""Kernels that Numba compiles and that later processes call without importing Numba.

Importing Numba and preparing the first call of a cached function costs about a second, whatever the function does. So the process that
compiles a kernel also stores its object code, with an entry that reads all arguments from one row of 64-bit slots; later processes load it
with llvmlite. A kernel whose arguments or results this cannot express (allocation, strings) is called through Numba.

    kernel.py    the function that Python calls     compiler.py     from Python to LLVM code, by Numba
    slots.py     arguments and results              object_code.py  from LLVM code to an object file, and into memory
    folder.py    the files                          fingerprint.py  what they are named after
"""

from gantline.core.machine_code.fingerprint import FROM_ZERO
from gantline.core.machine_code.kernel import Kernel
from gantline.core.machine_code.slots import let_go

__all__ = ["FROM_ZERO", "Kernel", "let_go"]
