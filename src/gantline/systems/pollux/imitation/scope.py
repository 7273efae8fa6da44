"""What Pollux' simulator reads."""

from gantline.engine.imitations.registry import Scope

SCOPE = Scope(
    "Pollux' simulator",
    frozenset({"round", "profiles"}),
    {
        "optimus": ("interference",),
        "pollux": ("p", "restart", "avoid", "size", "generations", "fit", "interference"),
        "tiresias": ("limits", "interference"),
    },
)
