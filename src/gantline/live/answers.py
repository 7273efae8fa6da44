"""Answers that a thread waits for: the thread that owns the engine gives them, as results of futures."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, TypeVar

from gantline.core.errors import RefusedError, UnreachableError

Answer = TypeVar("Answer")
_LONGEST_WAIT = 60.0  # seconds that a thread waits for an answer


def settle(future: Future[Any], error: BaseException | None, value: Any) -> None:
    """Set a future's result or error."""
    if error is None:
        future.set_result(value)
    elif isinstance(error, OSError):
        future.set_exception(RefusedError(f"the store cannot be written: {error}", where="store", fix="is the disk full?"))
    else:
        future.set_exception(error)


def copy_result(source: Future[Any], target: Future[Any]) -> None:
    """Copy the result or error of one future to another, unless that has been told meanwhile that the service has ended."""
    if target.done():
        return
    error = source.exception()
    if error is not None:
        target.set_exception(error)
    else:
        target.set_result(source.result())


def wait(future: Future[Answer]) -> Answer:
    """The result, if it comes in time."""
    try:
        return future.result(_LONGEST_WAIT)
    except TimeoutError:
        raise UnreachableError(
            "the scheduler has not answered in time", where="scheduler", fix="ask again; requests with an id are safe"
        ) from None
