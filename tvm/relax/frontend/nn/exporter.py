"""Methods of modules become functions of relax.

forward(x)    ->    def forward(x, *states, *parameters): dataflow: ...; return result, states
"""

from __future__ import annotations

from typing import Any

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.relax.block_builder import BlockBuilder
from tvm.relax.expr import Tuple, TupleGetItem, Var
from tvm.relax.struct_info import (
    ObjectStructInfo,
    ShapeStructInfo,
    TensorStructInfo,
    TupleStructInfo,
)
from tvm.support import Scoped
from tvm.tir import Var as TirVar

from . import spec as _spec
from .core import Effect, Parameter, Tensor, attributes_of, unwrap_nested
from .io_effect import CURRENT as CURRENT_IO_EFFECT
from .io_effect import IOEffect

_CURRENT: Scoped[Exporter] = Scoped("relax_nn_exporter")


def add_extern(mod: Any) -> None:
    """Let the model that is being exported have a module of another language.

    Parameters
    ----------
    mod : ExternModule
        The module.
    """
    exporter = _CURRENT.current()
    if exporter is None:
        raise RuntimeError("add_extern is called within a method that is exported")
    if mod not in exporter.externals:
        exporter.externals.append(mod)


class Exporter:
    """Builds the functions of a module's methods.

    Parameters
    ----------
    debug : bool
        Whether they take and return the state of input and output.
    """

    def __init__(self, debug: bool) -> None:
        self.builder = BlockBuilder()
        self.io_effect = IOEffect() if debug else None
        self.externals: list[Any] = []

    def build(
        self, spec: _spec.ModuleSpec
    ) -> tuple[IRModule, list[tuple[str, Parameter]], list[Any]]:
        """The functions, the parameters in their order, the modules of other languages."""
        with _CURRENT.scope(self), CURRENT_IO_EFFECT.scope(self.io_effect):
            effects = self._effects(spec)
            if effects:
                self._initialize(effects)
            params: list[tuple[str, Parameter]] = []
            for name, method in zip(spec.method_names, spec.method_specs, strict=True):
                params = list(attributes_of(spec.module, "", lambda x: isinstance(x, Parameter)))
                self._method(name, method, params, effects)
        return self.builder.finalize(), params, self.externals

    def _effects(self, spec: _spec.ModuleSpec) -> list[tuple[str, Effect]]:
        found = [] if self.io_effect is None else [("", self.io_effect)]
        return [*found, *attributes_of(spec.module, "", lambda x: isinstance(x, Effect))]

    def _initialize(self, effects: list[tuple[str, Effect]]) -> None:
        builder = self.builder
        with builder.function("_initialize_effect", []):
            with builder.dataflow():
                values = [v for name, e in effects for v in e.emit_init(name, builder)]
                output = builder.emit_output(builder.emit(Tuple(values)))
            builder.emit_func_output(output)

    def _method(
        self,
        name: str,
        method: _spec.MethodSpec,
        params: list[tuple[str, Parameter]],
        effects: list[tuple[str, Effect]],
    ) -> None:
        builder = self.builder
        arguments = _Arguments()
        explicit = [
            arguments.of(n, s) for n, s in zip(method.arg_names, method.arg_specs, strict=True)
        ]
        states = [var for n, effect in effects for var in effect.create(n)]
        weights = [_placeholder(n, param, arguments) for n, param in params]
        inputs = [*arguments.params]
        by_effect = {"plain": states, "none": [], "packed": [_packed("packed_effects", states)]}
        inputs += by_effect[method.effect_mode]
        count = len(inputs)
        by_param = {"plain": weights, "none": [], "packed": [_packed("packed_params", weights)]}
        inputs += by_param[method.param_mode]
        with builder.function(name, inputs, attrs={"num_input": count}):
            with builder.dataflow():
                if method.param_mode == "packed":
                    weights = _unpacked(builder, inputs[-1], [n for n, _ in params])
                if method.effect_mode == "packed":
                    states = _unpacked(builder, by_effect["packed"][0], [n for n, _ in effects])
                for (_, param), weight in zip(params, weights, strict=True):
                    param._expr = weight
                _set_states(effects, states)
                result = unwrap_nested(
                    method.method(*[arguments.opened(a, builder) for a in explicit])
                )
                if effects and method.effect_mode != "none":
                    finals = [var for _, effect in effects for var in effect.finalize()]
                    result = Tuple([result, Tuple(finals)])
                output = builder.emit_output(result)
            builder.emit_func_output(output)


class _Arguments:
    """The variables of a method's arguments; equal names of extents are one symbolic variable."""

    def __init__(self) -> None:
        self.params: list[Var] = []
        self.symbols: dict[str, TirVar] = {}

    def symbol(self, name: str) -> TirVar:
        return self.symbols.setdefault(name, TirVar(name, "int64"))

    def info(self, name: str, spec: Any) -> Any:
        if isinstance(spec, _spec.Int):
            return ShapeStructInfo([self.symbol(name)])
        if isinstance(spec, _spec.Tensor):
            extents = [self.symbol(e) if isinstance(e, str) else e for e in spec.shape]
            return TensorStructInfo(extents, spec.dtype)
        if isinstance(spec, _spec.Object):
            return ObjectStructInfo()
        return TupleStructInfo([self.info(f"{name}_{i}", e) for i, e in enumerate(spec.elements)])

    def of(self, name: str, spec: Any) -> tuple[Any, Any, str]:
        var = Var(name, self.info(name, spec))
        self.params.append(var)
        return spec, var, name

    def opened(self, argument: tuple[Any, Any, str], builder: BlockBuilder) -> Any:
        """The value that the method gets."""
        spec, expr, name = argument
        if isinstance(spec, _spec.Int):
            return self.symbol(name)
        if isinstance(spec, _spec.Tensor):
            return Tensor(_expr=expr)
        if isinstance(spec, _spec.Object):
            return spec.object_type(_expr=expr, _name=name)
        parts = []
        for i, element in enumerate(spec.elements):
            part = builder.emit(TupleGetItem(expr, i), f"{name}_{i}")
            parts.append(self.opened((element, part, f"{name}_{i}"), builder))
        return type(spec.elements)(parts)


def _placeholder(name: str, param: Parameter, arguments: _Arguments) -> Var:
    # extents of parameters are variables of the method
    extents = [arguments.symbol(e.name) if isinstance(e, TirVar) else e for e in param.shape]
    return Var(name, TensorStructInfo(extents, param.dtype))


def _packed(name: str, values: list[Var]) -> Var:
    return Var(name, TupleStructInfo([value.struct_info for value in values]))


def _unpacked(builder: BlockBuilder, whole: RelayExpr, names: list[str]) -> list[Any]:
    return [builder.emit(TupleGetItem(whole, i), name) for i, name in enumerate(names)]


def _set_states(effects: list[tuple[str, Effect]], states: list[Any]) -> None:
    rest = list(states)
    for name, effect in effects:
        count = len(effect.create(name))
        effect.set_state(rest[:count])
        rest = rest[count:]
