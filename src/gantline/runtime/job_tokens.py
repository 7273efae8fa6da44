"""The token of a job: made from the home's secret and the job's id, so that nothing has to be stored and a restart gives the same one."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from pathlib import Path

PREFIX = "glj_"


class JobTokens:
    """Makes and checks the tokens with which jobs report their own progress, and nothing else."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @staticmethod
    def at(path: Path) -> JobTokens:
        """From the secret in a file for its owner alone, which is made if it is not there."""
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return JobTokens(path.read_bytes())
        with open(descriptor, "wb") as file:
            secret = secrets.token_bytes(32)
            file.write(secret)
            file.flush()
            os.fsync(file.fileno())
        return JobTokens(secret)

    def token(self, job: str) -> str:
        """The token of a job."""
        return f"{PREFIX}{job}.{hmac.new(self._secret, job.encode(), hashlib.sha256).hexdigest()}"

    def job_of(self, token: str) -> str | None:
        """The job that a token belongs to; None: it is of nobody."""
        job, sign, _ = token.removeprefix(PREFIX).rpartition(".")
        known = bool(sign) and token.startswith(PREFIX) and hmac.compare_digest(token.encode(), self.token(job).encode())
        return job if known else None
