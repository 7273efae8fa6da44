"""The command ``gantline``: one light module that lists every command and imports one when it is called.

Help needs neither NumPy nor Numba nor polars, so each line of the table below is all that is read until a command runs.
"""

from __future__ import annotations

import gc
import io
import os
import signal
import sys
from collections.abc import Sequence

from cyclopts import App

import gantline
from gantline.cli.arguments import spread_settings
from gantline.cli.endable import in_a_child, is_wanted
from gantline.cli.failures import TerminatedError, exit_code_of

#: command -> what it does, in the order of the help; each is the `app` of a module of its name, or as `PLACES` says
COMMANDS = {
    "simulate": "Replay a table of jobs on a cluster under a policy.",
    "compare": "Compare policies on the same jobs: paired differences, intervals, a verdict in words.",
    "advise": "Say which policy serves these jobs best, and whether a larger cluster would help.",
    "sweep": "Run policies x loads x seeds x any parameter in parallel; the same command goes on after a stop.",
    "tune": "Search for the parameters of a policy that serve some workloads best, and try them on others.",
    "experiment": "Run an experiment file: a sweep, its comparison, its figures.",
    "fill": "Fill a cluster with pods that ask for parts of GPUs, and say how well a rule packs them.",
    "saturate": "Search for the load at which a policy saturates.",
    "reproduce": "Run a published figure again and hold it against what was published.",
    "benchmark": "Run every policy on the five workloads of the public benchmark.",
    "coverage": "Measure how often verdicts, intervals and the overload guard are right.",
    "decide": "Ask a policy for one decision from one snapshot file, and say what would happen.",
    "explain": "Say why a job waits, which jobs are ahead of it, which change would start it, and when it is expected to start.",
    "forecast": "Say when jobs are expected to start and to end: P50 and P90.",
    "what-if": "Say how the queue, or the past, would fare under another policy, with more devices or without a node.",
    "watch": "Look at a cluster that Slurm schedules, and ask about it.",
    "replay": "Fold a recorded run through its policy again: the plans must be the same.",
    "policy": "List policies, show their parameters, put one through the conformance suite.",
    "system": "List published systems, show what each brings and what it was held against.",
    "place": "Choose GPUs of a server for a gang, by the links between them.",
    "allreduce": "Say what plans of AllReduce cost and which is best, also on a tree of switches.",
    "placement": "List placement rules, show their properties, put one through the conformance suite.",
    "trace": "Import, check, describe, change and generate tables of jobs.",
    "report": "Write one offline HTML page about stored runs or a sweep.",
    "plot": "Write a figure of stored runs as PNG, SVG or PDF.",
    "profile": "Make short runs of jobs on this machine's devices, and say how fast they are.",
    "up": "Start the scheduler of this machine: jobs come over HTTP and run on its devices.",
    "down": "End the service; its jobs are stopped and saved first.",
    "repair": "Mend a store that a service cannot start from: set aside what is in the way.",
    "compact": "Archive jobs that ended long ago, and make the store of a service smaller.",
    "backup": "Copy the store of a service into a file while it runs.",
    "restore": "Go back to a backup, and say what is lost.",
    "dashboard": "Open the web page of a service: the cluster, the queue, and why.",
    "view": "Show finished simulations in a browser, on the pages of the dashboard.",
    "status": "Say where the service is, which policy decides, which devices there are.",
    "submit": "Submit a job: a YAML file, or a command after --.",
    "wait": "Wait until jobs have ended.",
    "get": "List jobs, nodes, reservations, queues, events or decisions.",
    "describe": "Show everything about one job.",
    "logs": "Print what a job has printed.",
    "top": "Show which devices are busy and which jobs run.",
    "events": "List what has happened.",
    "history": "Write the jobs that have ended as a trace.",
    "cancel": "End jobs.",
    "hold": "Keep jobs out until they are released.",
    "release": "Let jobs in that were held.",
    "requeue": "Stop jobs and let them wait again, or bring back those that failed.",
    "save": "Have jobs save their work now.",
    "resize": "Let a job ask for another number of devices.",
    "set": "Change the priority, queue, name, time limit or estimate of a job.",
    "node": "Cordon, drain or uncordon a node.",
    "reserve": "Keep devices free for a window of time, for some jobs or for maintenance.",
    "queue": "Set how many devices a queue may have.",
    "token": "Create, list or revoke the tokens of a service.",
    "user": "Say which accounts of this machine users' jobs run as.",
    "completion": "Print or install completion of commands and options for bash, zsh or fish.",
    "demo": "Simulate a day of a 64-GPU cluster under six policies and compare them.",
}
_LIVE = (
    "up",
    "down",
    "repair",
    "compact",
    "backup",
    "restore",
    "dashboard",
    "view",
    "status",
    "submit",
    "wait",
    "get",
    "describe",
    "logs",
    "top",
    "events",
    "history",
    "set",
)
#: commands that do not live in a module of their name
PLACES = {name: f"gantline.cli.live.{name}:app" for name in (*_LIVE, "node", "reserve", "queue", "token", "user")}
PLACES |= {name: f"gantline.cli.live.requests:{name}" for name in ("cancel", "hold", "release", "requeue", "save", "resize")}

app = App(
    name="gantline",
    help="Schedule deep-learning jobs on GPU clusters: one scheduler, two clocks.",
    version=gantline.__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    help_epilogue="Data goes to stdout, messages to stderr. Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 unreachable.",
)
for _place, (_name, _help) in enumerate(COMMANDS.items()):
    app.command(PLACES.get(_name, f"gantline.cli.{_name.replace('-', '_')}:app"), name=_name, help=_help, sort_key=_place)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code comes back."""
    tokens = spread_settings(sys.argv[1:] if argv is None else argv)

    def run() -> int:
        return exit_code_of(lambda: app(tokens, print_error=False, exit_on_error=False, result_action="return_value"), app)

    if argv is not None:
        return run()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of jobs may hold characters that the terminal cannot show
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # matrices here are small, and threads that wait for the next one burn processors
    signal.signal(signal.SIGTERM, _leave)  # drafts are removed on the way out
    code = in_a_child(run) if is_wanted(tokens) else run()
    gc.freeze()  # the process ends: a last garbage collection would take a tenth of a short command
    return code


def _leave(number: int, frame: object) -> None:
    raise TerminatedError


if __name__ == "__main__":
    sys.exit(main())
