"""Who may do what: four roles, each with all rights of the one before it, and the role of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a token allows."""

    VIEWER = "viewer"  # sees the user's own jobs, and the machine
    SUBMITTER = "submitter"  # submits jobs, and controls the user's own
    OPERATOR = "operator"  # sees and controls all jobs, nodes, queues, and the policy
    ADMIN = "admin"  # tokens, and the end of the service
    JOB = "job"  # a job that reports its own progress, and nothing else
    ANYONE = "anyone"  # no token at all: only to log in


_RANKS = {Role.VIEWER: 1, Role.SUBMITTER: 2, Role.OPERATOR: 3, Role.ADMIN: 4}
NAMES = tuple(role.value for role in _RANKS)


@dataclass(frozen=True, slots=True)
class Caller:
    """The user or job that makes a request."""

    user: str
    role: Role
    job: str = ""  # the job that owns the token
    token: str = ""  # the id of the token, never the token
    expires: float | None = None  # seconds since 1970
    is_session: bool = False  # a browser's, which began with that token

    def may(self, role: Role) -> bool:
        """Whether it may do what needs that role."""
        if role is Role.ANYONE:
            return True
        if Role.JOB in (self.role, role):
            return self.role is role
        return _RANKS[self.role] >= _RANKS[role]

    def sees(self, user: str) -> bool:
        """Whether it may see and control jobs of that user."""
        return self.may(Role.OPERATOR) or (self.role is not Role.JOB and user == self.user)
