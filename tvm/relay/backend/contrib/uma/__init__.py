"""Universal modular accelerators: a back end of one's own in a few registrations."""

from .api import PassPhase, UMACodegen, UMALower, UMAPartitioner
from .api.utils import uma_available
from .backend import UMABackend

__all__ = [
    "PassPhase",
    "UMABackend",
    "UMACodegen",
    "UMALower",
    "UMAPartitioner",
    "uma_available",
]
