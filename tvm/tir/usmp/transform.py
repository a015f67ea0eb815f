"""Allocations become addresses in pools, which functions take as further parameters.

def main(x, y):                        ->    def main(x, y, sram_0_var):
    a = allocate([256], "uint8")                 a = address_of(sram[128])
    call_extern("f", x, a)                       call_extern("f", x, a, sram_0_var)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tvm._ffi.registry import register_func
from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.function import BaseFunc
from tvm.ir.memory_pools import AllocatedPoolInfo, ConstantInfo, ConstantPoolInfo, PoolInfo
from tvm.ir.module import IRModule
from tvm.ir.pass_context import PassContext
from tvm.ir.transform import ModulePass, PassInfo
from tvm.ir.type import PointerType, PrimType
from tvm.ir.visitor import Rewriter, Visitor
from tvm.support.dtype import dtype as as_dtype
from tvm.tir.buffer import Buffer, decl_buffer
from tvm.tir.builtin import address_of
from tvm.tir.expr import BufferLoad, Call, StringImm, Var, const
from tvm.tir.function import PrimFunc
from tvm.tir.stmt import Allocate, AllocateConst, DeclBuffer, For, ForKind, LetStmt, Stmt
from tvm.tir.transform.storage_rewrite import storage_scope
from tvm.tir.usmp.utils import CANDIDATES, INPUT, OUTPUT, BufferInfo, PoolAllocation

MAIN_ATTRIBUTE = "runner_function"
MAIN_NAMES = ("__tvm_main__", "run_model")
POOLS = "pool_args"  # attribute of the main function: an AllocatedPoolInfo for each pool

_ARGUMENT_LISTS = {INPUT: "input_vars", OUTPUT: "output_vars"}  # attributes of the main function

Places = Mapping[Stmt, PoolAllocation]
_BYTES = PointerType(PrimType(as_dtype("uint8")), "global")


def assign_pools(
    func: PrimFunc, workspace: Sequence[PoolInfo], constants: Sequence[PoolInfo], min_bytes: int = 0
) -> PrimFunc:
    """Annotate allocations with the pools they may be in.

    Parameters
    ----------
    min_bytes : int
        Smaller allocations stay as they are: on the stack, or in registers.
    """
    return func.with_body(_Assigner(workspace, constants, min_bytes).visit(func.body))


def allocate_arguments(func: PrimFunc, inputs: Sequence[str], outputs: Sequence[str]) -> PrimFunc:
    """A model's function that allocates its inputs and outputs, named here, and takes none.

    def main(x, y):              ->    def main():
        call_extern("f", x, y)             x = allocate([8], "float32")   # input_tensor: "x"
                                           y = allocate([8], "float32")   # output_tensor: "y"
                                           call_extern("f", x, y)
    """
    kinds = [*[(INPUT, name) for name in inputs], *[(OUTPUT, name) for name in outputs]]
    body, always = func.body, const(True, "bool")
    for param, (kind, name) in zip(reversed(func.params), reversed(kinds), strict=True):
        buffer = func.buffer_map[param]
        shape = buffer.shape or (const(1, "int32"),)
        body = Allocate(buffer.data, buffer.dtype, shape, always, body, {kind: name})
    return PrimFunc([], body, func.ret_type, None, func.attrs)


@register_func("tir.usmp.transform.CreateAllocatesForIO", override=True)
def create_allocates_for_io() -> ModulePass:
    """The pass that lets the main function allocate its inputs and outputs.

    They are the parameters with buffers that its attributes ``input_vars`` and ``output_vars`` list,
    or those with ``input`` or ``output`` in their names where it has none of these.

    Returns
    -------
    ModulePass
        The pass.
    """

    def run(mod: IRModule, context: PassContext) -> IRModule:
        gvar = _find_main(mod)
        main = mod.functions[gvar]
        assert isinstance(main, PrimFunc)
        return mod.with_functions({**mod.functions, gvar: _without_arguments(main)})

    return ModulePass(run, PassInfo(0, "tir.usmp.CreateAllocatesForIO"))


def _without_arguments(main: PrimFunc) -> PrimFunc:
    listed = {kind: main.get_attr(name) for kind, name in _ARGUMENT_LISTS.items()}
    body, params = main.body, []
    for param in main.params:
        kind = _kind_of(param, listed) if param in main.buffer_map else None
        if kind is None:
            params.append(param)
            continue
        buffer = main.buffer_map[param]
        shape = buffer.shape or (const(1, "int32"),)
        always, annotations = const(True, "bool"), {kind: param.name}
        body = Allocate(buffer.data, buffer.dtype, shape, always, body, annotations)
    buffers = {param: main.buffer_map[param] for param in params if param in main.buffer_map}
    return PrimFunc(params, body, main.ret_type, buffers, main.attrs)


def _kind_of(param: Var, listed: Mapping[str, Any]) -> str | None:
    """The annotation of an input or output; none for other parameters."""
    if any([variables is not None for variables in listed.values()]):
        kinds = [k for k, v in listed.items() if any([var.same_as(param) for var in v or ()])]
    else:
        kinds = [kind for kind in listed if kind.removesuffix("_tensor") in param.name]
    return kinds[0] if kinds else None


class _Assigner(Rewriter):
    def __init__(
        self, workspace: Sequence[PoolInfo], constants: Sequence[PoolInfo], min_bytes: int
    ) -> None:
        self.workspace = list(workspace)
        self.constants = list(constants)
        self.min_bytes = min_bytes

    def visit_for(self, loop: For) -> Stmt:
        # iterations that run at the same time need memory of their own
        return loop if loop.kind is ForKind.PARALLEL else self.rewrite_children(loop)

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        alloc = self.rewrite_children(alloc)
        count = alloc.constant_size()
        is_global = storage_scope(alloc.buffer_var) == "global"
        if count is None or not is_global or count * alloc.dtype.itemsize < self.min_bytes:
            return alloc
        return self._annotated(alloc, self.workspace)

    def visit_allocate_const(self, alloc: AllocateConst) -> Stmt:
        return self._annotated(self.rewrite_children(alloc), self.constants)

    @staticmethod
    def _annotated(alloc: Allocate | AllocateConst, pools: list[PoolInfo]) -> Stmt:
        if not pools or CANDIDATES in (alloc.annotations or {}):
            return alloc
        return alloc.replace(annotations={**(alloc.annotations or {}), CANDIDATES: pools})


def convert_pool_allocations_to_offsets(
    pool_allocations: Places, emit_tvmscript_printable: bool = False
) -> ModulePass:
    """The pass that gives each allocation its place.

    Each function that the main function reaches takes every pool, in the order of their names; a
    last parameter without a buffer, as of a device's handle, stays the last.

    Parameters
    ----------
    pool_allocations : dict of Stmt to PoolAllocation
        The places.
    emit_tvmscript_printable : bool
        Leave out the attributes, which scripts cannot show in general; names remain.

    Returns
    -------
    ModulePass
        The pass.
    """

    def run(mod: IRModule, context: PassContext) -> IRModule:
        converter = _Converter(mod, pool_allocations, passes_all=True)
        if not emit_tvmscript_printable:
            return converter.convert(with_attributes=True)
        converted = converter.convert(with_attributes=False)
        return converted.with_functions(
            {gvar: _only_named(func) for gvar, func in converted.functions.items()}
        )

    return ModulePass(run, PassInfo(0, "tir.usmp.ConvertPoolAllocationsToOffsets"))


def _only_named(func: BaseFunc) -> BaseFunc:
    """The function without attributes but its name."""
    if not isinstance(func, PrimFunc):
        return func
    name = func.get_attr("global_symbol")
    attrs = None if name is None else {"global_symbol": name}
    return PrimFunc(func.params, func.body, func.ret_type, func.buffer_map, attrs)


def pass_used_pools(mod: IRModule, pool_allocations: Places) -> IRModule:
    """Give each allocation its place; functions take no pools but those that they or their callees use."""
    return _Converter(mod, pool_allocations, passes_all=False).convert(with_attributes=True)


@register_func("tir.usmp.AssignStmtPoolAllocations", override=True)
def assign_statement_places(
    buffer_info_stmts: Mapping[BufferInfo, Stmt],
    buffer_info_pool_allocations: Mapping[BufferInfo, PoolAllocation],
) -> dict[Stmt, PoolAllocation]:
    """The place of each allocating statement."""
    return {
        statement: buffer_info_pool_allocations[info]
        for info, statement in buffer_info_stmts.items()
    }


@register_func("tir.usmp.CreateArrayBufferInfo", override=True)
def buffer_infos(buffer_info_stmts: Mapping[BufferInfo, Stmt]) -> list[BufferInfo]:
    """The allocations, as algorithms take them."""
    return list(buffer_info_stmts)


def _find_main(mod: IRModule) -> GlobalVar:
    for gvar, func in mod.functions.items():
        named = gvar.name_hint.endswith(MAIN_NAMES)
        if isinstance(func, PrimFunc) and (func.get_attr(MAIN_ATTRIBUTE) or named):
            return gvar
    raise ValueError("static memory planning needs a main function: __tvm_main__, or run_model")


class _Converter:
    """Rewrites the functions that the main function reaches."""

    def __init__(self, mod: IRModule, places: Places, passes_all: bool) -> None:
        self.mod = mod
        self.places = places
        self.passes_all = passes_all
        self.main = _find_main(mod)
        self.by_name = {
            str(f.get_attr("global_symbol") or g.name_hint): g
            for g, f in mod.functions.items()
            if isinstance(f, PrimFunc)
        }
        self.sizes: dict[PoolInfo, int] = {}
        self.needs: dict[GlobalVar, list[PoolInfo]] = {}
        self.constants: list[tuple[PoolInfo, ConstantInfo]] = []

    def convert(self, with_attributes: bool) -> IRModule:
        for statement, place in self.places.items():
            end = place.offset + _size_of(statement)
            self.sizes[place.pool_info] = max(self.sizes.get(place.pool_info, 0), end)
        if self.passes_all:
            self.sizes = dict(sorted(self.sizes.items(), key=lambda item: item[0].pool_name))
        self.pools_of(self.main)  # the functions that are reached
        functions = dict(self.mod.functions)
        for gvar, func in self.mod.functions.items():
            if isinstance(func, PrimFunc) and gvar in self.needs and gvar is not self.main:
                functions[gvar] = self._function(gvar, func)
        main = self.mod.functions[self.main]
        assert isinstance(main, PrimFunc)
        converted = self._function(self.main, main)
        if with_attributes:
            converted = self._described(converted, _pool_position(main, len(main.params)))
        functions[self.main] = converted
        return self.mod.with_functions(functions)

    def pools_of(self, gvar: GlobalVar) -> list[PoolInfo]:
        """The pools that a function takes: those that it or its callees use, or all."""
        if gvar not in self.needs:
            self.needs[gvar] = []  # while it is being looked at
            found = _Uses(self)
            func = self.mod.functions[gvar]
            assert isinstance(func, PrimFunc)
            found.visit(func.body)
            needed = self.sizes if self.passes_all else found.pools
            self.needs[gvar] = [pool for pool in self.sizes if pool in needed]
        return self.needs[gvar]

    def _function(self, gvar: GlobalVar, func: PrimFunc) -> PrimFunc:
        pools = list(self.sizes) if gvar is self.main else self.pools_of(gvar)
        if not pools:
            return func
        by_pool = {pool: self._pool_buffer(pool) for pool in pools}
        body = _OffsetWriter(self, by_pool).visit(func.body)
        buffers, buffer_map = list(by_pool.values()), dict(func.buffer_map)
        added: list[Var] = [buffer.data for buffer in buffers]
        if gvar is self.main or self.passes_all:
            # whoever runs the model passes the pools as tensors
            added = [self._parameter(buffer) for buffer in buffers]
            buffer_map.update(zip(added, buffers, strict=True))
        else:
            for buffer in reversed(buffers):
                body = DeclBuffer(buffer, body)
        position = _pool_position(func, len(func.params))
        params = [*func.params[:position], *added, *func.params[position:]]
        return PrimFunc(params, body, func.ret_type, buffer_map, func.attrs)

    def _pool_buffer(self, pool: PoolInfo) -> Buffer:
        name = f"{pool.pool_name}_{list(self.sizes).index(pool)}"
        shape = (self.sizes[pool],)
        if self.passes_all:
            data = Var(f"{name}_buffer_var", _BYTES)
            return decl_buffer(
                shape, "uint8", pool.pool_name, data=data, strides=[1], data_alignment=16
            )
        return decl_buffer(shape, "uint8", pool.pool_name, data=Var(f"{name}_var", _BYTES))

    def _parameter(self, buffer: Buffer) -> Var:
        if self.passes_all:
            return Var(buffer.data.name.replace("_buffer_var", "_var"), _BYTES)
        return Var(f"{buffer.data.name}_handle", "handle")

    def _described(self, main: PrimFunc, first: int) -> PrimFunc:
        pools = [
            AllocatedPoolInfo(self._filled(pool), size, first + i)
            for i, (pool, size) in enumerate(self.sizes.items())
        ]
        return main.with_attr(POOLS, pools)

    def _filled(self, pool: PoolInfo) -> PoolInfo:
        """A pool with what it holds."""
        held = tuple([info for place, info in self.constants if place is pool])
        if not held or not isinstance(pool, ConstantPoolInfo):
            return pool
        return pool.replace(constant_info_arr=held)


class _Uses(Visitor):
    """The pools that a function's text mentions."""

    def __init__(self, converter: _Converter) -> None:
        self.converter = converter
        self.pools: dict[PoolInfo, None] = {}

    def visit_allocate(self, alloc: Allocate) -> None:
        self._place(alloc)

    def visit_allocate_const(self, alloc: AllocateConst) -> None:
        self._place(alloc)

    def _place(self, alloc: Allocate | AllocateConst) -> None:
        place = self.converter.places.get(alloc)
        if place is not None:
            self.pools[place.pool_info] = None
        self.visit_children(alloc)

    def visit_call(self, call: Call) -> None:
        self.visit_children(call)
        callee = _callee(self.converter, call)
        if callee is not None:
            self.pools.update(dict.fromkeys(self.converter.pools_of(callee)))


