"""IRFsim (the simulator of AlloX, EuroSys 2020): whole seconds, one pool of cores, GPUs and memory, jobs profiled first.

Its rules are in docs/design/irfsim.md. They reach into the policies (the order in which a queue was left decides which sample runs
next), so it has a loop of its own, which knows AlloX and its baselines and no others.
"""

from gantline.engine.regime import Regime

REGIME = Regime(name="irfsim", tick=1.0)
#: the same without profiling: the estimated times of a job are known when it arrives
KNOWN = Regime(name="irfsim-known", tick=1.0)
