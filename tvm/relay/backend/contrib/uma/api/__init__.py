"""The three steps of a back end: partition the graph, lower its parts, generate their code."""

from .codegen import UMACodegen
from .lower import UMALower
from .partitioner import UMAPartitioner
from .utils import PassPhase

__all__ = ["PassPhase", "UMACodegen", "UMALower", "UMAPartitioner"]
