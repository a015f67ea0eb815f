"""Networks and helpers for tests, under their classic names."""

from __future__ import annotations

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.prelude import Prelude
from tvm.relay.transform import InferType
from tvm.relay.traverse import post_order
from tvm.support.later import names_from_above

from . import (
    byoc,
    darknet,
    dcgan,
    densenet,
    dqn,
    inception_v3,
    init,
    layers,
    lstm,
    mlp,
    mobilenet,
    nat,
    py_converter,
    resnet,
    resnet_3d,
    squeezenet,
    synthetic,
    temp_op_attr,
    vgg,
    yolo_detection,
)
from .grad_check import _np_randn_from_type, check_grad
from .init import create_workload
from .nat import count, make_nat_expr, make_nat_value
from .py_converter import run_as_python, to_python


def run_opt_pass(expr: RelayExpr, opt_pass: Pass, import_prelude: bool = False) -> RelayExpr:
    """`expr` after one pass; a body if it was no function."""
    if not isinstance(opt_pass, Pass):
        raise TypeError(f"run_opt_pass requires a pass, got {type(opt_pass).__name__}")
    mod = IRModule.from_expr(expr)
    if import_prelude:
        Prelude(mod)
    mod = opt_pass(InferType()(mod))
    main = mod["main"]
    result: RelayExpr = main if isinstance(expr, Function) else main.body
    return result


def run_infer_type(expr: RelayExpr) -> RelayExpr:
    """`expr` with its types."""
    return run_opt_pass(expr, InferType())


def rand(dtype: str, *shape: int) -> nd.NDArray:
    """Random elements between 0 and 1."""
    return nd.array(np.random.rand(*shape).astype(dtype))


def count_ops(expr: RelayExpr) -> dict[str, int]:
    """How often each operator is called."""
    counts: dict[str, int] = {}
    for node in post_order(expr):
        if isinstance(node, Call) and isinstance(node.op, Op):
            counts[node.op.name] = counts.get(node.op.name, 0) + 1
    return counts


__all__ = [
    "_np_randn_from_type",
    "byoc",
    "check_grad",
    "count",
    "count_ops",
    "create_workload",
    "darknet",
    "dcgan",
    "densenet",
    "dqn",
    "inception_v3",
    "init",
    "layers",
    "lstm",
    "make_nat_expr",
    "make_nat_value",
    "mlp",
    "mobilenet",
    "nat",
    "py_converter",
    "rand",
    "resnet",
    "resnet_3d",
    "run_as_python",
    "run_infer_type",
    "run_opt_pass",
    "squeezenet",
    "synthetic",
    "temp_op_attr",
    "to_python",
    "vgg",
    "yolo_detection",
]

__getattr__ = names_from_above(__name__)
