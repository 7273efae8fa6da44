"""All policies by name: general ones, those of published systems, and what installed packages bring (group ``gantline.policies``).

A new general policy is one file and one line here; one of a published system stands in the manifest of that system.
"""

from __future__ import annotations

from typing import Any

from gantline.core.errors import GantlineError, UsageError
from gantline.core.fields import key_values
from gantline.core.policy import Policy, build
from gantline.registry import Register

_POLICIES = Register(
    "policies",
    {
        "fifo": "gantline.policies.fifo:Fifo",
        "sjf": "gantline.policies.order:ShortestJobFirst",
        "srtf": "gantline.policies.order:ShortestRemainingTimeFirst",
        "srsf": "gantline.policies.order:ShortestRemainingServiceFirst",
        "smallest": "gantline.policies.order:SmallestFirst",
        "las": "gantline.policies.order:LeastAttainedService",
        "equal-share": "gantline.policies.elastic.policies:EqualShare",
        "fair-share": "gantline.policies.fair_share:FairShare",
        "recorded": "gantline.policies.recorded:Recorded",
        "sharing": "gantline.policies.sharing:Sharing",
    },
    where="--policy",
    aliases={"auto": "synthesizer"},
)


def policy_names() -> list[str]:
    """Every registered name, our own and those of installed packages."""
    return sorted(_POLICIES.entries())


def find_policy(name: str) -> type[Policy]:
    """The class behind a name."""
    return _checked(_POLICIES.load(name), name)


def make_policy(name: str, settings: dict[str, Any] | None = None) -> Policy:
    """A policy by name with its parameters."""
    return build(find_policy(name), settings or {})


def inner_policy(text: str, outer: str, parameter: str) -> Policy:
    """The policy that a parameter of another one names, with parameters of its own: ``tiresias limits=3600,36000``."""
    where = f"policy '{outer}': parameter '{parameter}'"
    name, _, settings = text.strip().partition(" ")
    if name == outer:
        raise UsageError(f"it cannot be its own {parameter}", where=f"policy '{outer}'", fix=f"--set {parameter}=fifo")
    try:
        return make_policy(name, dict(key_values(settings.split(), where)))
    except GantlineError as error:
        error.where = where
        raise


def _checked(found: Any, name: str) -> type[Policy]:
    if not (isinstance(found, type) and issubclass(found, Policy)):
        raise UsageError(f"'{name}' is a {type(found).__name__}, not a policy class", fix="derive it from gantline.Policy")
    return found
