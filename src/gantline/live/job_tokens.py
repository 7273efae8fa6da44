"""The token of a job: made from the home's secret and the job's id, so that nothing has to be stored and a restart gives the same one."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
from pathlib import Path

from gantline.core.errors import RefusedError

PREFIX = "glj_"
_LENGTH = 32  # bytes of a secret


class JobTokens:
    """Makes and checks the tokens with which jobs report their own progress, and nothing else."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    @staticmethod
    def at(path: Path) -> JobTokens:
        """From the secret in a file for its owner alone, which is made if it is not there."""
        if not path.exists():
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(secrets.token_bytes(_LENGTH))
                file.flush()
                os.fsync(file.fileno())
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)  # whole or not at all
            draft.unlink()
        secret = path.read_bytes()
        if len(secret) < _LENGTH:
            raise RefusedError(
                f"has {len(secret)} bytes instead of {_LENGTH}: anyone with such a secret could report for any job",
                where=str(path), fix="delete it; running jobs then cannot report, and go on",
            )  # fmt: skip
        return JobTokens(secret)

    def signature(self, text: str) -> str:
        """The signature of a text with the secret."""
        return hmac.new(self._secret, text.encode(), hashlib.sha256).hexdigest()

    def token(self, job: str) -> str:
        """The token of a job."""
        return f"{PREFIX}{job}.{self.signature(job)}"

    def job_of(self, token: str) -> str | None:
        """The job that a token belongs to; None: no job's."""
        job, sign, _ = token.removeprefix(PREFIX).rpartition(".")
        known = bool(sign) and token.startswith(PREFIX) and hmac.compare_digest(token.encode(), self.token(job).encode())
        return job if known else None
