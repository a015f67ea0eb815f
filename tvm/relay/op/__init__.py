"""Relay's operators: one block each, exposed as `relay.add`, `relay.nn.conv2d` and so on."""

from tvm.ir.op import Op

from . import (
    advanced_indexing,
    algorithm,
    annotation,
    broadcasting,
    call,
    creation,
    distinct,
    dyn,
    fixed_point,
    hints,
    image,
    indexing,
    joining,
    linalg,
    memory,
    nn,
    op,
    op_attrs,
    random,
    reduce,
    scan,
    scatter,
    segments,
    sequence,
    shaping,
    signal,
    slicing,
    sparse,
    tensor,
    transform,
    vision,
    vm,
)

# isort: split
from .algorithm import argsort as argsort
from .algorithm import searchsorted as searchsorted
from .algorithm import sort as sort
from .algorithm import topk as topk
from .hints import debug
from .op import (
    OpPattern,
    register,
    register_alter_op_layout,
    register_broadcast_schedule,
    register_compute,
    register_convert_op_layout,
    register_fake_quantization_to_integer,
    register_gradient,
    register_infer_correct_layout,
    register_injective_schedule,
    register_legalize,
    register_mixed_precision_conversion,
    register_optional_fake_quantization_to_integer,
    register_pattern,
    register_schedule,
    register_shape_func,
    register_stateful,
    register_strategy,
)
from .op import get as get
from .reduce import *
from .strategy import OpImplementation, OpSpecialization, OpStrategy
from .strategy import generic as _generic_strategies
from .strategy import x86 as _x86_strategies
from .tensor import *
from .transform import *
