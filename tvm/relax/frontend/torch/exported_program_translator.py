"""Programs of ``torch.export`` as modules of relax."""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

from tvm import tir
from tvm.error import OpNotImplemented
from tvm.ir.module import IRModule
from tvm.relax.expr import Var
from tvm.relax.struct_info import TensorStructInfo
from tvm.relay.frontend.pytorch.fx import writes
from tvm.runtime import ndarray as nd
from tvm.runtime.foreign.torch_call import to_numpy

from .aten import run_nodes
from .base_fx_graph_translator import BaseFXGraphImporter, dtype_name


class ExportedProgramImporter(BaseFXGraphImporter):
    """Imports one program."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[str, tir.Var] = {}

    def from_exported_program(
        self,
        exported_program: Any,
        keep_params_as_input: bool,
        unwrap_unit_return_tuple: bool,
        no_bind_return_tuple: bool,
    ) -> IRModule:
        """The module of a program; see the function of that name."""
        program = exported_program
        if writes(program.graph_module):
            program = program.run_decompositions({})
        placeholders = [node for node in program.graph.nodes if node.op == "placeholder"]
        specs = program.graph_signature.input_specs
        inputs: dict[str, Any] = {}
        weights: dict[str, Any] = {}
        values: list[nd.NDArray] = []
        found: list[Any] = []
        for spec, node in zip(specs, placeholders, strict=True):
            kind = spec.kind.name
            if kind == "USER_INPUT":
                inputs[node.name] = self._user_input(node)
                found.append(inputs[node.name])
            elif kind == "PARAMETER" and keep_params_as_input:
                tensor = program.state_dict[spec.target]
                info = TensorStructInfo(list(tensor.shape), dtype_name(tensor.dtype))
                weights[node.name] = Var(node.name, info)
                values.append(nd.array(to_numpy(tensor)))
                found.append(weights[node.name])
            else:
                found.append(self._stored(program, spec))
        params = [v for v in (*inputs.values(), *weights.values()) if isinstance(v, Var)]
        attrs: dict[str, Any] = {}
        if keep_params_as_input:
            attrs = {"num_input": len(params) - len(weights), "params": values}
        with self.block_builder.function("main", params, attrs):
            with self.block_builder.dataflow():
                results = run_nodes(self, program.graph_module, found)
                output = self.output(results, unwrap_unit_return_tuple, no_bind_return_tuple)
            self.block_builder.emit_func_output(output)
        return self.block_builder.get()

    def _stored(self, program: Any, spec: Any) -> Any:
        """The value of a weight, a buffer or a constant."""
        kind = spec.kind.name
        if kind not in ("PARAMETER", "BUFFER", "CONSTANT_TENSOR"):
            raise OpNotImplemented(f"input {spec.arg} of kind {kind} is not supported")
        tensor = program.state_dict.get(spec.target)
        return self.constant(program.constants[spec.target] if tensor is None else tensor)

    def _user_input(self, node: Any) -> Any:
        meta = node.meta.get("val")
        if not hasattr(meta, "shape"):
            return self.dimension(meta) if hasattr(meta, "node") else meta
        dims = [self.dimension(dim) for dim in meta.shape]
        return Var(node.name, TensorStructInfo(dims, dtype_name(meta.dtype)))

    def dimension(self, dim: Any) -> Any:
        """A dimension of PyTorch, an integer or an expression of symbols, in symbolic variables."""
        return dim if isinstance(dim, int) else self._symbolic(dim.node.expr)

    def _symbolic(self, expression: Any) -> Any:
        if expression.is_Integer:
            return int(expression)
        if expression.is_Symbol:
            return self.sizes.setdefault(str(expression), tir.Var(str(expression), "int64"))
        function = _FUNCTIONS.get(type(expression).__name__)
        if function is None:
            raise OpNotImplemented(f"a dimension of {expression} is not supported")
        return reduce(function, [self._symbolic(arg) for arg in expression.args])


# of sympy's expressions
_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "Add": operator.add, "Mul": operator.mul, "FloorDiv": tir.floordiv, "Max": tir.max,
    "Min": tir.min, "PythonMod": tir.floormod, "Mod": tir.floormod,
}  # fmt: skip


def from_exported_program(
    exported_program: Any,
    *,
    keep_params_as_input: bool = False,
    unwrap_unit_return_tuple: bool = False,
    no_bind_return_tuple: bool = False,
) -> IRModule:
    """Import a program that ``torch.export.export`` made.

    Parameters
    ----------
    exported_program : torch.export.ExportedProgram
        The program. Sizes that ``dynamic_shapes`` leave open become symbolic variables.
    keep_params_as_input : bool
        Make parameters of the model parameters of the function, with their values in the attribute
        ``params`` (see `relax.frontend.detach_params`), rather than constants.
    unwrap_unit_return_tuple : bool
        Return the field of a tuple of one.
    no_bind_return_tuple : bool
        Return a tuple without binding it to a variable.

    Returns
    -------
    IRModule
        With the function ``main``. Values that the program writes into buffers and inputs are its
        first outputs, in the order of its signature.

    Raises
    ------
    OpNotImplemented
        For operators that neither relax nor relay's importer has.

    Examples
    --------
    >>> program = torch.export.export(model, args=(torch.randn(1, 3, 224, 224),))
    >>> mod = relax.frontend.torch.from_exported_program(program)
    """
    if not hasattr(exported_program, "graph_signature"):
        raise TypeError(
            "from_exported_program requires a torch.export.ExportedProgram, got "
            f"{type(exported_program).__name__}; hint: torch.export.export(model, example_inputs)"
        )
    return ExportedProgramImporter().from_exported_program(
        exported_program, keep_params_as_input, unwrap_unit_return_tuple, no_bind_return_tuple
    )
