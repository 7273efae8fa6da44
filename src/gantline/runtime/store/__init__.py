"""What must outlive the service: jobs, the journal of inputs, events, checkpoints, tokens, queues."""

from gantline.runtime.store.connection import Lock, StoreError
from gantline.runtime.store.rows import QueueRow, TokenRow
from gantline.runtime.store.store import SqlStore
from gantline.runtime.store.writing import Transaction

__all__ = ["Lock", "QueueRow", "SqlStore", "StoreError", "TokenRow", "Transaction"]
