"""How many files the service may have open: a running job needs one, a connection another."""

from __future__ import annotations

import resource

_OWN = 128  # the store, the log, libraries, what is open for a moment
_MOST_CONNECTIONS = 4096
_ENOUGH = 65_536
_before: list[tuple[int, int]] = []


def raise_limit() -> int:
    """Raise the soft limit as far as it makes sense and is allowed; how many files may be open then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _ENOUGH if hard == resource.RLIM_INFINITY else min(hard, _ENOUGH)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        _before.append((soft, hard))
        soft = wanted
    return _ENOUGH if soft == resource.RLIM_INFINITY else soft


def limit_of_jobs() -> tuple[int, int] | None:
    """The limit as it was, which jobs are started with: a program that uses select() trusts it. None: it was not changed."""
    return _before[0] if _before else None


def connections_within(files: int) -> int:
    """How many connections there may be at a time: a third of the files, for jobs need them too."""
    return min(_MOST_CONNECTIONS, max(16, files // 3))


def too_few(files: int, devices: int) -> str:
    """That not all devices can be used at once; empty where they can."""
    able = files - _OWN - connections_within(files)
    return f"only {files} files may be open (ulimit -Hn): at most {max(able, 0)} jobs can run at a time" if able < devices else ""
