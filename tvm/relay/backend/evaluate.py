"""Compile one operator call and run it on the host: what constant folding needs in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.contrib import utils
from tvm.driver import build_lowered
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.backend.kernels import lower_kernel
from tvm.relay.expr import Call, Tuple, Var
from tvm.relay.function import Function
from tvm.relay.ty import flat_types
from tvm.runtime.module import Module, load_module
from tvm.runtime.ndarray import NDArray
from tvm.target import Target

Kernel = Callable[[Sequence[Any]], "list[NDArray]"]


def evaluate_call(call: Call, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The results of an operator on arrays, one array a tensor argument."""
    return [out.numpy() for out in call_kernel(call)([nd.array(a) for a in arrays])]


def call_kernel(call: Call, target: Target | None = None) -> Kernel:
    """An operator call compiled: from the arrays of its tensor arguments to its results."""
    params: list[Var] = []
    args: list[RelayExpr] = []
    for arg in call.args:
        if isinstance(arg, Tuple):
            fields = [
                Var(f"p{len(params) + i}", infer_type_of(f)) for i, f in enumerate(arg.fields)
            ]
            params.extend(fields)
            args.append(Tuple(fields))
        else:
            params.append(Var(f"p{len(params)}", infer_type_of(arg)))
            args.append(params[-1])
    func = Function(params, call.replace(args=tuple(args)), None, None, {"Primitive": 1})
    infer_type_of(func)
    return compile_function(func, target or Target("llvm"))


def compile_function(func: Function, target: Target) -> Kernel:
    """Lower and compile one primitive function."""
    kernel = lower_kernel(func, "folded", target)
    module = runnable(build_lowered(IRModule({kernel.name: kernel.func}), target))
    types = flat_types(func.body.checked_type)

    def run(inputs: Sequence[Any]) -> list[NDArray]:
        outputs = [nd.empty(ty.concrete_shape, ty.dtype) for ty in types]
        module[kernel.name](*inputs, *outputs)
        return outputs

    return run


def runnable(module: Module, kernels: Module | None = None) -> Module:
    """A module that can be called: one whose kernels are C text is compiled and loaded."""
    if (kernels or module).type_key != "c":
        return module
    with utils.tempdir() as folder:
        path = folder.relpath("library.so")
        module.export_library(path)
        return load_module(path)
