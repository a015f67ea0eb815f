"""Graphs of ``torch.fx`` as modules of relax.

What no emitter knows is traced by PyTorch for the shapes at hand, into a graph of ATen's operators.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm.error import OpNotImplemented, TVMError
from tvm.ir.module import IRModule
from tvm.relax.expr import Tuple, Var
from tvm.relax.struct_info import TensorStructInfo
from tvm.runtime import ndarray as nd
from tvm.runtime.foreign.torch_call import to_numpy

from .aten import attribute, run_nodes
from .base_fx_graph_translator import (
    EMITTERS,
    BaseFXGraphImporter,
    NoEmitter,
    Sizes,
    dtype_name,
    is_tensor,
)
from .modules import MODULES

# a converter of the user's: the node and the importer give the node's value
CustomConverter = Callable[[Any, Any], Any]


class TorchFXImporter(BaseFXGraphImporter):
    """Imports one graph module."""

    def __init__(self) -> None:
        super().__init__()
        self.named_modules: dict[str, Any] = {}
        self.custom: dict[Any, CustomConverter] = {}

    def update_convert_map(self, custom_convert_map: Mapping[Any, CustomConverter]) -> None:
        """Let functions of the user's convert nodes whose function, method or module has a name."""
        self.custom.update(custom_convert_map)

    def from_fx(
        self,
        model: Any,
        input_info: Sequence[tuple[Sequence[Any], Any]],
        keep_params_as_input: bool,
        unwrap_unit_return_tuple: bool,
        no_bind_return_tuple: bool,
        custom_convert_map: Mapping[Any, CustomConverter] | None = None,
        bound: Mapping[int, Any] | None = None,
    ) -> IRModule:
        """The module of a graph; see the function of that name.

        ``bound`` has tensors of PyTorch for placeholders, by position, that become constants.
        """
        self.update_convert_map(custom_convert_map or {})
        self.named_modules = dict(model.named_modules())
        inputs = [
            Var(f"inp_{i}", TensorStructInfo(list(shape), dtype_name(dtype)))
            for i, (shape, dtype) in enumerate(input_info)
        ]
        params, attrs = list(inputs), {}
        if keep_params_as_input:
            named = sorted(model.named_parameters(), key=lambda pair: pair[0])
            for name, tensor in named:
                var = Var(name, TensorStructInfo(list(tensor.shape), dtype_name(tensor.dtype)))
                self.params[id(tensor)] = var
                params.append(var)
            values = [nd.array(to_numpy(tensor.detach())) for _, tensor in named]
            attrs = {"num_input": len(inputs), "params": values}
        with self.block_builder.function("main", params, attrs):
            with self.block_builder.dataflow():
                result = self._run(model, inputs, bound or {})
                output = self.output(result, unwrap_unit_return_tuple, no_bind_return_tuple)
            self.block_builder.emit_func_output(output)
        return self.block_builder.get()

    def _run(self, model: Any, inputs: Sequence[Var], bound: Mapping[int, Any]) -> Any:
        given, position = iter(inputs), 0
        for node in model.graph.nodes:
            if node.op == "placeholder":
                if position in bound:
                    self.env[node] = self.constant(bound[position])
                elif not _is_size(node):
                    self.env[node] = next(given, None)
                    if self.env[node] is None:
                        raise TVMError(
                            f"from_fx requires a shape for each input, got {len(inputs)}: the "
                            f"graph has the input {node.name}, too"
                        )
                position += 1
            elif node.op == "get_attr":
                self.env[node] = attribute(self, model, node.target)
            elif node.op == "output":
                return self.value(node.args[0])
            else:
                self.env[node] = self._call(node)
        raise TVMError("from_fx requires a graph that has an output")

    def _call(self, node: Any) -> Any:
        name = _name_of(node)
        module = self.named_modules[node.target] if node.op == "call_module" else None
        keys = (name, node.target, type(module))
        custom = next((self.custom[key] for key in keys if key in self.custom), None)
        if custom is not None:
            return custom(node, self)
        args, kwargs = self.retrieve_args(node), self.value(dict(node.kwargs))
        try:
            if module is not None:
                return self._module(module, args, kwargs)
            value = self._function(node, name, args, kwargs)
        except NoEmitter as error:
            value = self._traced(node, module, args, kwargs, error)
        except TVMError as error:
            raise error.add_context(f"PyTorch node {node.name} ({node.target})") from None
        self.env[node] = value
        self.write_back(name, node)
        return value

    def _module(self, module: Any, args: list[Any], kwargs: Mapping[str, Any]) -> Any:
        is_known = type(module).__module__.startswith("torch.nn.modules")
        emit = MODULES.get(type(module).__name__) if is_known else None
        if emit is None or kwargs:
            raise NoEmitter(f"Unsupported module type {type(module)}")
        return emit(self, module, args)

    def _function(self, node: Any, name: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        if name == "getitem":
            return self.getitem(*args)
        if node.op == "call_function" and not any([_has_tensor(a) for a in (args, kwargs)]):
            if getattr(node.target, "__module__", "") in ("_operator", "builtins", "math"):
                return node.target(*args, **kwargs)
        if name == "getattr" and not is_tensor(args[0]):
            return getattr(*args)
        functional = f"functional.{name}"
        is_functional = getattr(node.target, "__module__", "") == "torch.nn.functional"
        if is_functional and functional in EMITTERS:
            name = functional
        return self.call(name, args, kwargs)

    def _traced(
        self, node: Any, module: Any, args: list[Any], kwargs: dict[str, Any], error: NoEmitter
    ) -> Any:
        """The value of a call as PyTorch writes it in ATen's operators."""
        import torch
        from torch.fx.experimental.proxy_tensor import make_fx
        from torch.utils import _pytree

        leaves, spec = _pytree.tree_flatten((_lists(args), kwargs))
        places = [i for i, leaf in enumerate(leaves) if is_tensor(leaf)]
        dims = [self.shape_of(leaves[i]) for i in places]
        if not all([isinstance(d, int) for shape in dims for d in shape]):
            raise OpNotImplemented(
                f"{node.op} {node.target} of symbolic shapes is not supported",
                hint="from_exported_program knows more operators on symbolic shapes",
            ) from error

        def call(*tensors: Any) -> Any:
            filled = list(leaves)
            for place, tensor in zip(places, tensors, strict=True):
                filled[place] = tensor
            given, named = _pytree.tree_unflatten(filled, spec)
            if node.op == "call_method":
                return getattr(given[0], node.target)(*given[1:], **named)
            return (module or node.target)(*given, **named)

        examples = [
            torch.zeros(tuple(shape), dtype=getattr(torch, self.dtype_of(leaves[i])))
            for i, shape in zip(places, dims, strict=True)
        ]
        with torch.no_grad():
            traced = make_fx(torch.func.functionalize(call), tracing_mode="fake",
                             _allow_non_fake_inputs=True)(*examples)  # fmt: skip
        return run_nodes(self, traced, [leaves[i] for i in places])


def _is_size(placeholder: Any) -> bool:
    """Whether TorchDynamo gives a symbolic size there."""
    example = placeholder.meta.get("example_value")
    return type(example).__name__ == "SymInt"


def _name_of(node: Any) -> str:
    if node.op == "call_function":
        return str(node.target.__name__)
    return str(node.target)


def _has_tensor(value: Any) -> bool:
    if isinstance(value, dict):
        return any([_has_tensor(item) for item in value.values()])
    if isinstance(value, (list, tuple)):
        return any([_has_tensor(item) for item in value])
    return is_tensor(value)


def _lists(value: Any) -> Any:
    """Tuples of relax, and dimensions, as lists."""
    if isinstance(value, Tuple):
        return [_lists(field) for field in value.fields]
    if isinstance(value, (Sizes, list, tuple)):
        return [_lists(item) for item in value]
    return value


def from_fx(
    model: Any,
    input_info: Sequence[tuple[Sequence[Any], Any]],
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
    custom_convert_map: Mapping[Any, CustomConverter] | None = None,
) -> IRModule:
    """Import a graph of ``torch.fx``.

    Parameters
    ----------
    model : torch.fx.GraphModule
        The graph, such as ``torch.fx.symbolic_trace`` gives; layers compute as in inference.
    input_info : list of (shape, dtype)
        Shapes, of integers or `tir.Var`, and element types of the inputs.
    keep_params_as_input : bool
        Make parameters of the model parameters of the function, with their values in the attribute
        ``params`` (see `relax.frontend.detach_params`), rather than constants.
    unwrap_unit_return_tuple : bool
        Return the field of a tuple of one.
    no_bind_return_tuple : bool
        Return a tuple without binding it to a variable.
    custom_convert_map : dict, optional
        Converters ``f(node, importer) -> expr`` by function or its name, name of a method, or class
        of a module.

    Returns
    -------
    IRModule
        With the function ``main``.

    Raises
    ------
    OpNotImplemented
        For functions that neither relax nor relay's importer has.

    Examples
    --------
    >>> graph = torch.fx.symbolic_trace(model)
    >>> mod = relax.frontend.torch.from_fx(graph, [((1, 3, 224, 224), "float32")])
    """
    return TorchFXImporter().from_fx(
        model, input_info, keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple,
        custom_convert_map,
    )  # fmt: skip
