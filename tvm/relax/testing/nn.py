"""Small layers for tests, in a ``with bb.function(name):`` block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm import topi
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relax import op as _op
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Constant, Tuple, Var, as_expr
from tvm.relax.frontend.nn.subroutine import SubroutineMixin
from tvm.relax.struct_info import TensorStructInfo
from tvm.runtime.ndarray import NDArray, array
from tvm.tir.expr import IntImm


def _builder() -> BlockBuilder:
    builder = BlockBuilder.current()
    if builder is None:
        raise RuntimeError("layers are built within `with bb.function(name):`")
    return builder


def emit(expr: RelayExpr, name_hint: str = "") -> Var:
    """Bind an expression in the function that is being built."""
    return _builder().emit(expr, name_hint=name_hint)


def emit_te(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Var:
    """Bind the call of what a function of tensor expressions computes."""
    return _builder().emit_te(func, *args, **kwargs)


def _marked(value: Any) -> Any:
    """Variables and computed values among arguments, as begins of a checkpoint."""
    if isinstance(value, (list, tuple)):
        return type(value)([_marked(item) for item in value])
    if isinstance(value, RelayExpr) and not isinstance(value, Constant):
        return _op.grad.start_checkpoint(value)
    return value


def _ended(value: Any) -> Any:
    if isinstance(value, (list, tuple, Tuple)):
        return tuple([_ended(item) for item in value])
    return _op.grad.end_checkpoint(value)


def checkpoint(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a function gives, which the backward pass computes again instead of keeping values.

    Parameters
    ----------
    func : callable
        From expressions to an expression or several.
    args, kwargs
        Its arguments.
    """
    named = {name: _marked(value) for name, value in kwargs.items()}
    return _ended(func(*[_marked(arg) for arg in args], **named))


def emit_checkpoint(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """As `checkpoint`, each value bound in the function that is being built."""
    found = checkpoint(func, *args, **kwargs)
    return tuple([emit(f) for f in found]) if isinstance(found, tuple) else emit(found)


def emit_checkpoint_sequential(
    functions: Sequence[Callable[..., Any]],
    segments: int,
    input: Any,
    checkpoint_last: bool = False,
) -> Any:
    """Functions one after the other, in segments of which the backward pass keeps the inputs alone.

    Parameters
    ----------
    functions : list of callable
    segments : int
        The number of segments.
    input : Expr
        Of the first function.
    checkpoint_last : bool
        Whether the values of the last segment are computed again too.
    """
    size = len(functions) // segments

    def run(part: Sequence[Callable[..., Any]], value: Any) -> Any:
        for function in part:
            value = emit(function(value))
        return value

    for start in range(0, len(functions), size):
        part = functions[start : start + size]
        is_last = start + size >= len(functions)
        if is_last and not checkpoint_last:
            input = run(part, input)
        else:
            input = emit(_ended(run(part, emit(_marked(input)))))
    return input


class Placeholder(Var, key="relax.testing.Placeholder"):
    """An input of the function that is being built."""

    def __init__(self, shape: Sequence[Any], dtype: str = "float32", name: str = "data") -> None:
        super().__init__(_builder().get_unique_name(name), _info(shape, dtype))


class Parameter(Var, key="relax.testing.Parameter"):
    """A parameter of the function that is being built."""

    def __init__(self, shape: Sequence[Any], dtype: str = "float32", name: str = "param") -> None:
        super().__init__(_builder().get_unique_name(name), _info(shape, dtype))


def _info(shape: Sequence[Any], dtype: str) -> TensorStructInfo:
    return TensorStructInfo(list(shape), dtype)


class Module(SubroutineMixin):
    """A layer: its attributes are parameters and other layers."""

    def parameters(self) -> list[Var]:
        """All parameters, those of layers within too."""
        return _parameters(self.__dict__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def forward(self, input: Any) -> Any:
        """What the layer computes."""
        raise NotImplementedError(f"{type(self).__name__} has no method 'forward'")


def _parameters(value: Any) -> list[Var]:
    if isinstance(value, Parameter):
        return [value]
    if isinstance(value, Module):
        return value.parameters()
    if isinstance(value, dict):
        return [param for item in value.values() for param in _parameters(item)]
    if isinstance(value, (list, tuple)):
        return [param for item in value for param in _parameters(item)]
    return []


def init_params(mod: IRModule) -> list[NDArray]:
    """Random values of the parameters of ``main``, which have known shapes."""
    values = []
    for param in mod["main"].params:
        extents = [int(e.value) for e in param.struct_info.shape if isinstance(e, IntImm)]
        dtype = str(param.struct_info.dtype)
        values.append(array(np.random.rand(*extents).astype(dtype)))
    return values


class Sequential(Module):
    """One layer after the other."""

    def __init__(self, *modules: Module) -> None:
        self.modules = modules

    def forward(self, input: Any) -> Any:
        for module in self.modules:
            input = module(input)
        return input


class ReLU(Module):
    """The elements above zero, else zero."""

    def forward(self, input: Any) -> Any:
        return emit(_op.nn.relu(as_expr(input)))


class LogSoftmax(Module):
    """Logarithms of normalised exponentials."""

    def forward(self, input: Any) -> Any:
        return emit_te(topi.nn.log_softmax, input)


class Linear(Module):
    """``input @ weight + bias``.

    Parameters
    ----------
    in_features, out_features : int
        The extents.
    bias : bool
        Whether there is a bias.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter((in_features, out_features), name="linear_weight")
        self.bias = Parameter((out_features,), name="linear_bias") if bias else None

    def forward(self, input: Any) -> Any:
        product = emit(_op.matmul(input, self.weight))
        return product if self.bias is None else emit(_op.add(product, self.bias))
