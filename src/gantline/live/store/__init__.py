"""What must outlive the service: jobs, the journal of inputs, events, checkpoints, tokens, queues."""

from gantline.live.store.connection import Lock, LostStoreError, StoreError
from gantline.live.store.records import QueueRow, TokenRow
from gantline.live.store.store import SqlStore
from gantline.live.store.writing import RESTORED, Transaction, number_of

__all__ = ["RESTORED", "Lock", "LostStoreError", "QueueRow", "SqlStore", "StoreError", "TokenRow", "Transaction", "number_of"]
