"""What must outlive the service: jobs, the journal of inputs, events, checkpoints, tokens, queues."""

from gantline.runtime.store.connection import Lock, LostStoreError, StoreError
from gantline.runtime.store.rows import QueueRow, TokenRow
from gantline.runtime.store.store import SqlStore
from gantline.runtime.store.writing import RESTORED, Transaction, number_of

__all__ = ["RESTORED", "Lock", "LostStoreError", "QueueRow", "SqlStore", "StoreError", "TokenRow", "Transaction", "number_of"]
