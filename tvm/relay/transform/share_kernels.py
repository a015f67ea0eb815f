"""Kernels that differ in numbers alone become one: the numbers are its parameters.

%0 = fn (%p0, Primitive=1) { round(divide(%p0, 0.5f)) };         %0 = fn (%p0, %p1, Primitive=1) { round(divide(%p0, %p1)) };
%1 = fn (%p0, Primitive=1) { round(divide(%p0, 0.3f)) };   ->    %0(%x, 0.5f)
%0(%x); %1(%y)                                                   %0(%y, 0.3f)

The layers of a quantised network each have their own scales: without this each would have its own kernels.
Equal kernels become one function, which later passes then see once. Those of dynamic shapes stay: each has
the size variables of its own arguments in its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.span import SequentialSpan
from tvm.ir.structural import structural_equal, structural_hash
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay.analysis.source_names import computed_spans
from tvm.relay.analysis.symbolic import is_dynamic_kernel
from tvm.relay.expr import Call, Constant, Var
from tvm.relay.function import Function, is_primitive
from tvm.relay.op.registry import ops
from tvm.relay.transform.common import relay_pass
from tvm.relay.transform.operators import calls
from tvm.relay.traverse import post_order, rewrite_calls, rewrite_post_order

# a number in the code may be worth a little: only where it saves the compilation of several kernels
FEWEST_SHARED = 4
# operators whose code is the same whatever the number is; quotients of integers are not
_ARITHMETIC = (ops.add, ops.subtract, ops.multiply)


@dataclass(frozen=True)
class _Template:
    """A kernel whose numbers are variables, and the numbers."""

    kernel: Function
    func: Function
    variables: tuple[Var, ...]
    numbers: tuple[Constant, ...]

    @property
    def values(self) -> tuple[bytes, ...]:
        return tuple([number.data.numpy().tobytes() for number in self.numbers])


@dataclass
class _Family:
    """Kernels with equal templates."""

    members: list[_Template] = field(default_factory=list)

    def shared(self) -> Iterable[_Use]:
        """What to call in place of each kernel."""
        rows = [member.values for member in self.members]
        if len(set(rows)) < FEWEST_SHARED:
            firsts: dict[tuple[bytes, ...], Function] = {}
            for member, row in zip(self.members, rows, strict=True):
                yield member, firsts.setdefault(row, member.kernel), ()
            return
        columns = zip(*rows, strict=True)
        positions = [place for place, column in enumerate(columns) if len(set(column)) > 1]
        func = _with_parameters(self.members[0], positions)
        for member in self.members:
            yield member, func, tuple([member.numbers[place] for place in positions])


# a kernel, the function in its place, and its further arguments
_Use = tuple[_Template, Function, tuple[Constant, ...]]


@relay_pass("ShareKernels", opt_level=2)
def share_kernels(func: Function, mod: IRModule, context: PassContext) -> Function:
    """Kernels that differ in numbers alone get them as arguments."""
    if is_primitive(func) or context.get("relay.FuseOps.link_params", False):
        return func
    kernels = {
        id(node.op): node.op
        for node in post_order(func, is_opaque=is_primitive)
        if isinstance(node, Call) and is_primitive(node.op) and not is_dynamic_kernel(node.op)
    }
    shared = _shared(kernels.values())
    if not shared:
        return func

    def rewrite(old: Call, new: Call) -> RelayExpr:
        if isinstance(new.op, Function) and id(new.op) in shared:
            kernel, numbers = shared[id(new.op)]
            # the kernel's own positions are those of the first call alone
            span = SequentialSpan(tuple(computed_spans(new, new.op)))
            return Call(kernel, (*new.args, *numbers)).replace(span=span)
        return new

    return rewrite_calls(func, rewrite, is_primitive)


def _shared(kernels: Iterable[Function]) -> dict[int, tuple[Function, tuple[Constant, ...]]]:
    """By the kernel's identity what to call instead, and with which further arguments."""
    families: dict[int, list[_Family]] = {}
    for kernel in kernels:
        template = _template(kernel)
        _join(families.setdefault(structural_hash(template.func), []), template)
    return {
        id(member.kernel): (func, numbers)
        for listed in families.values()
        for family in listed
        for member, func, numbers in family.shared()
        if func is not member.kernel
    }


def _template(kernel: Function) -> _Template:
    """The kernel with variables in place of the numbers that may vary."""
    numbers = _numbers(kernel)
    if not numbers:
        return _Template(kernel, kernel, (), ())
    variables = tuple(
        [Var(f"number{i}", TensorType((), n.data.dtype)) for i, n in enumerate(numbers)]
    )
    func = _replaced(kernel, numbers, variables, variables)
    return _Template(kernel, func, variables, numbers)


def _numbers(kernel: Function) -> tuple[Constant, ...]:
    """Scalars that only arithmetic reads."""
    found: dict[int, Constant] = {}
    fixed: set[int] = set()
    for node in post_order(kernel.body):
        if not isinstance(node, Call):
            continue
        for arg in node.args:
            if not isinstance(arg, Constant) or arg.data.shape:
                continue
            is_quotient = calls(node, ops.divide) and str(arg.data.dtype).startswith("float")
            if is_quotient or calls(node, *_ARITHMETIC):
                found[id(arg)] = arg
            else:
                fixed.add(id(arg))
    return tuple([number for key, number in found.items() if key not in fixed])


def _replaced(
    kernel: Function, old: Sequence[RelayExpr], new: Sequence[RelayExpr], params: Sequence[Var]
) -> Function:
    """The kernel with other expressions and with further parameters."""
    changed = {id(a): b for a, b in zip(old, new, strict=True)}
    body = rewrite_post_order(kernel.body, lambda _, node: changed.get(id(node), node))
    return kernel.replace(params=(*kernel.params, *params), body=body)


def _join(families: list[_Family], template: _Template) -> None:
    for family in families:
        if structural_equal(family.members[0].func, template.func):
            family.members.append(template)
            return
    families.append(_Family([template]))


def _with_parameters(template: _Template, positions: Sequence[int]) -> Function:
    """A template whose variables are parameters at some positions and numbers at the others."""
    kept = [i for i in range(len(template.numbers)) if i not in set(positions)]
    func = template.func
    first = len(func.params) - len(template.variables)
    varying = [
        Var(f"p{first + count}", template.variables[place].type_annotation)
        for count, place in enumerate(positions)
    ]
    bare = func.replace(params=func.params[:first])
    old = [template.variables[i] for i in (*positions, *kept)]
    return _replaced(bare, old, [*varying, *[template.numbers[i] for i in kept]], varying)


ShareKernels = share_kernels.factory
