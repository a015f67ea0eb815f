"""Make the memory of results explicit, for the virtual machine.

let %y = fn (%p0, Primitive=1) { exp(%p0) }(%x);
    ->
let %storage = memory.alloc_storage(512, [128], 64);
let %out = memory.alloc_tensor(%storage, 0, [128]);
let %_ = vm.invoke_tvm_op(fn (%p0, Primitive=1) { exp(%p0) }, (%x,), (%out,));

A result whose shape only the run knows is preceded by its shape function, which gives extents and
bytes. The program must be in A-normal form.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

import tvm.runtime.ndarray as nd
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass, PassContext, PassInfo
from tvm.ir.type import TensorType
from tvm.relay.analysis.scopes import map_inner_blocks
from tvm.relay.analysis.symbolic import (
    DimensionPool,
    is_dynamic_kernel,
    reads_values,
    symbolic_kernel,
)
from tvm.relay.expr import Call, Constant, ConstantWithFields, Tuple, Var, const
from tvm.relay.function import Function, is_external_function, is_primitive
from tvm.relay.op.memory.memory import (
    alloc_storage,
    alloc_tensor,
    flatten_tuple_type,
    from_tuple_type,
    to_tuple_type,
)
from tvm.relay.op.registry import ops
from tvm.relay.op.vm.vm import invoke_tvm_op, reshape_tensor, shape_func, shape_of
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.device_domains import is_same_device
from tvm.relay.transform.let_list import LetList
from tvm.relay.traverse import split_lets
from tvm.relay.ty import is_dynamic
from tvm.runtime.device import cpu, device
from tvm.target import Target
from tvm.target.virtual_device import VirtualDevice

ALIGNMENT = 64


HOST = VirtualDevice(cpu(0))


def numbers(values: object, dtype: str = "int64") -> Constant:
    """A constant of integers, which the machine itself reads."""
    constant = const(nd.array(np.array(values, dtype)))
    return ConstantWithFields(constant, virtual_device=HOST)


class _Manifester:
    """Rewrites the lets of one function."""

    def __init__(self, mod: IRModule) -> None:
        self.mod = mod
        target = Target.current()
        self.main = VirtualDevice(
            device(1 if target is None else target.get_target_device_type(), 0)
        )
        self.pool = DimensionPool()

    def block(self, body: RelayExpr) -> RelayExpr:
        out = LetList()
        lets, result = split_lets(body)
        for let in lets:
            out.bind(let.var, self._value(let.value, out))
        return out.get(self._value(result, out))

    def _value(self, value: RelayExpr, out: LetList) -> RelayExpr:
        if type(value) is Call and (is_primitive(value.op) or self._is_external(value.op)):
            return self._kernel_call(value, out)
        return map_inner_blocks(value, self.block)

    def _is_external(self, callee: RelayExpr) -> bool:
        return type(callee) is GlobalVar and is_external_function(self.mod[callee])

    def _kernel_call(self, call: Call, out: LetList) -> RelayExpr:
        inputs = [tensor for arg in call.args for tensor in from_tuple_type(arg.checked_type, arg)]
        inputs = [
            t if isinstance(t, (Var, Constant)) else out.push(t, name="field") for t in inputs
        ]
        kernel = call.op if type(call.op) is Function else None
        # what a kernel gives may be known better than what it is declared to give
        types = flatten_tuple_type((call if kernel is None else kernel.body).checked_type)
        is_view = kernel is not None and bool(kernel.attrs.get("relay.reshape_only"))
        func = self.mod[call.op] if kernel is None else kernel
        if is_dynamic_kernel(func):
            return self._dynamic_call(call, func, inputs, types, is_view, out)
        if is_view:
            shape = numbers(types[0].concrete_shape)
            return reshape_tensor(inputs[0], shape, types[0].shape)
        virtual_device = self._virtual_device(call)
        outputs = [self._static_tensor(ty, virtual_device, out) for ty in types]
        out.push(_invoked(call, inputs, outputs), name="done")
        return to_tuple_type(call.checked_type, outputs)

    def _virtual_device(self, call: Call) -> VirtualDevice:
        """Where a kernel runs."""
        own = call.op.attrs.get("place") if type(call.op) is Function else None
        return self.main if own is None else own

    def _static_tensor(
        self, ty: TensorType, virtual_device: VirtualDevice, out: LetList
    ) -> RelayExpr:
        nbytes = prod(ty.concrete_shape) * bytes_of_element(ty)
        storage = self._storage(
            numbers(nbytes), numbers(ty.concrete_shape), virtual_device, ty, out
        )
        return out.push(alloc_tensor(storage, numbers(0), ty.concrete_shape, ty.dtype), name="out")

    def _storage(
        self,
        size: RelayExpr,
        shape: RelayExpr,
        virtual_device: VirtualDevice,
        ty: TensorType,
        out: LetList,
    ) -> RelayExpr:
        made = alloc_storage(size, shape, numbers(ALIGNMENT), virtual_device, ty.dtype)
        return out.push(made, name="storage")

    def _dynamic_call(
        self,
        call: Call,
        func: Function,
        inputs: list[RelayExpr],
        types: list[TensorType],
        is_view: bool,
        out: LetList,
    ) -> RelayExpr:
        kernel = symbolic_kernel(func, self.pool)
        if not is_dynamic(call.checked_type) and not kernel.conditions and not is_view:
            outputs = [self._static_tensor(ty, self._virtual_device(call), out) for ty in types]
        else:
            flags = reads_values(kernel)
            shapes, sizes = self._shapes(
                func, self._virtual_device(call), inputs, types, flags, out
            )
            if is_view:
                return reshape_tensor(inputs[0], shapes[0], types[0].shape)
            outputs = []
            for shape, size, ty in zip(shapes, sizes, types, strict=True):
                storage = self._storage(size, shape, self._virtual_device(call), ty, out)
                outputs.append(
                    out.push(alloc_tensor(storage, numbers(0), shape, ty.dtype), name="out")
                )
        out.push(_invoked(call, inputs, outputs), name="done")
        return to_tuple_type(call.checked_type, outputs)

    def _shapes(
        self,
        func: Function,
        virtual_device: VirtualDevice,
        inputs: list[RelayExpr],
        types: list[TensorType],
        flags: list[bool],
        out: LetList,
    ) -> tuple[list[RelayExpr], list[RelayExpr]]:
        """The extents and the bytes of the results, found when the program runs."""
        given = [
            self._on_host(tensor, virtual_device, out)
            if flag
            else out.push(shape_of(tensor), name="shape")
            for tensor, flag in zip(inputs, flags, strict=True)
        ]
        shapes: list[RelayExpr] = [self._index_tensor((len(ty.shape),), out) for ty in types]
        sizes: list[RelayExpr] = [self._index_tensor((), out) for _ in types]
        found = shape_func(func, Tuple(given), Tuple([*shapes, *sizes]), [int(f) for f in flags])
        out.push(found, name="done")
        return shapes, sizes

    def _on_host(self, tensor: RelayExpr, virtual_device: VirtualDevice, out: LetList) -> RelayExpr:
        """A tensor of a kernel's where shape functions can read it."""
        if is_same_device(virtual_device, HOST):
            return tensor
        copy = ops.device_copy(tensor, src_virtual_device=virtual_device, dst_virtual_device=HOST)
        return out.push(copy, name="on_host")

    def _index_tensor(self, shape: tuple[int, ...], out: LetList) -> RelayExpr:
        return self._static_tensor(TensorType(shape, "int64"), HOST, out)


def _invoked(call: Call, inputs: Sequence[RelayExpr], outputs: Sequence[RelayExpr]) -> Call:
    """A call of a kernel that writes into tensors given to it."""
    invoked = invoke_tvm_op(call.op, Tuple(inputs), Tuple(outputs))
    return invoked.replace(span=call.span)


def bytes_of_element(ty: TensorType) -> int:
    """Bytes that an element takes in memory."""
    return max(1, (ty.dtype.bits + 7) // 8) * int(ty.dtype.lanes)


def ManifestAlloc() -> Pass:
    """The pass."""

    def run(func: Function, mod: IRModule, _: PassContext) -> Function:
        return func if is_primitive(func) else func.replace(body=_Manifester(mod).block(func.body))

    return FunctionPass(run, PassInfo(0, "ManifestAlloc"))
