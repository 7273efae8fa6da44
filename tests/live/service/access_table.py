"""Who may do what, as a table of docs/access.md: made from what the service answers, route by route and role by role."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "access.md"
ROLES = ("viewer", "submitter", "operator", "admin", "job")
_BEGIN, _END = "<!-- table: made by tests/live/service/test_roles.py -->", "<!-- end of table -->"


def table(statuses: Mapping[tuple[str, str], Mapping[str, int]]) -> str:
    """`statuses`: what each (method, path) answers to each role; 401 and 403 are refusals."""
    lines = [f"| route | no token | {' | '.join(ROLES)} |", f"|---|{'---|' * (len(ROLES) + 1)}"]
    for (method, path), told in sorted(statuses.items(), key=lambda one: (one[0][1], one[0][0])):
        cells = ["yes" if told[role] not in (401, 403) else str(told[role]) for role in ("none", *ROLES)]
        lines.append(f"| `{method} {path}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def committed() -> str:
    """The table of the page."""
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(_BEGIN)[2].partition(_END)[0].strip()


def write(new: str) -> None:
    """Put it onto the page."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(_BEGIN)
    PAGE.write_text(f"{before}{_BEGIN}\n\n{new}\n\n{_END}{rest.partition(_END)[2]}", encoding="utf-8")
