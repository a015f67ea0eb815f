"""Relay's operators: one block each, exposed as `relay.add`, `relay.nn.conv2d` and so on."""

from tvm.ir.op import Op

from . import (
    adjoints,
    algorithm,
    annotation,
    argument_types,
    call,
    compositions,
    dyn,
    gradients,
    image,
    linalg,
    memory,
    nn,
    op,
    op_attrs,
    places,
    random,
    reduce,
    sampling,
    separable,
    tensor,
    transform,
    vision,
    vm,
)
from .algorithm import argsort, searchsorted, sort, topk
from .marks import debug
from .op import (
    OpPattern,
    get,
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
from .reduce import *
from .strategy import OpImplementation, OpSpecialization, OpStrategy
from .strategy import generic as _generic_strategies
from .strategy import x86 as _x86_strategies
from .tensor import *
from .transform import *
