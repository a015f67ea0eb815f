"""Move the regions of external compilers into functions of their own.

    end(relu(begin(%x)))    ->    @tvmgen_default_c_main_0(%x)

The functions carry the compiler's name as `Compiler` and their own as `global_symbol`.
"""

from __future__ import annotations

from tvm._ffi import get_global_func
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.function import BaseFunc
from tvm.ir.module import IRModule
from tvm.ir.transform import ModulePass, Pass, PassContext, PassInfo
from tvm.ir.type import TupleType
from tvm.relay.analysis.infer import infer_type_of
from tvm.relay.backend.name_transforms import sanitize
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.function import Function, is_external_function
from tvm.relay.transform.infer_type import infer_types
from tvm.relay.transform.regions import (
    Regions,
    external_regions,
    is_annotation,
    is_free,
    without_annotations,
)
from tvm.relay.traverse import operands, with_operands

Unit = tuple[str, int]  # a region, or an expression of our own


class _Partitioner:
    """Rebuilds one function; calls of regions stand where their values are used."""

    def __init__(self, regions: Regions, prefix: str, name: str, bind_constants: bool) -> None:
        self.regions = regions
        self.prefix = prefix
        self.name = name
        self.bind_constants = bind_constants
        self.made: dict[GlobalVar, Function] = {}
        self.numbers: set[int] = set()  # of the regions that have their function
        self.members: dict[int, list[RelayExpr]] = {}
        self.used_outside: set[int] = {id(without_annotations(regions.func.body))}
        self.values: dict[int, RelayExpr] = {}
        for node in regions.order:
            if is_free(node):
                continue
            if regions.compiler_of(node) is not None:
                self.members.setdefault(regions.number[id(node)], []).append(node)
            for operand in operands(node):
                if not regions.together(without_annotations(operand), node):
                    self.used_outside.add(id(without_annotations(operand)))

    def run(self) -> Function:
        body = without_annotations(self.regions.func.body)
        done: set[Unit] = set()
        stack = [(self._unit(body), body, False)]
        while stack:
            unit, node, is_expanded = stack.pop()
            if unit in done:
                continue
            if is_expanded:
                done.add(unit)
                self._emit(unit, node)
                continue
            stack.append((unit, node, True))
            stack.extend([(self._unit(o), o, False) for o in reversed(self._inputs(unit, node))])
        return self.regions.func.replace(body=self.values[id(body)])

    def _unit(self, node: RelayExpr) -> Unit:
        if self.regions.compiler_of(node) is not None:
            return ("region", self.regions.number[id(node)])
        return ("own", id(node))

    def _inputs(self, unit: Unit, node: RelayExpr) -> list[RelayExpr]:
        """What a unit takes from outside."""
        if unit[0] == "own":
            return [] if is_free(node) else [without_annotations(o) for o in operands(node)]
        found: dict[int, RelayExpr] = {}
        for member in self.members[unit[1]]:
            for operand in operands(member):
                base = without_annotations(operand)
                if not self.regions.together(base, member) and not self._is_embedded(base):
                    found.setdefault(id(base), base)
        return list(found.values())

    def _is_embedded(self, base: RelayExpr) -> bool:
        if isinstance(base, Constant) or _has_constants(base):
            return self.bind_constants
        return is_free(base) and not isinstance(base, Var)

    def _emit(self, unit: Unit, node: RelayExpr) -> None:
        if unit[0] == "region":
            self._emit_region(unit)
        elif is_free(node):
            self.values[id(node)] = node
        else:
            below = [self.values[id(without_annotations(o))] for o in operands(node)]
            self.values[id(node)] = with_operands(node, below)

    def _emit_region(self, unit: Unit) -> None:
        members = self.members[unit[1]]
        compiler = self.regions.compiler[unit[1]]
        inputs = self._inputs(unit, members[0])
        # regions are counted by what enters them, as they are found
        number = self.regions.first_begin.get(unit[1], self.regions.begins)
        while number in self.numbers:  # regions may share what enters them
            number += 1
        self.numbers.add(number)
        params = [
            Var(f"{compiler}_{number}_i{i}", infer_type_of(base)) for i, base in enumerate(inputs)
        ]
        inside: dict[int, RelayExpr] = {
            id(base): param for base, param in zip(inputs, params, strict=True)
        }
        for node in members:
            below = [without_annotations(o) for o in operands(node)]
            inside[id(node)] = with_operands(node, [inside.get(id(o), _plain(o)) for o in below])
        ends = self.regions.first_end
        outputs = [node for node in members if id(node) in self.used_outside]
        outputs.sort(key=lambda node: ends.get(id(node), len(ends)))
        parts = [[inside[id(outputs[0])]]]
        if len(outputs) > 1:
            parts = [_fields(node, inside[id(node)]) for node in outputs]
        results = [part for fields in parts for part in fields]
        name = f"{self.prefix}_{sanitize(compiler)}_{self.name}_{number}"
        attrs = {"Primitive": 1, "Inline": 1, "Compiler": compiler, "global_symbol": name}
        body = results[0] if len(results) == 1 else Tuple(results)
        func = _optimized(Function(params, body), compiler)
        gvar = GlobalVar(name)
        self.made[gvar] = func.with_attr(attrs)
        call = Call(gvar, [self.values[id(base)] for base in inputs])
        if len(outputs) == 1:
            self.values[id(outputs[0])] = call
            return
        items = iter([TupleGetItem(call, i) for i in range(len(results))])
        for node, fields in zip(outputs, parts, strict=True):
            taken = [next(items) for _ in fields]
            is_tuple = isinstance(infer_type_of(node), TupleType)
            self.values[id(node)] = Tuple(taken) if is_tuple else taken[0]


