"""The machine that evaluates a key: one instruction at a time, each over a few hundred rows.

Every result has the very bits that NumPy's would have, so ties are broken as if NumPy had computed the key.
"""

from __future__ import annotations

import math

import numpy as np

from gantline.core.arrays import Ints
from gantline.core.columns import Job
from gantline.core.gather import elapsed
from gantline.core.jit import kernel
from gantline.core.phases import CHECKPOINTING, STARTING
from gantline.core.phases import RUNNING as PHASE_RUNNING
from gantline.core.tables import Matrices
from gantline.engine.drivers.python_keys.tape import CHUNK, Field, Instruction, Operation, Tape

_LAST_HELD = CHECKPOINTING + 2


@kernel
def _holds(t: Matrices, row: int) -> bool:
    return bool(STARTING <= t.I[Job.PHASE, row] <= _LAST_HELD)


@kernel
def load(t: Matrices, rows: Ints, first: int, n: int, now: float, tape: Tape, k: int) -> None:
    """A column of the tables, as policies see it."""
    what, out, column = tape.code[k, Field.WHAT], tape.code[k, Field.OUT], tape.code[k, Field.A]
    F, I, real = t.F, t.I, tape.real
    if what == Instruction.NOW:
        real[out, 0] = now
    elif what == Instruction.FLOATS:
        for i in range(n):
            real[out, i] = F[column, rows[first + i]]
    elif what == Instruction.INTS:
        for i in range(n):
            tape.whole[out, i] = I[column, rows[first + i]]
    elif what == Instruction.FIXED:
        for i in range(n):
            tape.whole[out, i] = tape.fixed_whole[column, rows[first + i]]
    elif what == Instruction.FIXED_FLAG:
        for i in range(n):
            tape.flag[out, i] = tape.fixed_whole[column, rows[first + i]] != 0
    elif what == Instruction.SERVED:
        for i in range(n):
            row = rows[first + i]
            dt = elapsed(F, I, row, now)
            if column == Job.SERVICE:
                real[out, i] = F[Job.SERVICE, row] + dt
            elif column == Job.GPUTIME:
                real[out, i] = F[Job.GPUTIME, row] + I[Job.HELD, row] * dt
            else:
                real[out, i] = F[Job.DONE, row] + F[Job.RATE, row] * dt
    elif what == Instruction.REMAINING:
        for i in range(n):
            row = rows[first + i]
            real[out, i] = max(F[Job.ESTIMATE, row] - (F[Job.DONE, row] + F[Job.RATE, row] * elapsed(F, I, row, now)), 0.0)
    elif what == Instruction.WAITING:
        for i in range(n):
            row = rows[first + i]
            real[out, i] = 0.0 if _holds(t, row) else max(now - F[Job.SINCE, row], 0.0)
    elif what == Instruction.RATE:
        for i in range(n):
            row = rows[first + i]
            real[out, i] = F[Job.RATE, row] if _holds(t, row) else 0.0
    else:
        for i in range(n):
            row = rows[first + i]
            if what == Instruction.RUNNING:
                tape.flag[out, i] = _holds(t, row)
            else:
                tape.flag[out, i] = I[Job.PHASE, row] == PHASE_RUNNING and F[Job.SINCE, row] <= now


@kernel
def _compute(n: int, tape: Tape, k: int) -> bool:
    """One instruction on registers; False: an index lies outside of its table."""
    code, real, whole, flag = tape.code, tape.real, tape.whole, tape.flag
    what, out, a, b = code[k, Field.WHAT], code[k, Field.OUT], code[k, Field.A], code[k, Field.B]
    by = tape.stride[a]
    if what == Instruction.CHOOSE:
        to_b, to_c, other = tape.stride[b], tape.stride[code[k, Field.C]], code[k, Field.C]
        for i in range(n):
            whole[out, i] = whole[b, i * to_b] if flag[a, i * by] else whole[other, i * to_c]
    elif what == Instruction.CHOOSE_FLAG:
        to_b, to_c, other = tape.stride[b], tape.stride[code[k, Field.C]], code[k, Field.C]
        for i in range(n):
            flag[out, i] = flag[b, i * to_b] if flag[a, i * by] else flag[other, i * to_c]
    elif what == Instruction.SEARCH:
        _search(n, tape, k)
    elif what == Instruction.TAKE:
        return _take(n, tape, k)
    elif what == Instruction.FROM_INT:
        for i in range(n):
            real[out, i] = float(whole[a, i * by])
    elif what == Instruction.FROM_FLAG:
        for i in range(n):
            real[out, i] = 1.0 if flag[a, i * by] else 0.0
    elif what == Instruction.FLAG_TO_INT:
        for i in range(n):
            whole[out, i] = 1 if flag[a, i * by] else 0
    else:
        for i in range(n):
            whole[out, i] = np.int64(real[a, i * by])
    return True


