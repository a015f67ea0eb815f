"""Models as Python classes, in the manner of PyTorch: ``from tvm.relax.frontend import nn``."""

from tvm.support.later import provide

from . import core, exporter, modules, op, spec, subroutine, torch, visitor
from .core import (
    Effect,
    Module,
    ModuleList,
    Object,
    Parameter,
    Tensor,
    get_default_dtype,
    set_default_dtype,
    wrap_nested,
)
from .exporter import Exporter, add_extern
from .extern import ExternModule, ObjectModule, SourceModule
from .modules import (
    GELU,
    Attention,
    Conv1D,
    Conv2D,
    Conv3D,
    ConvTranspose1D,
    Embedding,
    GroupNorm,
    Identity,
    IOEffect,
    KVCache,
    LayerNorm,
    Linear,
    ReLU,
    RMSNorm,
    SiLU,
    TimestepEmbedding,
    Timesteps,
)
from .op import *
from .subroutine import SubroutineMixin
from .torch import TorchModule
from .visitor import Mutator

_HERE = __name__
provide(
    f"{_HERE}.core",
    {"Exporter": f"{_HERE}.exporter:Exporter", "compile_module": f"{_HERE}.jit:compile_module"},
)
provide(f"{_HERE}.subroutine", {"call_subroutine": f"{_HERE}.subroutine_call:call_subroutine"})
provide(f"{_HERE}.tensor_operators", {"operators": f"{_HERE}.op"})
