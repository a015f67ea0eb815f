"""From a program of torch.export to a relay function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tvm import tir
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relay.analysis import free_vars
from tvm.relay.expr import Tuple, Var, var
from tvm.relay.frontend.common import constant
from tvm.relay.function import OUTPUT_NAMES, Function
from tvm.runtime import ndarray as nd
from tvm.runtime.foreign.torch_call import to_numpy

from .complex_tensors import Complex, as_pairs
from .decomposition import decomposing_runner
from .dynamic_shapes import without_variables
from .fx import as_constant, writes
from .output_names import exported_names
from .registry import CONVERTERS, adapted, is_tensor


def from_exported_program(
    exported_program: Any,
    custom_convert_map: Mapping[str, Callable[..., Any]] | None = None,
    run_ep_decomposition: bool = True,
    fallback: bool = False,
) -> tuple[IRModule, dict[str, nd.NDArray]]:
    """Import a program that ``torch.export.export`` made.

    Parameters
    ----------
    exported_program : torch.export.ExportedProgram
        The program. Sizes that ``dynamic_shapes`` leave open become `relay.Any`: such a module
        is for the virtual machine (`relay.vm.compile`).
    custom_convert_map : dict, optional
        More converters by operator name, ``f(inputs, input_types) -> expr``.
    run_ep_decomposition : bool
        Write the program in core ATen operators first.
    fallback : bool
        Let PyTorch compute operators that are not supported, with a warning for each. The compiled
        model then needs Python with this package and PyTorch to run, wherever that is.

    Returns
    -------
    (IRModule, dict of str to NDArray)
        The module, and the weights by their names in the state dict. Values that the program
        writes into buffers and inputs are its first outputs, in the order of its signature.

    Raises
    ------
    OpNotImplemented
        With a list of all nodes whose operators are not supported.
    """
    if not hasattr(exported_program, "graph_signature"):
        raise TypeError(
            "from_exported_program requires a torch.export.ExportedProgram, got "
            f"{type(exported_program).__name__}; hint: torch.export.export(model, example_inputs)"
        )
    program = _decomposed(exported_program) if run_ep_decomposition else exported_program
    if writes(program.graph_module):
        program = program.run_decompositions({})
    inputs, params = _inputs(program)
    converters = {**CONVERTERS, **adapted(custom_convert_map)}
    results = run_fx(program.graph_module, inputs, converters, fallback)
    specs = program.graph_signature.output_specs
    values = [(r, s) for r, s in zip(results, specs, strict=True) if s.kind.name != "TOKEN"]
    outputs = [(as_expr(value), spec) for value, spec in values if value is not None]
    exprs = [expr for expr, _ in outputs]
    body = exprs[0] if len(values) == 1 else Tuple(exprs)
    used = {v.name_hint for v in free_vars(body)}
    variables = [value for value in inputs if isinstance(value, Var)]
    data = [v for v in variables if v.name_hint not in params]
    weights = [v for v in variables if v.name_hint in params and v.name_hint in used]
    names = exported_names(program, outputs)
    main = without_variables(Function([*data, *weights], body)).with_attr(OUTPUT_NAMES, names)
    mod = IRModule.from_expr(main)
    return mod, {v.name_hint: params[v.name_hint] for v in weights}


def _decomposed(program: Any) -> Any:
    try:
        return program.run_decompositions()
    except ValueError:  # torch cannot decompose some programs of dynamic sizes
        return program


def run_fx(
    module: Any, inputs: Sequence[Any], converters: Mapping[str, Any], fallback: bool = False
) -> Any:
    """The outputs of a graph module of ATen operators for expressions as inputs."""
    return decomposing_runner(converters, fallback).run(module, inputs)


def as_expr(value: Any) -> RelayExpr:
    """Nested lists as tuples, numbers as constants."""
    if isinstance(value, (list, tuple)):
        return Tuple([as_expr(item) for item in value if item is not None])
    if isinstance(value, Complex):
        return as_pairs(value)
    return value if is_tensor(value) else constant(value)


def _inputs(program: Any) -> tuple[list[Any], dict[str, nd.NDArray]]:
    """A value for each placeholder: variables for weights and inputs, constants as they are."""
    values: list[Any] = []
    params: dict[str, nd.NDArray] = {}
    placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
    sizes: dict[str, tir.Var] = {}
    for spec, node in zip(program.graph_signature.input_specs, placeholders, strict=True):
        kind = spec.kind.name
        if kind in ("PARAMETER", "BUFFER") and _weight(program, spec.target).is_complex():
            values.append(as_constant(_weight(program, spec.target)))
        elif kind in ("PARAMETER", "BUFFER"):
            params[spec.target] = nd.array(to_numpy(_weight(program, spec.target)))
            array = params[spec.target]
            values.append(var(spec.target, shape=array.shape, dtype=array.dtype))
        elif kind == "CONSTANT_TENSOR":
            values.append(as_constant(program.constants[spec.target]))
        elif kind == "USER_INPUT":
            values.append(_user_input(node, sizes))
        else:
            values.append(None)
    return values, params


def _weight(program: Any, target: str) -> Any:
    found = program.state_dict.get(target)
    return program.constants[target] if found is None else found


def _user_input(node: Any, sizes: dict[str, tir.Var]) -> Any:
    meta = node.meta.get("val")
    if not hasattr(meta, "shape"):
        return meta
    dtype = str(meta.dtype).removeprefix("torch.")
    shape = [
        dim if type(dim) is int
        else sizes.setdefault(str(dim), tir.SizeVar(f"size{len(sizes)}", "int64"))
        for dim in meta.shape
    ]  # fmt: skip
    return var(node.name, shape=shape, dtype=dtype)