@kernel
def _calculate(n: int, tape: Tape, k: int) -> None:
    """Arithmetic, comparisons and logic."""
    code, real, whole, flag = tape.code, tape.real, tape.whole, tape.flag
    out, a, b, what, kind = code[k, Field.OUT], code[k, Field.A], code[k, Field.B], code[k, Field.C], code[k, Field.D]
    by, to = tape.stride[a], tape.stride[b]
    for i in range(n):
        if kind == 0 and what < Operation.LESS:
            real[out, i] = _of_floats(what, real[a, i * by], real[b, i * to])
        elif kind == 0:
            flag[out, i] = _compare(what, real[a, i * by], real[b, i * to])
        elif kind == 1 and what < Operation.LESS:
            whole[out, i] = _of_ints(what, whole[a, i * by], whole[b, i * to])
        elif kind == 1:
            flag[out, i] = _compare(what, whole[a, i * by], whole[b, i * to])
        else:
            flag[out, i] = _of_flags(what, flag[a, i * by], flag[b, i * to])


@kernel
def _of_floats(what: int, a: float, b: float) -> float:
    if what == Operation.ADD:
        return a + b
    if what == Operation.SUBTRACT:
        return a - b
    if what == Operation.MULTIPLY:
        return a * b
    if what == Operation.DIVIDE:
        if b == 0.0:
            return np.nan if a == 0.0 or np.isnan(a) else math.copysign(np.inf, a) * math.copysign(1.0, b)
        return a / b
    if what == Operation.MINIMUM:
        return a if a <= b or np.isnan(a) else b
    if what == Operation.MAXIMUM:
        return a if a >= b or np.isnan(a) else b
    if what == Operation.NEGATIVE:
        return -a
    return abs(a) if what == Operation.ABSOLUTE else np.sqrt(a)


@kernel
def _of_ints(what: int, a: int, b: int) -> int:
    if what == Operation.ADD:
        return a + b
    if what == Operation.SUBTRACT:
        return a - b
    if what == Operation.MULTIPLY:
        return a * b
    if what == Operation.MINIMUM:
        return min(a, b)
    if what == Operation.MAXIMUM:
        return max(a, b)
    return -a if what == Operation.NEGATIVE else abs(a)


@kernel
def _compare(what: int, a: float, b: float) -> bool:
    if what == Operation.LESS:
        return a < b
    if what == Operation.LESS_EQUAL:
        return a <= b
    if what == Operation.GREATER:
        return a > b
    if what == Operation.GREATER_EQUAL:
        return a >= b
    if what == Operation.IS_NAN:
        return a != a
    return a == b if what == Operation.EQUAL else a != b


@kernel
def _of_flags(what: int, a: bool, b: bool) -> bool:
    if what == Operation.AND:
        return a and b
    if what == Operation.OR:
        return a or b
    if what == Operation.NOT:
        return not a
    return a == b if what == Operation.EQUAL else a != b


@kernel
def _search(n: int, tape: Tape, k: int) -> None:
    """How many entries lie before each number: those below it, or also its equals. Not a number lies behind all."""
    out, a, begin, length, right = (
        tape.code[k, Field.OUT],
        tape.code[k, Field.A],
        tape.code[k, Field.B],
        tape.code[k, Field.C],
        tape.code[k, Field.D] == 1,
    )
    by = tape.stride[a]
    for i in range(n):
        value = tape.real[a, i * by]
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            entry = tape.table[begin + middle]
            if np.isnan(value) or entry < value or (right and entry == value):
                low = middle + 1
            else:
                high = middle
        tape.whole[out, i] = low


@kernel
def _take(n: int, tape: Tape, k: int) -> bool:
    out, a, begin, length = tape.code[k, Field.OUT], tape.code[k, Field.A], tape.code[k, Field.B], tape.code[k, Field.C]
    by = tape.stride[a]
    for i in range(n):
        at = tape.whole[a, i * by]
        if at < 0:
            at += length
        if at < 0 or at >= length:
            return False
        tape.whole[out, i] = tape.table_whole[begin + at]
    return True


@kernel
def evaluate(t: Matrices, rows: Ints, count: int, now: float, tape: Tape) -> bool:
    """Write the keys of these rows into the tables; False: one of them is not a number, or an index lies outside of its table."""
    code, good = tape.code, True
    last = code.shape[0] - 1
    tape.counts[0] += count
    for first in range(0, count, CHUNK):
        n = min(CHUNK, count - first)
        for k in range(last):
            what = code[k, Field.WHAT]
            if what == Instruction.CALL:
                _calculate(n, tape, k)
            elif what >= Instruction.CHOOSE:
                good = _compute(n, tape, k) and good
            else:
                load(t, rows, first, n, now, tape, k)
        result = code[last, Field.OUT]
        by = tape.stride[result]
        for i in range(n):
            key = tape.real[result, i * by]
            t.F[Job.KEY, rows[first + i]] = key
            good = good and key == key
    return good