def _pool_position(func: PrimFunc, count: int) -> int:
    """Where pools stand among as many parameters or arguments: before a handle without a buffer."""
    has_handle = bool(func.params) and func.params[-1] not in func.buffer_map
    return count - has_handle


def _callee(converter: _Converter, call: Call) -> GlobalVar | None:
    if isinstance(call.op, GlobalVar):
        return call.op
    name = call.args[0] if call.args else None
    return converter.by_name.get(name.value) if isinstance(name, StringImm) else None


class _OffsetWriter(Rewriter):
    """Puts addresses in place of allocations, and passes pools on."""

    def __init__(self, converter: _Converter, buffers: Mapping[PoolInfo, Buffer]) -> None:
        self.converter = converter
        self.buffers = buffers

    def visit_allocate(self, alloc: Allocate) -> Stmt:
        place = self.converter.places.get(alloc)
        alloc = self.rewrite_children(alloc)
        return alloc if place is None else self._bound(alloc.buffer_var, place, alloc.body)

    def visit_allocate_const(self, alloc: AllocateConst) -> Stmt:
        place = self.converter.places.get(alloc)
        alloc = self.rewrite_children(alloc)
        if place is None:
            return alloc
        info = ConstantInfo(alloc.buffer_var.name, place.offset, alloc.data)
        self.converter.constants.append((place.pool_info, info))
        return self._bound(alloc.buffer_var, place, alloc.body)

    def _bound(self, var: Var, place: PoolAllocation, body: Stmt) -> Stmt:
        buffer = self.buffers[place.pool_info]
        offset = const(place.offset, "int32" if place.offset < 2**31 else "int64")
        return LetStmt(var, address_of(BufferLoad(buffer, (offset,))), body)

    def visit_call(self, call: Call) -> PrimExpr:
        call = self.rewrite_children(call)
        callee = _callee(self.converter, call)
        if callee is None:
            return call
        given = [self.buffers[pool].data for pool in self.converter.pools_of(callee)]
        if not given:
            return call
        func = self.converter.mod.functions[callee]
        assert isinstance(func, PrimFunc)
        position = _pool_position(func, len(call.args))
        return call.replace(args=(*call.args[:position], *given, *call.args[position:]))


def _size_of(statement: Any) -> int:
    return int(statement.constant_size()) * int(statement.dtype.itemsize)
