"""The PyTorch importers: of TorchScript, and of programs of torch.export."""

from . import (
    attention,
    backward,
    creation,
    detection,
    fft,
    floating_point,
    histogram,
    indexing,
    linalg,
    losses,
    movement,
    nn,
    pointwise,
    pooling,
    products,
    quantized,
    quantized_functions,
    quantized_layers,
    random,
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
