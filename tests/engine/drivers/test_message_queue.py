"""Messages to a live loop: which of them enter together."""

from __future__ import annotations

from gantline.live.wall_time import Message, MessageQueue


class Still:
    """A clock that stands."""

    def now(self) -> float:
        return 0.0


def test_what_came_behind_a_message_that_enters_alone_waits_until_that_has_been_taken_up() -> None:
    """A cancel must see the submissions before it, and what is submitted behind it must see the cancel."""
    queue = MessageQueue(Still())
    for name in ("submit a", "submit b", "cancel a", "submit behind a", "submit c"):
        queue.post(Message(notes=[name], alone=name.startswith("cancel")))
    taken = [[message.notes[0] for message in queue.take()] for _ in range(4)]
    assert taken == [["submit a", "submit b"], ["cancel a"], ["submit behind a", "submit c"], []]
