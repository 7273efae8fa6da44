"""The command ``gantline``: one light module that lists every command and imports one when it is called.

Help needs neither NumPy nor Numba nor polars, so each line of the table below is all that is read until a command runs.
"""

from __future__ import annotations

import gc
import io
import os
import re
import signal
import sys
from collections.abc import Sequence

from cyclopts import App, Group, Parameter

import gantline
from gantline.cli.child_process import in_a_child, is_wanted
from gantline.cli.console import say
from gantline.cli.failures import TerminatedError, exit_code_of

#: group -> its title, and its commands in the order of the help: where the app of each is, and what it does in a line of a narrow terminal
GROUPS: dict[str, tuple[str, dict[str, tuple[str, str]]]] = {
    "runs": (
        "Simulate and compare",
        {
            "demo": ("demo:app", "Simulate a day of a 64-GPU cluster under six policies."),
            "simulate": ("simulate:app", "Replay a table of jobs on a cluster under a policy."),
            "compare": ("experiments:compare_app", "Compare policies on the same jobs, with a verdict in words."),
            "advise": ("advise:app", "Say which policy serves these jobs best; would GPUs help?"),
            "sweep": ("experiments:sweep_app", "Run policies x loads x seeds x any parameter in parallel."),
            "tune": ("tune:app", "Search for the parameters of a policy that serve best."),
            "experiment": ("experiments:experiment_app", "Run a sweep and its comparison from an experiment file."),
            "reproduce": ("studies:reproduce_app", "Run a published figure again and compare it."),
            "benchmark": ("studies:benchmark_app", "Run every policy on the workloads of the public benchmark."),
            "report": ("report:app", "Write one offline HTML page about stored runs or a sweep."),
            "plot": ("plot:app", "Write a figure of stored runs as PNG, SVG or PDF."),
            "view": ("live.dashboard:view_app", "Show finished simulations in a browser."),
        },
    ),
    "traces": (
        "Traces and policies",
        {
            "trace": ("trace:app", "Import, check, change and generate tables of jobs."),
            "policy": ("policy:app", "List, show and check policies."),
            "placement": ("placement:placement_app", "List, show and check placement rules, and try them."),
            "system": ("system:app", "List published systems and what each was held against."),
            "profile": ("profile:app", "Make short runs of jobs and say how fast they are."),
        },
    ),
    "ask": (
        "Ask",
        {
            "decide": ("decide:app", "Ask a policy for one decision from one snapshot file."),
            "explain": ("questions:explain_app", "Say why a job waits, and which change would start it."),
            "forecast": ("questions:forecast_app", "Say when jobs are expected to start and to end."),
            "what-if": ("questions:what_if_app", "Say how jobs would fare under another policy or cluster."),
            "watch": ("watch:app", "Look at a cluster that Slurm or Kubernetes schedules."),
            "replay": ("replay:app", "Fold a recorded run through its policy again."),
        },
    ),
    "jobs": (
        "Run jobs",
        {
            "submit": ("live.submit:app", "Submit a job: a YAML file, or a command after --."),
            "get": ("live.get:get_app", "List jobs, nodes, reservations, queues, events, decisions."),
            "describe": ("live.get:describe_app", "Show everything about one job."),
            "logs": ("live.status:logs_app", "Print what a job has printed."),
            "wait": ("live.status:wait_app", "Wait until jobs have ended."),
            "top": ("live.status:top_app", "Show which devices are busy and which jobs run."),
            "events": ("live.get:events_app", "List what has happened."),
            "history": ("live.status:history_app", "Write the jobs that have ended as a trace."),
            "cancel": ("live.requests:cancel", "End jobs."),
            "hold": ("live.requests:hold", "Keep jobs out until they are released."),
            "release": ("live.requests:release", "Let jobs in that were held."),
            "requeue": ("live.requests:requeue", "Stop jobs and let them wait again, or retry failed ones."),
            "save": ("live.requests:save", "Have jobs save their work now."),
            "resize": ("live.requests:resize", "Let a job ask for another number of devices."),
            "set": ("live.requests:set_app", "Change the priority, queue, name or limits of a job."),
        },
    ),
    "operate": (
        "Operate",
        {
            "up": ("live.up:up_app", "Start the scheduler of this machine."),
            "down": ("live.up:down_app", "End the service; its jobs are stopped and saved first."),
            "status": ("live.status:status_app", "Say where the service is, its policy and its devices."),
            "dashboard": ("live.dashboard:dashboard_app", "Open the web page of a service."),
            "node": ("live.cluster:node_app", "Cordon, drain or uncordon a node."),
            "reserve": ("live.cluster:reserve_app", "Keep devices free for a window of time."),
            "queue": ("live.cluster:queue_app", "Set how many devices a queue may have."),
            "token": ("live.access:token_app", "Create, list or revoke the tokens of a service."),
            "user": ("live.access:user_app", "Say which accounts of this machine users' jobs run as."),
            "backup": ("live.store:backup_app", "Copy the store of a service into a file while it runs."),
            "restore": ("live.store:restore_app", "Go back to a backup, and say what is lost."),
            "compact": ("live.store:compact_app", "Archive old jobs, and make the store smaller."),
            "repair": ("live.store:repair_app", "Mend a store that a service cannot start from."),
            "completion": ("completion:app", "Print or install completion for bash, zsh or fish."),
        },
    ),
}
COMMANDS = {name: f"gantline.cli.{place}" for _, commands in GROUPS.values() for name, (place, _) in commands.items()}
#: old spellings of seldom used commands, which stand under the noun that they belong to
OLD_SPELLINGS = {
    "place": "placement choose",
    "fill": "placement fill",
    "allreduce": "profile allreduce",
    "saturate": "experiment saturate",
    "coverage": "experiment coverage",
    "profile company": "profile colocation",
}
_SETTING = re.compile(r"[A-Za-z_][\w-]*=")