def _fields(node: RelayExpr, value: RelayExpr) -> list[RelayExpr]:
    """What leaves a region for one of several nodes: its function returns one tuple of tensors."""
    ty = infer_type_of(node)
    if not isinstance(ty, TupleType):
        return [value]
    if isinstance(value, Tuple):
        return list(value.fields)
    return [TupleGetItem(value, i) for i in range(len(ty.fields))]


def _has_constants(base: RelayExpr) -> bool:
    """Whether an expression is a tuple of constants."""
    if not isinstance(base, Tuple) or not base.fields:
        return False
    return all([isinstance(without_annotations(field), Constant) for field in base.fields])


def _plain(base: RelayExpr) -> RelayExpr:
    """A tuple of constants without annotations."""
    if not isinstance(base, Tuple):
        return base
    return base.replace(fields=tuple([without_annotations(field) for field in base.fields]))


def _optimized(func: Function, compiler: str) -> Function:
    """A new function as `relay.ext.<compiler>.optimize` leaves it, the `main` of a module."""
    optimize = get_global_func(f"relay.ext.{compiler}.optimize", allow_missing=True)
    if optimize is None:
        return func
    result: Function = optimize(infer_types(IRModule({GlobalVar("main"): func})))["main"]
    return result


def PartitionGraph(mod_name: str = "default", bind_constants: bool = True) -> Pass:
    """The pass.

    Parameters
    ----------
    mod_name : part of the functions' names.
    bind_constants : leave constants inside the functions, rather than pass them.
    """

    def run(mod: IRModule, _: PassContext) -> IRModule:
        mod = infer_types(mod)
        functions: dict[GlobalVar, BaseFunc] = {}
        for gvar, func in mod.functions.items():
            functions[gvar] = func
            if type(func) is not Function or is_external_function(func):
                continue
            if _has_annotations(regions := external_regions(func)):
                name = sanitize(gvar.name_hint)
                made = _Partitioner(regions, f"tvmgen_{sanitize(mod_name)}", name, bind_constants)
                functions[gvar] = made.run()
                functions.update(made.made)
        return infer_types(mod.with_functions(functions))

    return ModulePass(run, PassInfo(0, "PartitionGraph"))


def _has_annotations(regions: Regions) -> bool:
    return bool(regions.compiler) or any([
        is_annotation(o) for n in regions.order if not is_free(n) for o in operands(n)
    ])  # fmt: skip
