"""Universal modular accelerators: a back end of one's own in a few registrations."""

from .api import PassPhase, UMACodegen, UMALower, UMAPartitioner
from .backend import UMABackend


def uma_available() -> bool:
    """Whether back ends can be registered; always, here."""
    return True


__all__ = [
    "PassPhase",
    "UMABackend",
    "UMACodegen",
    "UMALower",
    "UMAPartitioner",
    "uma_available",
]
