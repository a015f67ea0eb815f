"""What importers of FX graphs share: the values of nodes, and calls of PyTorch's functions.

A function has one emitter for all the ways to call it: as a function, as a method, as an operator of
ATen, and as a module.
"""

from __future__ import annotations

import inspect
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tvm import tir
from tvm.error import OpNotImplemented, TVMError
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Constant, ShapeExpr, Tuple, const
from tvm.relax.struct_info import TensorStructInfo, TupleStructInfo
from tvm.relay.frontend.pytorch.complex_tensors import Complex
from tvm.runtime.foreign.torch_call import to_numpy

Emitter: TypeAlias = Callable[..., Any]
EMITTERS: dict[str, Emitter] = {}  # by the name of PyTorch's function


class Sizes(tuple[Any, ...]):
    """The dimensions of a tensor: integers, and expressions of symbolic variables."""

    @property
    def are_known(self) -> bool:
        """Whether all of them are integers."""
        return all([isinstance(size, int) for size in self])


class NoEmitter(OpNotImplemented):
    """Relax's operators do not say what a call of PyTorch's does."""


def emitter(*names: str) -> Callable[[Emitter], Emitter]:
    """Declare how functions of these names are emitted; the importer comes first."""

    def declare(function: Emitter) -> Emitter:
        EMITTERS.update(dict.fromkeys(names, function))
        return function

    return declare


def is_tensor(value: Any) -> bool:
    """Whether a value of a node is an expression of relax."""
    return isinstance(value, RelayExpr) and not isinstance(value, PrimExpr)


def dtype_name(dtype: Any) -> str:
    """The name of an element type of PyTorch."""
    return str(dtype).removeprefix("torch.")


class BaseFXGraphImporter:
    """The values of the nodes of a graph, and the block that they are emitted into."""

    def __init__(self) -> None:
        self.env: dict[Any, Any] = {}
        self.params: dict[int, RelayExpr] = {}  # by identity of PyTorch's tensors
        self.block_builder = BlockBuilder()
        self.traced: Any = None  # what tracing found of the results of the node at hand

    # ---- values

    def emit(self, expr: Any) -> Any:
        """Bind an expression to a variable."""
        return self.block_builder.emit(expr)

    @staticmethod
    def dtype_of(tensor: Any) -> str:
        """The element type of a tensor."""
        return str(tensor.struct_info.dtype)

    @staticmethod
    def shape_of(tensor: Any) -> Sizes:
        """The dimensions of a tensor, integers where they are known."""
        info = tensor.struct_info
        if not isinstance(info, TensorStructInfo) or not isinstance(info.shape, ShapeExpr):
            raise TVMError(f"PyTorch's importers require tensors of known rank, got {info}")
        return Sizes([d.value if isinstance(d, tir.IntImm) else d for d in info.shape.values])

    def dimension(self, dim: Any) -> Any:
        """A dimension of PyTorch: an integer, for graphs whose symbols are not known."""
        if isinstance(dim, int):
            return dim
        raise OpNotImplemented(f"a dimension of {dim} is not supported")

    def constant(self, tensor: Any) -> RelayExpr:
        """A tensor of PyTorch: the parameter that it is, or a constant."""
        found = self.params.get(id(tensor))
        if found is None:
            found = const(to_numpy(tensor.detach()), dtype_name(tensor.dtype))
            self.params[id(tensor)] = found
        return found

    def retrieve_args(self, node: Any) -> list[Any]:
        """The positional arguments of a node as values."""
        return [self.value(arg) for arg in node.args]

    def value(self, arg: Any) -> Any:
        """An argument with the values of nodes in their places."""
        if type(arg).__name__ == "Node":
            return self.env[arg]
        if isinstance(arg, (list, tuple)):
            return [self.value(item) for item in arg]
        if isinstance(arg, dict):
            return {key: self.value(item) for key, item in arg.items()}
        if isinstance(arg, slice):
            return slice(*[self.value(v) for v in (arg.start, arg.stop, arg.step)])
        return self.constant(arg) if hasattr(arg, "detach") else arg

    def as_expr(self, value: Any) -> Any:
        """A value of a node as an expression; lists as tuples."""
        if isinstance(value, Sizes):
            return ShapeExpr(value)
        if isinstance(value, (list, tuple)):
            return Tuple([self.as_expr(item) for item in value])
        if isinstance(value, Complex):
            raise OpNotImplemented(
                "relax has no complex numbers, which the model returns",
                hint="return torch.view_as_real(x)",
            )
        return value

    # ---- nodes

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """The value of a call of PyTorch's function of that name."""
        found = EMITTERS.get(name) or EMITTERS.get(name.removesuffix("_"))
        if found is None:
            raise NoEmitter(f"PyTorch's {name} has no operators of relax")
        given = dict(kwargs)
        if "input" in given:
            args = [given.pop("input"), *args]
        try:
            bound = inspect.signature(found).bind(self, *args, **given)
        except TypeError as error:
            raise NoEmitter(f"{name} has no emitter for its arguments: {error}") from error
        return found(*bound.args, **bound.kwargs)

    def write_back(self, name: str, node: Any) -> None:
        """The tensor that a function writes to in place has its result from now on."""
        is_written = name.endswith("_") and not name.endswith("__") and name not in _OPERATORS
        if (is_written or name in _IN_PLACE) and node.args:
            target = node.args[0]
            if type(target).__name__ == "Node":
                self.env[target] = self.env[node]

    def getitem(self, value: Any, index: Any) -> Any:
        """A field of a tuple, or a part of a tensor."""
        if not is_tensor(value):
            return value[index]
        if isinstance(value, Tuple):
            return value.fields[index]
        if isinstance(value.struct_info, TupleStructInfo):
            return self.emit(value[operator.index(index)])
        return self.call("getitem", [value, index], {})

    def output(self, value: Any, unwrap_unit: bool, no_bind: bool) -> Any:
        """Emit what a graph returns, which ends its dataflow block."""
        if not isinstance(value, (tuple, list, Tuple)) or isinstance(value, Sizes):
            return self.block_builder.emit_output(self.as_expr(value))
        fields = list(value.fields) if isinstance(value, Tuple) else list(value)
        if unwrap_unit and len(fields) == 1:
            return self.block_builder.emit_output(self.as_expr(fields[0]))
        if no_bind:
            return [self.block_builder.emit_output(self.as_expr(field)) for field in fields]
        return self.block_builder.emit_output(self.as_expr(fields))


# of Python's module operator: those with names of Python's words, and those that write
_OPERATORS = ("and_", "or_", "not_", "is_")
_IN_PLACE = ("iadd", "isub", "imul", "itruediv", "ifloordiv", "ipow")


def scalar(value: Any) -> Any:
    """A constant of one element as a number; other values as they are."""
    if isinstance(value, Constant) and not value.data.shape:
        return value.data.numpy().item()
    return value
