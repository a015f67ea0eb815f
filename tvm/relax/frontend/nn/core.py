"""Models as Python classes: modules with parameters, whose methods emit operators of relax.

class Layer(nn.Module):
    def __init__(self):
        self.weight = nn.Parameter((8, 4), "float32")

    def forward(self, x: nn.Tensor) -> nn.Tensor:
        return nn.op.relu(nn.op.matmul(x, self.weight))

mod, params = Layer().export_tvm({"forward": {"x": nn.spec.Tensor(("n", 8), "float32")}})
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tvm._ffi.runtime_ctypes import Device
from tvm.ir.expr import PrimExpr, RelayExpr
from tvm.relax.base import StructInfo
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Tuple as RelaxTuple
from tvm.relax.expr import TupleGetItem, Var, const
from tvm.relax.struct_info import (
    ObjectStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tvm.runtime.device import device as as_device
from tvm.runtime.ndarray import NDArray, array
from tvm.support.later import names_from_above
from tvm.tir import Var as TirVar
from tvm.tir.expr import IntImm

from .spec import ModuleSpec
from .subroutine import SubroutineMixin
from .tensor_operators import TensorOperators

# what needs modules itself: `Exporter`, `compile_module`
_later = names_from_above(__name__)
_default_dtype: list[str] = ["float32"]


def get_default_dtype() -> str:
    """The data type of parameters that name none."""
    return _default_dtype[0]


def set_default_dtype(dtype: str) -> None:
    """Set the data type of parameters that name none."""
    _default_dtype[0] = dtype


class Tensor(TensorOperators):
    """A tensor of a model: an expression of relax.

    Parameters
    ----------
    _expr : relax.Expr
        The expression, whose struct info is that of a tensor.
    """

    def __init__(self, *, _expr: Any) -> None:
        if not isinstance(_expr.struct_info_, TensorStructInfo):
            raise TypeError(f"a Tensor needs a tensor, got {_expr} which is {_expr.struct_info_}")
        self._expr = _expr

    @staticmethod
    def from_const(data: Any) -> Tensor:
        """A constant tensor of an array or of numbers; 64 bits become 32."""
        values = data.numpy() if isinstance(data, NDArray) else np.asarray(data)
        narrow = {"float64": "float32", "int64": "int32"}.get(values.dtype.name)
        return Tensor(_expr=const(values, narrow))

    @staticmethod
    def from_scalar(data: float, dtype: str) -> Tensor:
        """A constant tensor without axes."""
        return Tensor(_expr=const(data, dtype=dtype))

    @staticmethod
    def from_struct_info(struct_info: TensorStructInfo, name: str = "tensor") -> Tensor:
        """A tensor of which only the struct info is known."""
        return Tensor(_expr=Var(name, struct_info))

    @staticmethod
    def placeholder(shape: Sequence[Any], dtype: str, name: str = "tensor") -> Tensor:
        """A tensor of that shape, whose extents may be integers, expressions or names of variables."""
        extents = [TirVar(e, "int64") if isinstance(e, str) else e for e in shape]
        return Tensor(_expr=Var(name, TensorStructInfo(extents, dtype)))

    @property
    def shape(self) -> list[Any]:
        """The extents: integers, or expressions over symbolic variables."""
        return [int(e.value) if isinstance(e, IntImm) else e for e in self._expr.struct_info.shape]

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return int(self._expr.struct_info.ndim)

    @property
    def dtype(self) -> str:
        """The data type of the elements."""
        return str(self._expr.struct_info.dtype)

    def __repr__(self) -> str:
        return f'Tensor({self.shape}, "{self.dtype}")'


class Parameter(Tensor):
    """A tensor that a module keeps, with or without a value.

    Parameters
    ----------
    shape : sequence of int or str
        The extents; texts name symbolic variables.
    dtype : str, optional
        The data type; by default `get_default_dtype`.
    """

    _data: NDArray | None

    def __init__(self, shape: Sequence[Any], dtype: str | None = None) -> None:
        kind = get_default_dtype() if dtype is None else dtype
        super().__init__(_expr=Tensor.placeholder(shape, kind, name="param")._expr)
        self._data = None
        self.attrs: OrderedDict[str, Any] = OrderedDict()

    @property
    def data(self) -> NDArray | None:
        """The value; None if it is not known."""
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        if data is None:
            self._data = None
            return
        if hasattr(data, "detach"):  # of PyTorch
            data = data.detach().cpu().contiguous().numpy()
        value = data if isinstance(data, NDArray) else array(np.ascontiguousarray(data))
        if list(value.shape) != self.shape:
            raise ValueError(f"the parameter's shape is {self.shape}, got {list(value.shape)}")
        if str(value.dtype) != self.dtype:
            raise ValueError(f"the parameter's dtype is {self.dtype}, got {value.dtype}")
        self._data = value

    def to(self, dtype: str | None = None) -> None:
        """Change the data type of a parameter that has no value."""
        if dtype is None:
            return
        if self._data is not None:
            raise ValueError("the data type of a parameter with a value cannot be changed")
        self._expr = Tensor.placeholder(self.shape, dtype, name="param")._expr


class Object:
    """Any value of the virtual machine, such as a cache.

    Parameters
    ----------
    _expr : relax.Expr
    _name : str
        The variable that it is bound to.
    """

    def __init__(self, *, _expr: RelayExpr, _name: str) -> None:
        if not isinstance(_expr, Var):
            _expr = current_builder().emit(_expr, _name)
        self._expr = _expr


class Effect:
    """State that outlives a call: it is an argument and a result of each method."""

    def emit_init(self, name_hint: str, builder: BlockBuilder) -> list[Any]:
        """Emit the first value of the state."""
        raise NotImplementedError

    def create(self, name_hint: str) -> list[Var]:
        """The variables that stand for the state at the beginning of a method."""
        raise NotImplementedError

    def set_state(self, state_vars: list[Var]) -> None:
        """Set the variables that stand for the state."""
        raise NotImplementedError

    def finalize(self) -> list[Var]:
        """The variables that stand for the state at the end of a method."""
        raise NotImplementedError

    def to(self, dtype: str | None = None) -> None:
        """Change the data type of the state, if it has one."""


class Module(SubroutineMixin):
    """A part of a model: its attributes are parameters, states and other modules."""

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Parameter]]:
        """The parameters, those of modules within too, by dotted names."""
        yield from attributes_of(self, prefix, lambda x: isinstance(x, Parameter))

    def parameters(self) -> Iterator[Parameter]:
        """The parameters, those of modules within too."""
        for _, param in self.named_parameters():
            yield param

    def state_dict(
        self, *, prefix: str = "", destination: dict[str, Parameter] | None = None
    ) -> dict[str, Parameter]:
        """The parameters by dotted names, as a dict."""
        found = OrderedDict() if destination is None else destination
        for name, param in self.named_parameters(prefix=prefix):
            found[name] = param
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True
    ) -> tuple[list[str], list[str]]:
        """Set the values of parameters.

        Parameters
        ----------
        state_dict : dict of str to NDArray, Parameter or array
            The values.
        strict : bool
            Whether names that are missing or not expected are an error.

        Returns
        -------
        (list of str, list of str)
            The names that are missing, and those that were not expected.
        """
        own = self.state_dict()
        missing = [name for name in own if name not in state_dict]
        unexpected = [name for name in state_dict if name not in own]
        if strict and (missing or unexpected):
            raise KeyError(f"Missing keys: {missing}, unexpected keys: {unexpected}")
        for name, value in state_dict.items():
            if name in own:
                given = value.data if isinstance(value, Parameter) else value
                if given is None:
                    raise ValueError(f"the parameter {name} has no value")
                own[name].data = given
        return missing, unexpected

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not hasattr(self, "forward"):
            raise NotImplementedError(f"{type(self).__name__} has no method 'forward'")
        return self.forward(*args, **kwargs)

    def to(self, dtype: str | None = None) -> None:
        """Change the data type of all parameters and states."""
        for item in self.__dict__.values():
            if hasattr(item, "to") and callable(item.to):
                item.to(dtype=dtype)
        if dtype is not None and isinstance(getattr(self, "dtype", None), str):
            self.dtype = dtype

    def export_tvm(self, spec: Any, debug: bool = False, allow_extern: bool = False) -> Any:
        """The module of relax with the methods that are specified.

        Parameters
        ----------
        spec : ModuleSpec or dict of str to dict
            By the method, what its arguments are: ``{"forward": {"x": spec.Tensor(...)}}``.
        debug : bool
            Whether methods take and return the state of input and output, for ``print_``.
        allow_extern : bool
            Whether the modules of other languages are returned, too.

        Returns
        -------
        (IRModule, list of (str, Parameter))
            The module, and the parameters in the order in which functions take them; with
            ``allow_extern``, the modules of other languages at last.
        """
        found = spec if isinstance(spec, ModuleSpec) else ModuleSpec.from_raw(spec, self)
        mod, params, externals = _later("Exporter")(debug=debug).build(found)
        if allow_extern:
            return mod, params, externals
        if externals:
            raise ValueError("the model uses modules of other languages: pass allow_extern=True")
        return mod, params

    def jit(
        self,
        spec: Any,
        device: str | Device = "cpu",
        pipeline: Any = "default_build",
        out_format: str = "torch",
        debug: bool = False,
    ) -> Any:
        """The model compiled, to be called with tensors of PyTorch.

        Parameters
        ----------
        spec : ModuleSpec or dict
            As of `export_tvm`.
        device : str or Device
            Where it runs.
        pipeline : str or Pass
            As of `tvm.relax.build`.
        out_format : str
            ``"torch"``.
        debug : bool
            As of `export_tvm`.
        """
        place = device if isinstance(device, Device) else as_device(device)
        return _later("compile_module")(self, spec, place, pipeline, out_format, debug)


class ModuleList(Module):
    """Modules in a row.

    Parameters
    ----------
    modules : list of Module
    """

    def __init__(self, modules: Sequence[Module]) -> None:
        self.modules = list(modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self.modules)

    def __getitem__(self, idx: int) -> Module:
        return self.modules[idx]

    def __setitem__(self, idx: int, module: Module) -> None:
        self.modules[idx] = module

    def __len__(self) -> int:
        return len(self.modules)

    def append(self, module: Module) -> None:
        """Add a module at the end."""
        self.modules.append(module)

    def to(self, dtype: str | None = None) -> None:
        """Change the data type of all modules."""
        for module in self.modules:
            module.to(dtype=dtype)

    def forward(self, x: Any) -> Any:
        """One module after the other."""
        for module in self.modules:
            x = module(x)
        return x


def attributes_of(
    root: Module, prefix: str, wanted: Callable[[Any], bool]
) -> Iterator[tuple[str, Any]]:
    """What modules keep, by dotted names, in the order in which it was set."""
    if isinstance(root, ModuleList):
        for i, module in enumerate(root):
            yield from attributes_of(module, f"{prefix}{i}.", wanted)
        return
    for name, item in root.__dict__.items():
        if wanted(item):
            yield f"{prefix}{name}", item
        elif isinstance(item, Module):
            yield from attributes_of(item, f"{prefix}{name}.", wanted)


def current_builder() -> BlockBuilder:
    """The builder of the method that is being exported."""
    builder = BlockBuilder.current()
    if builder is None:
        raise RuntimeError("operators of a model are called within a method that is exported")
    return builder


def wrap_nested(expr: RelayExpr, name: str) -> Any:
    """Bind an expression; the tensor, the object or the tuple of such that it is.

    Parameters
    ----------
    expr : relax.Expr
        The expression.
    name : str
        The name of the variable.
    """
    if not isinstance(expr, Var):
        expr = current_builder().emit(expr, name)
    info = expr.struct_info_
    if isinstance(info, TensorStructInfo):
        return Tensor(_expr=expr)
    if isinstance(info, TupleStructInfo):
        count = len(info.fields)
        return tuple([wrap_nested(TupleGetItem(expr, i), f"{name}.{i}") for i in range(count)])
    if isinstance(info, ObjectStructInfo):
        return Object(_expr=expr, _name=name)
    raise TypeError(f"a model's value is a tensor, an object or a tuple of such, got {info}")


def unwrap_nested(value: Any) -> Any:
    """The expression of a tensor, an object or a tuple of such."""
    if isinstance(value, (Tensor, Object)):
        return value._expr
    if isinstance(value, (tuple, list)):
        return RelaxTuple([unwrap_nested(item) for item in value])
    if isinstance(value, (RelayExpr, PrimExpr)):
        return value
    raise TypeError(f"a method returns tensors or tuples of such, got {type(value).__name__}")


__all__ = [
    "Effect", "Module", "ModuleList", "Object", "Parameter", "StructInfo", "Tensor",
    "get_default_dtype", "set_default_dtype", "wrap_nested",
]  # fmt: skip
