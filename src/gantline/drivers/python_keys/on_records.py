"""Running a key that is asked about each job by itself on records: from the tables to the records, questions, and back."""

from __future__ import annotations

import numpy as np

from gantline.core import columns as c
from gantline.core.policy import LinearKey
from gantline.drivers import loop_clock as lc
from gantline.drivers.declared import take_order
from gantline.drivers.dense import fits_dense, records_of, stands_still, write_back
from gantline.drivers.loop_clock import LoopClock
from gantline.drivers.python_keys import loop
from gantline.drivers.python_keys.questions import Questions
from gantline.drivers.python_keys.record_loop import Addressees, AsSubmitted, Everything, run_in_order, run_with_stops
from gantline.drivers.standstill import Standstill
from gantline.engine import declared_key as k
from gantline.engine import lists as ls
from gantline.engine import settings as s
from gantline.engine.blocked import name_blocked
from gantline.engine.dense import low_ranks as w
from gantline.engine.dense.devices import devices
from gantline.engine.dense.gangs import LoopLog, LoopSetting
from gantline.engine.dense.heap import heaps
from gantline.engine.dense.keys import Key
from gantline.engine.dense.low_ranks import Pass
from gantline.engine.dense.queues import queues
from gantline.engine.engine import Engine
from gantline.engine.state import State

#: columns that records have, as `Jobs` names them; all that never change are at hand as well
_HAD = frozenset(
    {("m", c.SERVICE), ("m", c.GPUTIME), ("m", c.DONE), "remaining", "running", "rate", c.ESTIMATE, c.FIRST_START, c.LAST_START}
    | {~c.HELD, ~c.SPREAD, ~c.PHASE, ~c.PREEMPTIONS, ~c.RESTARTS}
)
_TOLD = 512  # decisions between two words on progress


def answers_on_records(state: State, asked: Questions) -> bool:
    """Whether records have all that the policy has read so far."""
    reads = asked.reads
    return fits_dense(state) and asked.constant and not reads.ages and reads.columns <= _HAD | reads.fixed


def run_on_records(engine: Engine, asked: Questions, bounds: lc.LoopBounds) -> tuple[int, LoopClock]:
    """Run to the end, or as far as the records know; how it ended, and the clock for whoever goes on."""
    state, t, log, policy = engine.state, engine.state.tables, engine.state.log, engine.policy
    take_order(state, policy)
    clock = lc.clock(state.regime, bounds)
    qs, lane_of = queues(t.I[c.GPUS])
    jobs = records_of(state, lane_of)
    h, rows = heaps(jobs), jobs.f.shape[0]
    ds = devices(t.NI, state.rule.one_node)
    width = min(int(t.NI[c.N_GPUS].sum()), rows) + 1
    motion = np.zeros(w.MOTIONS)
    motion[w.ANEW] = 1.0
    work = Pass(np.zeros((w.LINE_ROWS, width), dtype=np.int64), np.zeros(w.NUMBERS, dtype=np.int64), motion)
    key, setting = Key(k.coefficients(LinearKey(priority=1.0)), np.zeros(0)), LoopSetting(state.SI, state.SF, t.options.F)
    number = np.zeros(ls.COUNTS + 1, dtype=np.int64)
    who = Addressees(np.zeros(rows + 1, dtype=np.int64), np.zeros(loop.PLACES, dtype=np.int64), np.zeros(width + 1, dtype=np.int64))
    tape, said = asked.tape(None)
    given, run = AsSubmitted(t.F, t.I), run_with_stops if state.SI[s.S_PREEMPT] else run_in_order
    how, time, checked = who.how, clock.time, 1
    how[loop.UNTIL_CHECK] = asked.first_check
    until = asked.valid_until()
    time[lc.VALID] = np.nan if until is None else until
    asked.reads.strict = True
    code, guard = lc.NEED_LOG, Standstill(engine)
    while code in (lc.NEED_LOG, loop.KEYS, loop.CHECK):
        if code == lc.NEED_LOG:
            if stands_still(guard, jobs, number, float(time[lc.NOW])):
                code = lc.DONE
                break
            log.reserve(2 * width + 65536, 2 * width + 65536)
            noted = LoopLog(log.LI, log.LF, log.LD, log.LN)
            everything = Everything(jobs, h, qs, ds, noted, setting, key, work, given, tape, who, number, clock)
        else:
            count = how[loop.COUNT]
            keys = asked.ask(who.rows[:count], float(time[lc.NOW]))
            if keys is None:
                code = loop.LEAVE
                break
            said[:count] = keys
            if code == loop.CHECK:
                how[loop.UNTIL_CHECK], checked = checked, 2 * checked
            if bounds.on_progress is not None and clock.number[lc.DECISIONS] % _TOLD == 0:
                bounds.on_progress(float(time[lc.NOW]), int(number[ls.NEXT]), int(number[ls.ACTIVE]))
        code = run(everything)
    asked.reads.strict = False
    write_back(state, jobs, qs, ds, number[: ls.COUNTS])
    state.now = float(time[lc.NOW])
    engine.started += int(work.number[w.STARTED])
    engine.stopped += int(work.number[w.STOPPED])
    if code != loop.ASK:
        name_blocked(state)
    return code, clock
