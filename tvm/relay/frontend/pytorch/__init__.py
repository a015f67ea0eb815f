"""The PyTorch importers: of TorchScript, and of programs of torch.export."""

from . import (
    attention,
    backward,
    composed,
    creation,
    detection,
    fft,
    fractional_pooling,
    histogram,
    integers,
    linalg,
    losses,
    movement,
    nn,
    pointwise,
    pooling,
    quantized,
    quantized_functions,
    quantized_layers,
    random,
    rare,
    recurrent,
    reduction,
    selection,
    sorting,
    special,
    strided,
    unique,
)
from .complex_tensors import accept_complex, accept_complex_types
from .exported import from_exported_program
from .importer import from_pytorch
from .registry import CONVERTERS
from .zero_dim_tensors import accept_scalars

accept_scalars(CONVERTERS)
accept_complex_types(CONVERTERS)
accept_complex(CONVERTERS)

__all__ = ["from_exported_program", "from_pytorch"]