app = App(
    name="gantline",
    help="Schedule deep-learning jobs on GPU clusters: one scheduler, two clocks.",
    version=gantline.__version__,
    help_format="plaintext",
    suppress_keyboard_interrupt=False,
    default_parameter=Parameter(
        negative="",  # no option has an opposite
        show_default=lambda value: None if value is False or value == "" else value,
    ),
    group_commands=Group("Options", sort_key=len(GROUPS)),
    help_epilogue="""'gantline help GROUP' lists the commands of a group with those below them: runs, traces, ask, jobs, operate.
Data goes to stdout, messages to stderr. Exit codes: 0 done, 1 failed, 2 usage, 3 not found, 4 refused, 5 unreachable.""",
)
for _number, (_title, _commands) in enumerate(GROUPS.values()):
    _group = Group(_title, sort_key=_number)
    for _place, (_name, (_, _help)) in enumerate(_commands.items()):
        app.command(COMMANDS[_name], name=_name, help=_help, sort_key=_place, group=_group)
app.command("gantline.cli.help:app", name="help", show=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the exit code comes back."""
    tokens = spread_settings(sys.argv[1:] if argv is None else argv)
    for old, spelling in OLD_SPELLINGS.items():
        if tokens[: len(old.split())] == old.split():
            say(f"note: 'gantline {old}' is spelt 'gantline {spelling}'; the next version has this spelling alone")
            tokens[: len(old.split())] = spelling.split()
            break

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


def spread_settings(tokens: Sequence[str]) -> list[str]:
    """Read ``--set a=1 b=2`` as ``--set a=1 --set b=2``."""
    spread: list[str] = []
    inside = False
    for token in tokens:
        if inside and _SETTING.match(token) and spread[-1] != "--set":
            spread.append("--set")
        inside = token == "--set" or (inside and _SETTING.match(token) is not None)
        spread.append(token)
    return spread


def _leave(number: int, frame: object) -> None:
    raise TerminatedError


if __name__ == "__main__":
    sys.exit(main())
