"""What must outlive the service: jobs, the journal of inputs, events, decisions, checkpoints, tokens, queues."""

from gantline.runtime.store.connection import StoreError
from gantline.runtime.store.records import Checkpoint, Decision, Entry, Event, History, JobRecord, QueueRecord, Request, TokenRecord
from gantline.runtime.store.store import Store
from gantline.runtime.store.writing import Transaction

__all__ = [
    "Checkpoint",
    "Decision",
    "Entry",
    "Event",
    "History",
    "JobRecord",
    "QueueRecord",
    "Request",
    "Store",
    "StoreError",
    "TokenRecord",
    "Transaction",
]
