"""The one place where an error becomes a line on stderr and an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any

from cyclopts import App, CycloptsError
from cyclopts.exceptions import MissingArgumentError, UnknownCommandError, UnknownOptionError, UnusedCliTokensError

from gantline.cli.console import say
from gantline.core.errors import GantlineError, near

INTERRUPTED = 130  # as shells count SIGINT
TERMINATED = 143  # SIGTERM
PIPE_CLOSED = 141  # as shells count SIGPIPE
DEFECT = 70  # a defect of ours, not an error of the user


class TerminatedError(KeyboardInterrupt):
    """SIGTERM was received; no `SystemExit`, which a policy may raise and the engine contains."""


def exit_code_of(call: Callable[[], Any], app: App) -> int:
    """Run a command; its result is its exit code (None: 0), an error becomes a line and a code."""
    try:
        result = call()
        sys.stdout.flush()
    except CycloptsError as error:
        return _fail(usage_message(error, app), 2)
    except GantlineError as error:
        return _fail(str(error), error.exit_code)
    except TerminatedError:
        return _fail("terminated", TERMINATED)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except (SystemExit, GeneratorExit) as error:  # a policy file's, outside of a decision: nothing of ours raises either
        if isinstance(error.__context__, BrokenPipeError):  # rich turns it into SystemExit in a help text
            return _pipe_closed()
        last = traceback.extract_tb(error.__traceback__)[-1]
        return _fail(f"a policy or a plugin raised {type(error).__name__} ({last.filename}:{last.lineno})", 1)
    except BrokenPipeError:
        return _pipe_closed()
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return _fail(f"{place}{(error.strerror or str(error)).lower()}", 2)
    except MemoryError as error:
        return _fail(f"not enough memory{f': {error}' if str(error) else ''} (ask for fewer jobs, nodes or runs)", 2)
    except Exception as error:
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return _fail(f"this should not have happened: {text} (GANTLINE_DEBUG=1 shows where)", DEFECT)
    return result if isinstance(result, int) else 0


def _pipe_closed() -> int:
    """The reader of stdout, such as `head`, has closed it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return PIPE_CLOSED


def usage_message(error: CycloptsError, app: App) -> str:
    """A mistake on the command line in one sentence, with the command whose help says more."""
    error.verbose = False
    return f"{_sentence(error, app)} (see {' '.join(['gantline', *(error.command_chain or ()), '--help'])})"


def _sentence(error: CycloptsError, app: App) -> str:
    if isinstance(error, UnknownCommandError) and error.unused_tokens:
        name = error.unused_tokens[0]
        if name.startswith("-"):
            return f"no option '{name}'"
        known = [word for word in (error.app or app) if not word.startswith("-")]
        return f"no command '{name}', {near(name, known)}"
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return f"'{error.unused_tokens[0]}' is one argument too many"
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        if meant := _misspelt(error):
            return f"no option '{meant}', did you mean '{error.argument.name}'?"
        return f"{error.argument.name.lstrip('-') if error.argument.index is not None else error.argument.name} is missing"
    text = " ".join(str(error).split())
    if isinstance(error, UnknownOptionError):
        name = error.token.keyword or error.token.value
        known = [word for item in error.argument_collection for word in item.names if word.startswith("--")]
        close = get_close_matches(name, known, n=1, cutoff=0.6)
        return f"no option '{name}'" + (f", did you mean '{close[0]}'?" if close else "")
    return text[:1].lower() + text[1:].rstrip(".")


def _misspelt(error: MissingArgumentError) -> str:
    """The option that was probably meant to be the missing one."""
    given = [token.partition("=")[0] for token in error.root_input_tokens or () if token.startswith("--")]
    name = error.argument.name if error.argument is not None else ""
    return next((token for token in get_close_matches(name, given, n=1, cutoff=0.75) if token != name), "")


def _fail(message: str, code: int) -> int:
    if os.environ.get("GANTLINE_DEBUG"):
        traceback.print_exc()
    say(f"error: {message}" if code not in (INTERRUPTED, TERMINATED) else message)
    return code
