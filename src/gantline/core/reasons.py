"""Why a job waits, was stopped or was refused: codes from a closed list, turned into sentences on demand."""

from __future__ import annotations

from enum import IntEnum


class Reason(IntEnum):
    """Codes are stored in columns and logs; `sentence` is for people."""

    NONE = 0
    ARRIVED = 1  # has just arrived, not looked at yet
    RESOURCES = 2  # not enough free devices
    PRIORITY = 3  # others rank higher
    FRAGMENTED = 4  # enough devices, but not where the placement wants them
    BLOCKED = 5  # behind a job that does not fit, and the policy keeps the order strictly
    NO_SUCH_TYPE = 6  # asks for a type the cluster does not have
    TOO_LARGE = 7  # larger than the whole cluster
    QUOTA = 8  # its user or queue is at the quota, and may not borrow more now
    LOAD_LIMIT = 9  # admission waits until the load falls
    HELD = 10  # kept out until it is released
    DEFERRED = 11  # the policy chose not to run it now
    PREEMPTED = 12  # stopped for a job that ranks higher
    MOVED = 13
    RESIZED = 14
    NODE_LOST = 15
    FINISHED = 16
    STALE = 17  # the plan was made for a state that is gone
    INFEASIBLE = 18  # the plan asked for what cannot be given
    LEASE_ENDED = 19
    REFUSED = 20  # refused at admission, with a counter-offer where there is one
    END = 21  # the simulation ended here
    POLICY_FAILED = 22  # the policy lost its turn before it looked at the job
    CANCELLED = 23
    LIMIT = 24  # a run limit (profiling) was reached
    REQUEUED = 25
    OVER_QUOTA = 26  # larger than its queue may ever hold
    LOSS = 27  # completed before its work was done, because its loss said so
    WINDOW = 28  # devices are reserved for a window
    TURN = 29  # others of its rotation have their turn
    TOGETHER = 30  # its group starts whole or not at all, and another member may not start
    DEVICE_MEMORY = 31  # too little device memory is left beside those that it would share with
    ONE_GANG = 32  # the plan has it on devices of others, and the executor puts one gang on a device
    CPUS = 33  # enough devices, but the CPUs beside them are taken
    MEMORY = 34  # likewise the memory of their nodes
    STORAGE = 35  # likewise the storage bandwidth


_SENTENCES = {
    Reason.NONE: "nothing stands in its way",
    Reason.ARRIVED: "has arrived and waits for the next decision",
    Reason.RESOURCES: "not enough free devices",
    Reason.PRIORITY: "jobs that rank higher take the devices",
    Reason.FRAGMENTED: "enough devices are free, but not together as its placement wants them",
    Reason.BLOCKED: "waits behind a job that does not fit, because the policy keeps the order strictly",
    Reason.NO_SUCH_TYPE: "asks for a device type that the cluster does not have",
    Reason.TOO_LARGE: "asks for more devices than the cluster has",
    Reason.QUOTA: "its user or queue is at the quota, and there is nothing that it may borrow",
    Reason.LOAD_LIMIT: "admission waits until the load on the cluster falls",
    Reason.HELD: "is held until it is released",
    Reason.DEFERRED: "the policy chose not to run it now",
    Reason.PREEMPTED: "was stopped for a job that ranks higher",
    Reason.MOVED: "was moved to other devices",
    Reason.RESIZED: "was given another number of devices",
    Reason.NODE_LOST: "lost a node",
    Reason.FINISHED: "finished",
    Reason.STALE: "the plan was made for a state that no longer holds",
    Reason.INFEASIBLE: "the plan asked for what the cluster cannot give",
    Reason.LEASE_ENDED: "its lease ended",
    Reason.REFUSED: "was refused at admission",
    Reason.END: "the simulation ended while it ran",
    Reason.POLICY_FAILED: "the policy lost its turn, the last valid plan stands",
    Reason.CANCELLED: "was cancelled",
    Reason.LIMIT: "reached the limit of its run",
    Reason.REQUEUED: "was put back into the queue",
    Reason.OVER_QUOTA: "asks for more devices than its queue may ever hold",
    Reason.LOSS: "was ended by its loss",
    Reason.WINDOW: "devices that it would have are reserved for a window",
    Reason.TOGETHER: "its group starts together, and another member has no place or is held back by a quota",
    Reason.TURN: "waits for its next turn in its rotation",
    Reason.ONE_GANG: "it would share devices, and the executor puts one gang on a device",
    Reason.CPUS: "enough devices are free, but CPUs of their nodes are taken",
    Reason.MEMORY: "enough devices are free, but memory of their nodes is taken",
    Reason.STORAGE: "enough devices are free, but storage bandwidth of their nodes is taken",
    Reason.DEVICE_MEMORY: "the devices that it would share have too little memory left",
}


def sentence(code: int) -> str:
    """The code in words."""
    return _SENTENCES[Reason(int(code))]


def slug(code: int) -> str:
    """The code as it appears in files: ``node-lost``."""
    return Reason(int(code)).name.lower().replace("_", "-")
