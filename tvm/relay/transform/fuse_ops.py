"""Group operators into functions that become one kernel each.

%0 = nn.conv2d(%x, %w);          %0 = fn (%p0, %p1, Primitive=1) {
%1 = add(%0, %b);          ->      nn.relu(add(nn.conv2d(%p0, %p1), %p2))
nn.relu(%1)                      };
                                 %0(%x, %w, %b)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.ir.transform import Pass, PassContext, PassInfo, register_pass_config
from tvm.ir.type import TensorType, TupleType
from tvm.relay.expr import Call, Constant, Tuple, TupleGetItem, Var
from tvm.relay.function import KEEP_ROUNDING, Function, is_primitive
from tvm.relay.op.registry import OpPattern, ops
from tvm.relay.rounding import is_free_rounding
from tvm.relay.transform.common import FunctionPass
from tvm.relay.transform.fuse_graph import GraphNode, Group, Partitioner
from tvm.relay.transform.operators import RESHAPES, calls
from tvm.relay.traverse import operands, post_order, with_operands
from tvm.relay.ty import is_dynamic
from tvm.target import Target

register_pass_config("relay.FuseOps.max_depth", int)
register_pass_config("relay.FuseOps.link_params", bool)

MAX_FUSED_NODES = 256
# scalars of these types are written into the kernel
_INLINE_DTYPES = ("int32", "int64", "float32", "float64", "bool")


def fuse_ops(
    func: Function, opt_level: int, max_depth: int, link_params: bool, max_arguments: int = 0
) -> Function:
    """`func` with its operators in primitive functions, of at most so many arguments (0: any number)."""
    if is_primitive(func):
        return func
    order = _evaluation_order(func)
    nodes = _graph_nodes(func, order, link_params)
    if opt_level == 0:
        groups = [Group(node, node.pattern) for node in nodes]
    else:
        groups = Partitioner(nodes, max_depth, max_arguments).partition()
    result = _Outliner(nodes, groups, link_params).run(func)
    assert isinstance(result, Function)
    return result


def _evaluation_order(func: Function) -> list[RelayExpr]:
    """Post-order of everything in `func` that is not inside a primitive function."""
    return [n for n in post_order(func, is_opaque=is_primitive) if type(n) is not Op]


def _graph_nodes(func: Function, order: list[RelayExpr], link_params: bool) -> list[GraphNode]:
    nodes = [
        GraphNode(expr, index, _pattern(expr, link_params)) for index, expr in enumerate(order)
    ]
    by_id = {id(node.expr): node for node in nodes}
    for user in nodes:
        if is_primitive(user.expr):
            continue
        for operand in operands(user.expr):
            if (node := by_id.get(id(operand))) is None:
                continue  # an operator
            edge = _edge_pattern(user, operand)
            if edge is None:
                node.is_used_outside = True
            else:
                node.outputs.append((user, edge))
    by_id[id(func)].is_used_outside = True
    return nodes


def _pattern(expr: RelayExpr, link_params: bool) -> OpPattern:
    if type(expr) is Call and isinstance(expr.op, Op):
        # a shape that depends on values is found between kernels
        is_alone = is_dynamic(expr.checked_type) and expr.op.shape_func is not None
        if is_alone or expr.op.fuse is None:
            return OpPattern.OPAQUE
        return OpPattern(expr.op.fuse)
    if type(expr) is Constant:
        return OpPattern.ELEMWISE if _is_inline(expr) or link_params else OpPattern.OPAQUE
    if type(expr) is Tuple:
        return OpPattern.TUPLE
    if type(expr) is TupleGetItem:
        return OpPattern.INJECTIVE
    return OpPattern.OPAQUE


def _is_inline(constant: Constant) -> bool:
    """Whether kernels contain the value instead of reading it."""
    return not constant.data.shape and str(constant.data.dtype) in _INLINE_DTYPES


def _edge_pattern(user: GraphNode, operand: RelayExpr) -> OpPattern | None:
    """How `user` reads an operand; None if the value must exist outside of kernels."""
    expr = user.expr
    if type(expr) is Call:
        is_plain = user.pattern == OpPattern.BROADCAST
        if is_plain and operand.checked_type == expr.checked_type:
            return OpPattern.ELEMWISE
        return user.pattern
    if type(expr) is Tuple:
        return OpPattern.INJECTIVE if isinstance(operand.checked_type, TensorType) else None
    if type(expr) is TupleGetItem:
        ty = operand.checked_type
        is_flat = isinstance(ty, TupleType) and all(isinstance(f, TensorType) for f in ty.fields)
        return OpPattern.INJECTIVE if is_flat else None
    return None


@dataclass
class _Kernel:
    """The function being made of one group."""

    params: list[Var] = field(default_factory=list)
    args: list[RelayExpr] = field(default_factory=list)
    param_of: dict[int, Var] = field(default_factory=dict)
    has_rounding: bool = False  # that the program asks for, and another operator reads

    def param_for(self, operand: RelayExpr, arg: RelayExpr) -> Var:
        """The parameter that stands for a value computed outside of the group."""
        found = self.param_of.get(id(operand))
        if found is None:
            found = Var(f"p{len(self.params)}", operand.checked_type)
            self.param_of[id(operand)] = found
            self.params.append(found)
            self.args.append(arg)
        return found


class _Outliner:
    """Rebuilds a function with each group as a primitive function."""

    def __init__(self, nodes: list[GraphNode], groups: list[Group], link_params: bool) -> None:
        self.nodes = nodes
        self.link_params = link_params  # whether kernels contain constants of any size
        self.group_of = {id(n.expr): g for n, g in zip(nodes, groups, strict=True)}
        self.kernels: dict[int, _Kernel] = {}
        self.inside: dict[int, RelayExpr] = {}  # values inside their kernel
        self.outside: dict[int, RelayExpr] = {}  # values of the rebuilt function

    def run(self, func: Function) -> RelayExpr:
        for node in self.nodes:
            expr = node.expr
            if type(expr) is Call and calls(expr, ops.annotation.stop_fusion):
                # it has kept its neighbours separate, and computes nothing
                before = expr.args[0]
                self.outside[id(expr)] = self.outside.get(id(before), before)
                continue
            if self._stays_outside(node):
                self.outside[id(expr)] = self._rebuilt(expr)
                continue
            group = self.group_of[id(expr)]
            value = self._value_inside(expr, group)
            if group.root_node is node:
                self.outside[id(expr)] = self._outlined(expr, value, group)
            else:
                self.inside[id(expr)] = value
        return self.outside[id(func)]

    def _stays_outside(self, node: GraphNode) -> bool:
        expr = node.expr
        group = self.group_of[id(expr)]
        if type(expr) is Call:
            return not isinstance(expr.op, Op) or expr.op is ops.device_copy
        if type(expr) is TupleGetItem:
            is_root = group.root_node is node
            return is_root and self.group_of.get(id(expr.tuple_value)) is not group
        if type(expr) in (Tuple, Constant):
            return group.root_node is node
        return True

    def _rebuilt(self, expr: RelayExpr) -> RelayExpr:
        if is_primitive(expr):
            return expr
        below = [self.outside.get(id(o), o) for o in operands(expr)]
        return with_operands(expr, below) if below else expr

    def _value_inside(self, expr: RelayExpr, group: Group) -> RelayExpr:
        if type(expr) is Constant:
            return expr
        kernel = self.kernels.setdefault(id(group), _Kernel())
        if type(expr) is TupleGetItem and self.group_of[id(expr.tuple_value)] is not group:
            # the kernel takes the one field, not the whole tuple
            return kernel.param_for(expr, self._rebuilt(expr))
        new: list[RelayExpr] = []
        for operand in operands(expr):
            if isinstance(operand, Op):
                new.append(operand)
            elif self.group_of[id(operand)] is group:
                new.append(self.inside[id(operand)])
                kernel.has_rounding |= _rounds(operand)
            elif type(operand) is Constant and (self.link_params or _is_inline(operand)):
                new.append(operand)
            else:
                new.append(kernel.param_for(operand, self.outside[id(operand)]))
        return with_operands(expr, new)

    def _outlined(self, expr: RelayExpr, body: RelayExpr, group: Group) -> RelayExpr:
        kernel = self.kernels[id(group)]
        attrs: dict[str, object] = {"Primitive": 1}
        if _only_reshapes(body):
            attrs["relay.reshape_only"] = 1
        if kernel.has_rounding:
            attrs[KEEP_ROUNDING] = 1
        func = Function(kernel.params, body, expr.checked_type, (), attrs)
        return Call(func, kernel.args)


def _rounds(expr: RelayExpr) -> bool:
    """Whether the program rounds to bfloat16 here."""
    if not calls(expr, ops.cast, ops.cast_like) or is_free_rounding(expr):
        return False
    ty = expr.checked_type
    return isinstance(ty, TensorType) and ty.dtype == "bfloat16"


def _only_reshapes(body: RelayExpr) -> bool:
    """Whether a kernel would only copy its first argument."""
    while type(body) is Call:
        if not calls(body, *RESHAPES):
            return False
        body = body.args[0]
    return type(body) is Var


def FuseOps(fuse_opt_level: int = -1, link_params: bool = False) -> Pass:
    """Put operators that become one kernel into primitive functions.

    Parameters
    ----------
    fuse_opt_level : int
        At 0 each operator becomes a kernel of its own. -1: the level of the context decides.
    link_params : bool
        Whether constants become parts of kernels; the option `relay.FuseOps.link_params` says so too.
    """

    def run(func: Function, _: IRModule, context: PassContext) -> Function:
        level = context.opt_level if fuse_opt_level == -1 else fuse_opt_level
        depth = context.get("relay.FuseOps.max_depth", MAX_FUSED_NODES)
        linked = link_params or context.get("relay.FuseOps.link_params", False)
        target = Target.current()
        return fuse_ops(func, level, depth, linked, target.max_function_args if target else 0)

    return FunctionPass(run, PassInfo(0, "FuseOps"))


def SeparateOps(link_params: bool = False) -> Pass:
    """Put operators that are in no primitive function yet in one each; the executor runs those."""

    def run(func: Function, _: IRModule, context: PassContext) -> Function:
        linked = link_params or context.get("relay.FuseOps.link_params", False)
        return fuse_ops(func, 0, MAX_FUSED_NODES, linked)

    return FunctionPass(run, PassInfo(0, "SeparateOps"))
