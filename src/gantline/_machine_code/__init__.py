"""Compiled kernels kept as machine code, and called without Numba's front end.

Importing Numba and preparing the first call of a cached function costs about 0.6 s, whatever the function does. So the first process that
compiles a kernel also stores its object code, with an entry that reads all arguments from one row of 64-bit slots; later processes load it
with llvmlite and never import Numba. A kernel whose arguments or code this cannot express (allocation, strings) is called through Numba.

    kernel.py   the function that Python calls      compiler.py  how Numba compiles it
    slots.py    arguments and results               emit.py      from Numba's code to an object file
    store.py    entries on disk                     numba_cache.py  Numba's results on disk
    folder.py   the files                           fingerprint.py  what they are named after
    front_end.py  Numba without work done twice   late.py      functions that only other kernels call
    lean_code.py, lean_builder.py  LLVM's language without what it would remove again
    by_address.py  functions of which only the address is known
"""

from gantline._machine_code.by_address import ByAddress
from gantline._machine_code.compiler import FROM_ZERO
from gantline._machine_code.kernel import Kernel
from gantline._machine_code.slots import let_go

__all__ = ["FROM_ZERO", "ByAddress", "Kernel", "let_go"]
