"""What the arguments of a model's methods are.

    {"forward": {"x": spec.Tensor(("n", 8), "float32"), "count": int}}

Under ``"$"`` stands how parameters and states are passed: ``{"param_mode": "packed", "effect_mode": "none"}``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_MODES = ("plain", "packed", "none")


class Int:
    """An integer, which is a symbolic variable of the method."""

    def __repr__(self) -> str:
        return "int"


class Tensor:
    """A tensor.

    Parameters
    ----------
    shape : sequence of int or str
        The extents; texts name symbolic variables, equal ones the same.
    dtype : str
        The data type.
    """

    def __init__(self, shape: Sequence[int | str], dtype: str) -> None:
        self.shape = list(shape)
        self.dtype = dtype

    def __repr__(self) -> str:
        return f"Tensor([{', '.join([str(extent) for extent in self.shape])}], '{self.dtype}')"


class Object:
    """Any value of the virtual machine.

    Parameters
    ----------
    object_type : type
        The class that the method gets.
    """

    def __init__(self, object_type: type) -> None:
        self.object_type = object_type

    def __repr__(self) -> str:
        return "object"


class Tuple:
    """Several arguments as one.

    Parameters
    ----------
    name : str
    elements : list or tuple of specifications
    """

    def __init__(self, name: str, elements: Sequence[Any]) -> None:
        if not isinstance(elements, (tuple, list)):
            raise TypeError(f"a Tuple needs its elements, got {type(elements).__name__}")
        self.name = name
        self.elements = type(elements)([_argument(name, element) for element in elements])

    def __repr__(self) -> str:
        return repr(self.elements)


class MethodSpec:
    """A method and its arguments.

    Parameters
    ----------
    method : callable
    arg_names : list of str
    arg_specs : list of specifications
    param_mode : str
        ``"plain"``: a parameter an argument; ``"packed"``: a tuple of all; ``"none"``: no arguments.
    effect_mode : str
        Likewise of states.
    """

    def __init__(
        self,
        method: Callable[..., Any],
        arg_names: Sequence[str],
        arg_specs: Sequence[Any],
        param_mode: str,
        effect_mode: str,
    ) -> None:
        for what, mode in (("param_mode", param_mode), ("effect_mode", effect_mode)):
            if mode not in _MODES:
                raise ValueError(f"{what} must be one of {_MODES}, got {mode!r}")
        self.method = method
        self.arg_names = list(arg_names)
        self.arg_specs = list(arg_specs)
        self.param_mode = param_mode
        self.effect_mode = effect_mode

    def __repr__(self) -> str:
        args = ", ".join(
            [f"{name}: {spec}" for name, spec in zip(self.arg_names, self.arg_specs, strict=True)]
        )
        return f"MethodSpec({getattr(self.method, '__name__', self.method)}({args}))"

    @staticmethod
    def from_raw(spec: Any, method: Callable[..., Any]) -> MethodSpec:
        """The specification that a dict of the arguments' tells.

        Parameters
        ----------
        spec : MethodSpec or dict of str to specification
        method : callable
        """
        if isinstance(spec, MethodSpec):
            return spec
        config = dict(spec.get("$", {}))
        modes = {"param_mode": "plain", "effect_mode": "plain", **config}
        if unknown := [key for key in modes if key not in ("param_mode", "effect_mode")]:
            raise ValueError(f"the options under '$' are param_mode and effect_mode, got {unknown}")
        names = list(inspect.signature(method).parameters)
        given = {key: value for key, value in spec.items() if key != "$"}
        if unknown := [key for key in given if key not in names]:
            raise ValueError(f"the method has the arguments {names}, got also {unknown}")
        missing = [key for key in names if key not in given]
        if missing:
            raise ValueError(f"the method's arguments {missing} are not specified")
        specs = [_argument(name, given[name]) for name in names]
        return MethodSpec(method, names, specs, modes["param_mode"], modes["effect_mode"])

    @staticmethod
    def from_torch(args: Sequence[Any], method: Callable[..., Any]) -> MethodSpec:
        """The specification of tensors of PyTorch and integers.

        Parameters
        ----------
        args : list of torch.Tensor or int
        method : callable
        """
        names = list(inspect.signature(method).parameters)
        if len(names) != len(args):
            raise ValueError(f"the method has the arguments {names}, got {len(args)} values")
        specs: list[Any] = []
        for name, arg in zip(names, args, strict=True):
            if isinstance(arg, int):
                specs.append(Int())
            elif hasattr(arg, "shape") and hasattr(arg, "dtype"):
                specs.append(Tensor([int(e) for e in arg.shape], str(arg.dtype).split(".")[-1]))
            else:
                raise TypeError(f"argument {name} must be a tensor or an integer, got {type(arg)}")
        return MethodSpec(method, names, specs, "plain", "plain")


class ModuleSpec:
    """A module and the methods that are exported.

    Parameters
    ----------
    module : Module
    method_names : list of str
    method_specs : list of MethodSpec
    """

    def __init__(
        self, module: Any, method_names: Sequence[str], method_specs: Sequence[MethodSpec]
    ) -> None:
        self.module = module
        self.method_names = list(method_names)
        self.method_specs = list(method_specs)

    @staticmethod
    def from_raw(spec: Any, module: Any) -> ModuleSpec:
        """The specification that a dict of the methods' tells.

        Parameters
        ----------
        spec : ModuleSpec or dict of str to dict
        module : Module
        """
        if isinstance(spec, ModuleSpec):
            return spec
        specs = [MethodSpec.from_raw(given, getattr(module, name)) for name, given in spec.items()]
        return ModuleSpec(module, list(spec), specs)

    def __repr__(self) -> str:
        methods = zip(self.method_names, self.method_specs, strict=True)
        lines = [f"  {name}: {spec}" for name, spec in methods]
        return "\n".join(["ModuleSpec:", *lines])


def _argument(name: str, spec: Any) -> Any:
    if spec is int or spec == "int":
        return Int()
    if isinstance(spec, (Int, Tensor, Object, Tuple)):
        return spec
    if isinstance(spec, (tuple, list)):
        return Tuple(name, spec)
    if isinstance(spec, Mapping):
        return Tuple(name, list(spec.values()))
    raise TypeError(
        f"argument {name} must be specified as a tensor, an int or a tuple, got {spec!r}"
    )
