"""PyTorch's models as modules of relax."""

from . import arrangement, neural_network, ordering, pointwise, positions, symbolic
from .dynamo import dynamo_capture_subgraphs, relax_dynamo
from .exported_program_translator import from_exported_program
from .fx_translator import from_fx

__all__ = ["dynamo_capture_subgraphs", "from_exported_program", "from_fx", "relax_dynamo"]
