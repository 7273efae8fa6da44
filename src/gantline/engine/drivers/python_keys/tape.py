"""A key as instructions for the machine in `evaluate.py`: registers, constants, tables, and what is done in which order."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gantline.core.arrays import Floats, Ints
from gantline.core.columns import Job
from gantline.core.constants import Constants
from gantline.engine.drivers.python_keys.expression import BOOL, FLOAT, INT, CannotReadError, Term, cast, number

CHUNK = 256  # rows at a time: a register fits into the fastest memory


class Instruction(Constants):
    """What an instruction does; its operands follow."""

    (CALL, FLOATS, INTS, SERVED, REMAINING, WAITING, RUNNING, PROGRESSING, RATE, NOW) = range(10)
    (FIXED, FIXED_FLAG, CHOOSE, CHOOSE_FLAG, SEARCH, TAKE, FROM_INT, FROM_FLAG, FLAG_TO_INT, TO_INT) = range(10, 20)


class Field(Constants):
    """Places of an instruction."""

    WHAT, OUT, A, B, C, D = range(6)


class Operation(Constants):
    """What `CALL` does with two numbers or one; NumPy rounds what is left out (powers, logarithms) in its own
    way."""

    (ADD, SUBTRACT, MULTIPLY, DIVIDE, MINIMUM, MAXIMUM, NEGATIVE, ABSOLUTE, SQRT) = range(9)
    (LESS, LESS_EQUAL, GREATER, GREATER_EQUAL, EQUAL, NOT_EQUAL, AND, OR, NOT, IS_NAN) = range(9, 19)


_FLOATS = {
    "add": Operation.ADD,
    "subtract": Operation.SUBTRACT,
    "multiply": Operation.MULTIPLY,
    "divide": Operation.DIVIDE,
    "minimum": Operation.MINIMUM,
    "maximum": Operation.MAXIMUM,
    "negative": Operation.NEGATIVE,
    "absolute": Operation.ABSOLUTE,
    "sqrt": Operation.SQRT,
    "isnan": Operation.IS_NAN,
    "less": Operation.LESS,
    "less_equal": Operation.LESS_EQUAL,
    "greater": Operation.GREATER,
    "greater_equal": Operation.GREATER_EQUAL,
    "equal": Operation.EQUAL,
    "not_equal": Operation.NOT_EQUAL,
}
_INTS = {name: what for name, what in _FLOATS.items() if name not in ("divide", "sqrt", "isnan")}
_FLAGS = {
    "bitwise_and": Operation.AND,
    "logical_and": Operation.AND,
    "bitwise_or": Operation.OR,
    "logical_or": Operation.OR,
    "invert": Operation.NOT,
    "logical_not": Operation.NOT,
    "equal": Operation.EQUAL,
    "not_equal": Operation.NOT_EQUAL,
}
_OPERATIONS = {FLOAT: (0, _FLOATS), INT: (1, _INTS), BOOL: (2, _FLAGS)}

_COLUMNS: dict[str, tuple[int, int]] = {
    "attained": (Instruction.SERVED, Job.SERVICE),
    "attained_gpu": (Instruction.SERVED, Job.GPUTIME),
    "done": (Instruction.SERVED, Job.DONE),
    "remaining": (Instruction.REMAINING, 0),
    "waiting": (Instruction.WAITING, 0),
    "running": (Instruction.RUNNING, 0),
    "progressing": (Instruction.PROGRESSING, 0),
    "rate": (Instruction.RATE, 0),
    "now": (Instruction.NOW, 0),
    "estimate": (Instruction.FLOATS, Job.ESTIMATE),
    "first_start": (Instruction.FLOATS, Job.FIRST_START),
    "last_start": (Instruction.FLOATS, Job.LAST_START),
    "restarts": (Instruction.INTS, Job.RESTARTS),
    "preemptions": (Instruction.INTS, Job.PREEMPTIONS),
    "held": (Instruction.INTS, Job.HELD),
    "nodes_held": (Instruction.INTS, Job.SPREAD),
    "phase": (Instruction.INTS, Job.PHASE),
}


class Tape(NamedTuple):
    """One key. `real`, `whole` and `flag` are the same memory, as floats, as whole numbers and as truth values."""

    code: Ints  # (instruction, field)
    real: Floats  # (register, place)
    whole: Ints
    flag: NDArray[np.bool_]
    stride: Ints  # of each register in numbers: 0 if it holds one number for all
    fixed: Floats  # (column, row): what no event changes; whole numbers as their bits
    fixed_whole: Ints
    table: Floats  # one after the other
    table_whole: Ints
    counts: Ints  # one number: the rows that were evaluated so far
    stale: NDArray[np.bool_]  # by row: its key is not the one that it has now


class Written(NamedTuple):
    """A tape and what is known of its key."""

    tape: Tape
    ages: bool  # time alone changes keys of rows that wait
    until: float = math.nan  # when the order may change although nothing happens; NaN: in the next round or quantum
    levels: tuple[float, ...] = ()  # service at which a row that runs falls behind at that very instant
    by_gpu: bool = False  # levels are counted by GPU-seconds


def write(key: Term, rows: int) -> Written:
    """The instructions that evaluate this key."""
    return Written(_Writer(rows).write(key), key.ages, math.nan if key.moves else math.inf)


def blank(rows: int) -> Tape:
    """A tape without instructions, where the policy gives the keys."""
    return write(number(0.0), rows).tape


class _Writer:
    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._registers: dict[int, int] = {}
        self._nodes: list[Term] = []
        self._code: list[list[int]] = []
        self._lasting: list[NDArray[Any]] = []
        self._table: list[NDArray[Any]] = []

    def write(self, key: Term) -> Tape:
        result = self._register(cast(key, FLOAT))
        count = len(self._nodes)
        words = np.zeros((count, CHUNK))
        whole, flag = words.view(np.int64), words.view(np.bool_)
        stride = np.array([int(not (node.single or node.what == "number")) for node in self._nodes], dtype=np.int64)
        for place, node in enumerate(self._nodes):
            if node.what == "number":
                view: Any = {FLOAT: words, INT: whole, BOOL: flag}[node.kind]
                view[place, 0] = node.detail
        counts = np.zeros(1, dtype=np.int64)
        fixed = np.stack(self._lasting) if self._lasting else np.zeros((0, self._rows))
        table = np.concatenate(self._table) if self._table else np.zeros(0)
        code = np.array([*self._code, [-1, result, 0, 0, 0, 0]], dtype=np.int64)
        stale = np.ones(self._rows, dtype=np.bool_)
        views = (fixed, fixed.view(np.int64), table, table.view(np.int64))
        return Tape(code, words, whole, flag, stride, *views, counts, stale)

    def _register(self, node: Term) -> int:
        """Where the numbers of a node will stand, once the instructions so far have been carried out."""
        known = self._registers.get(id(node))
        if known is not None:
            return known
        given = [self._register(one) for one in node.inputs]
        made = self._registers[id(node)] = len(self._nodes)
        self._nodes.append(node)
        if node.what != "number":
            self._code.append(self._instruction(node, made, given))
        return made

    def _instruction(self, node: Term, made: int, given: list[int]) -> list[int]:
        what, operands = getattr(self, f"_{node.what}")(node, made, given)
        return [what, made, *operands, *[0] * (len(Field) - 2 - len(operands))]

    def _column(self, node: Term, made: int, given: list[int]) -> tuple[int, list[int]]:
        what, column = _COLUMNS[node.detail]
        return what, [column]

    def _fixed(self, node: Term, made: int, given: list[int]) -> tuple[int, list[int]]:
        self._lasting.append(node.detail if node.kind == FLOAT else node.detail.astype(INT).view(FLOAT))
        return Instruction.FIXED_FLAG if node.kind == BOOL else Instruction.FIXED, [len(self._lasting) - 1]

    def _call(self, node: Term, made: int, given: list[int]) -> tuple[int, list[int]]:
        ufunc, _ = node.detail
        kind, known = _OPERATIONS[node.inputs[0].kind]
        if ufunc.__name__ not in known:
            raise CannotReadError(f"np.{ufunc.__name__} of what changes")
        return Instruction.CALL, [given[0], given[-1], known[ufunc.__name__], kind]

    def _where(self, node: Term, made: int, given: list[int]) -> tuple[int, list[int]]:
        return Instruction.CHOOSE_FLAG if node.kind == BOOL else Instruction.CHOOSE, given

    def _search(self, node: Term, made: int, given: list[int]) -> tuple[int, list[int]]:
        table, side = node.detail
        return Instruction.SEARCH, [given[0], *self._kept(table), int(side == "right")]

    def _take(self, node: Term, made: int, given: list[int]) -> tuple[int, list[int]]:
        return Instruction.TAKE, [given[0], *self._kept(node.detail)]

    def _kept(self, table: NDArray[Any]) -> tuple[int, int]:
        """Where in the long table this one begins, and how long it is."""
        begin = sum(map(len, self._table))
        self._table.append(table.view(FLOAT))
        return begin, len(table)

    def _cast(self, node: Term, made: int, given: list[int]) -> tuple[int, list[int]]:
        source = node.inputs[0].kind
        if node.kind == FLOAT:
            return Instruction.FROM_INT if source == INT else Instruction.FROM_FLAG, given
        if node.kind == INT:
            return Instruction.FLAG_TO_INT if source == BOOL else Instruction.TO_INT, given
        raise CannotReadError("numbers taken for truth values")
