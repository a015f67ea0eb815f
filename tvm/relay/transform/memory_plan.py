"""Fewer blocks of memory, and constants that are loaded once, for the virtual machine.

    let %s0 = memory.alloc_storage(100, .., 64);    let %region = memory.alloc_storage(192, .., 64);
    let %a = memory.alloc_tensor(%s0, 0, [25]);     let %a = memory.alloc_tensor(%region, 0, [25]);
    ..                                        ->    ..
    let %s1 = memory.alloc_storage(64, .., 64);     let %b = memory.alloc_tensor(%region, 128, [16]);
    let %b = memory.alloc_tensor(%s1, 0, [16]);

These passes run on what `ManifestAlloc` leaves. The usual pipeline does without them: its blocks
are freed one by one and used again, where a region lives as long as the last tensor in it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.relay.analysis.scopes import map_inner_blocks
from tvm.relay.expr import Call, Constant, Var, const
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.memory.memory import ALLOC_STORAGE, ALLOC_TENSOR, KILL
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.let_list import LetList
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import rewrite_post_order, split_lets

Binding = tuple[Var, RelayExpr]


def mk_let(bindings: Sequence[Binding], body: RelayExpr) -> RelayExpr:
    """The bindings around a body."""
    lets = LetList()
    lets.bindings += bindings
    return lets.get(body)


def iterative_let(
    let: RelayExpr,
    each_binding: Callable[[Var, RelayExpr], Binding],
    kont: Callable[[list[Binding], RelayExpr], RelayExpr],
) -> RelayExpr:
    """`kont` of a block's rewritten bindings and its value."""
    lets, value = split_lets(let)
    return kont([each_binding(each.var, each.value) for each in lets], value)


class Region:
    """One block of memory in the place of several."""

    def __init__(self, first: Call, number: int) -> None:
        self.attrs = first.attrs
        self.var = Var(f"region{number}")
        self.size = 0
        self.alignment = 1

    def grow(self, size: int, alignment: int) -> int:
        """Room for another block; where it begins."""
        offset = -(-self.size // alignment) * alignment
        self.size = offset + size
        self.alignment = max(self.alignment, alignment)
        return offset

    def to_expr(self) -> Call:
        """The allocation of the whole."""
        size, alignment = const(self.size, "int64"), const(self.alignment, "int64")
        shape = const(np.array([self.size], "int64"))
        return Call(ALLOC_STORAGE, (size, shape, alignment), self.attrs)


class StorageCoalesce:
    """Joins the blocks of known size that one block of code allocates, for each dtype and device."""

    def __init__(self) -> None:
        self.count = 0

    def block(self, body: RelayExpr) -> RelayExpr:
        """A block of code, and the blocks in it, with their regions."""
        regions: dict[object, Region] = {}
        offsets: dict[int, tuple[Region, int]] = {}  # of variables of storages
        dropped: set[int] = set()  # what ended the lives of these

        def each(variable: Var, value: RelayExpr) -> Binding:
            if calls(value, ALLOC_STORAGE) and (sizes := _known_sizes(value)) is not None:
                key = (value.attrs.dtype, repr(value.attrs.virtual_device))
                if key not in regions:
                    regions[key] = Region(value, self.count)
                    self.count += 1
                offsets[id(variable)] = (regions[key], regions[key].grow(*sizes))
                return variable, regions[key].var
            if calls(value, KILL) and id(value.args[0]) in offsets:
                dropped.add(id(variable))
            if calls(value, ALLOC_TENSOR) and id(value.args[0]) in offsets:
                return variable, _at_offset(value, *offsets[id(value.args[0])])
            return variable, map_inner_blocks(value, self.block)

        def around(bindings: list[Binding], result: RelayExpr) -> RelayExpr:
            kept = [b for b in bindings if id(b[0]) not in offsets and id(b[0]) not in dropped]
            heads = [(region.var, region.to_expr()) for region in regions.values()]
            return mk_let([*heads, *kept], map_inner_blocks(result, self.block))

        return iterative_let(body, each, around)


def _known_sizes(storage: Call) -> tuple[int, int] | None:
    """Bytes and alignment of an allocation, if they are known."""
    size, _, alignment = storage.args
    if type(size) is not Constant or type(alignment) is not Constant:
        return None
    return int(size.data.numpy()), int(alignment.data.numpy())


def _at_offset(tensor: Call, region: Region, start: int) -> Call:
    _, offset, shape = tensor.args
    assert isinstance(offset, Constant)
    moved = const(start + int(offset.data.numpy()), "int64")
    return tensor.replace(args=(region.var, moved, shape))


def MemoryPlan() -> Pass:
    """The pass that joins blocks of memory."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return func if is_primitive(func) else func.replace(body=StorageCoalesce().block(func.body))

    return FunctionPass(run, PassInfo(0, "MemoryPlan"))


def LiftConstants() -> Pass:
    """The pass that names the constants of a function at its beginning."""

    def run(func: Function, _: IRModule, __: PassContext) -> Function:
        return func if is_primitive(func) else _with_named_constants(func)

    return FunctionPass(run, PassInfo(0, "LiftConstants"))


def _with_named_constants(func: Function) -> Function:
    lets = LetList()
    names: dict[int, Var] = {}

    def name(old: RelayExpr, new: RelayExpr) -> RelayExpr:
        if calls(old, ALLOC_STORAGE, ALLOC_TENSOR):
            return old  # sizes are parts of instructions
        if type(old) is not Constant:
            return new
        if id(old) not in names:
            names[id(old)] = lets.push(old, name=f"const{len(names)}")
        return names[id(old)]

    body = rewrite_post_order(func.body, name, is_opaque=lambda node: type(node) is Function)
    return func.replace(body=lets.get(body))
