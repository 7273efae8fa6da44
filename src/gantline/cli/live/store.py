"""``gantline backup FILE``: a copy of the store, made while the service runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from cyclopts import App

from gantline.cli.console import Form, say
from gantline.cli.live.connection import HomeOption, connect, need_libraries, show_rows
from gantline.live.service.home import Home

backup_app = App(
    name="backup",
    help_epilogue="""The copy has jobs, journal, events, queues and the hashes of tokens, as they were at one instant. 'gantline restore'
goes back to it. Folders of jobs (their output and checkpoints) and the archive are not in it.""",
)


@backup_app.default
def backup(
    file: Path,
    /,
    *,
    home: HomeOption = None,
    store: str = "",
) -> None:
    """Copy the store of a service into a file; the service goes on meanwhile.

    Args:
        file: The new file.
        store: Another database than the file in the home, as for 'gantline up'.
    """
    need_libraries()
    from gantline.live.store.connection import back_up

    size = back_up(store or os.environ.get("GANTLINE_STORE", "") or Home.find(home).store, file)
    print(file)
    say(f"note: {size / 1e6:.1f} MB")


# ``gantline restore FILE``: back to a backup.

restore_app = App(
    name="restore",
    help_epilogue="""The service must not run. Whatever happened since the backup is lost: jobs that were submitted later, what
became of the others, queues and tokens; a token that was revoked since is valid again. The store that is there is set aside. The next
'gantline up' stops what still runs, starts the jobs that ran again from what they have saved, and never gives a number out twice.""",
)
_SHOWN = 20


@restore_app.default
def restore(
    file: Path,
    /,
    *,
    home: HomeOption = None,
    store: str = "",
) -> None:
    """Put a backup in the place of the store, and say what is lost.

    Args:
        file: What 'gantline backup' has written.
        store: Another file than that in the home, as for 'gantline up'.
    """
    need_libraries()
    from gantline.live.service.repair import restore as put_back

    found = put_back(Home.find(home), file, store or os.environ.get("GANTLINE_STORE", ""))
    say(f"note: the store has the {found.jobs} jobs of the backup; new ones have numbers from {found.newest + 1} on")
    if found.aside:
        say(f"note: the store that was there is {found.aside}")
    if found.lost:
        say(f"warning: lost, because they were submitted later: {_listed(found.lost)}; their folders stay")
    if found.open:
        say(f"warning: had not ended when the backup was made, and wait or run again: {_listed(found.open)}")
    if found.running:
        say(f"warning: still run, and are stopped by the next 'gantline up': {_listed(found.running)}")
    say("warning: tokens that were revoked since the backup are valid again, those made since are not: see 'gantline token list'")


def _listed(ids: Sequence[str]) -> str:
    more = len(ids) - _SHOWN
    return ", ".join(ids[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


# ``gantline compact``: a smaller store.

compact_app = App(
    name="compact",
    help_epilogue="""The record of decisions is kept from the third newest checkpoint on, and 'gantline replay' begins there. A service
that was started with --keep does the same by itself whenever jobs have been archived. Jobs at hand, queues and tokens stay.""",
)


@compact_app.default
def compact(*, home: HomeOption = None) -> None:
    """Archive the jobs that are due, and give up what the store of the service does not need any more."""
    with connect(home) as client:
        found = client.compact()
    say(f"note: {found['archived']} jobs were archived")
    if found["before"] is not None:
        say(f"note: the store has {found['after'] / 1e6:.1f} MB, and had {found['before'] / 1e6:.1f}")


# ``gantline repair``: a store that a service cannot start from.

repair_app = App(
    name="repair",
    help_epilogue="""The service must not run. Nothing is thrown away: what is set aside stays in the store, and 'gantline status' lists it.
Exit code 4: something was found that cannot be mended here.""",
)


@repair_app.default
def repair(
    *,
    home: HomeOption = None,
    store: str = "",
    dry_run: bool = False,
    output: Form = "table",
) -> int:
    """Find what keeps a service from starting, set it aside and say so.

    Args:
        store: Another database than the file in the home, as for 'gantline up'.
        dry_run: Say what would be done, and do nothing.
    """
    need_libraries()
    from gantline.live.service.repair import mend

    found = mend(Home.find(home), store or os.environ.get("GANTLINE_STORE", ""), dry_run=dry_run)
    if not found:
        say("note: nothing to repair")
        return 0
    show_rows([{"where": one.where, "found": one.what, "done": one.done or "nothing: see docs/live.md"} for one in found], output, "where")
    if dry_run:
        say("note: nothing was changed")
    return 0 if all(one.done for one in found) else 4
