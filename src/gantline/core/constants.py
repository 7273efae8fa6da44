"""Named numbers that kernels read as constants: the columns of a table, the places of an array, the codes of an answer."""

from __future__ import annotations


class ConstantsType(type):
    """The type of such a class; Numba reads its numbers as it reads those of a module (see `machine_code.compiler`)."""

    def __len__(cls) -> int:
        """How many numbers it names."""
        return sum(not name.startswith("_") for name in vars(cls))


class Constants(metaclass=ConstantsType):
    """A class of numbers: ``class Count(Constants): ACTIVE, RUNNING = range(2)``."""
