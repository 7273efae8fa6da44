"""IRFsim without profiling: the estimated times of a job are known when it arrives."""

from gantline.engine.regime import Regime

REGIME = Regime(name="irfsim-known", tick=1.0)
