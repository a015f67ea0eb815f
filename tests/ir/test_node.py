from __future__ import annotations

import pickle
from typing import ClassVar

import pytest

from tvm.error import TVMError
from tvm.ir.expr import GlobalVar, RelayExpr
from tvm.ir.node import Node, binder, child, derived, generic_repr, ignored, leaf, reference
from tvm.ir.serialize import load_json, save_json
from tvm.ir.span import SourceName, Span
from tvm.ir.type import Type
from tvm.ir.visitor import ContextVisitor, Rewriter, Visitor
from tvm.support import DType, deep, dtype


class KernelExpr(Node):
    dtype: DType
    note: str = ignored(default="")


class KernelVar(KernelExpr):
    name: str
    dtype: DType = leaf(convert=dtype)


class KernelBinary(KernelExpr):
    a: KernelExpr
    b: KernelExpr
    dtype: DType = derived("a.dtype")


class KernelAdd(KernelBinary):
    pass


class KernelSub(KernelBinary):
    pass


class KernelCall(KernelExpr):
    op: KernelExpr = reference()
    args: tuple[KernelExpr, ...] = child(convert=tuple)
    options: dict[str, int] = leaf(default_factory=dict)


class KernelLet(KernelExpr):
    var: KernelVar = binder("body")
    value: KernelExpr | None
    body: KernelExpr
    table: dict[str, KernelExpr] = child(default=None)
    dtype: DType = derived("body.dtype")


X, Y = KernelVar("x", "int32"), KernelVar("y", "int32")


def test_fields_get_their_roles_from_annotations() -> None:
    roles = {f.name: f.role.value for f in KernelLet.node_fields}
    assert roles["var"] == "binder"
    assert roles["value"] == roles["body"] == "child"
    assert {f.name: f.role.value for f in KernelCall.node_fields}["op"] == "reference"
    assert {f.name: f.role.value for f in KernelCall.node_fields}["options"] == "leaf"


def test_inherited_defaults_come_last() -> None:
    assert [f.name for f in KernelAdd.node_fields] == ["a", "b", "dtype", "note"]
    assert KernelAdd(X, Y, "why").note == "why"
    assert KernelAdd.__match_args__ == ("a", "b", "note")


def test_derived_fields_are_computed() -> None:
    assert KernelAdd(X, Y).dtype is dtype("int32")


def test_conversion_and_default_factory() -> None:
    call = KernelCall(dtype("int32"), X, [X, Y])
    assert call.args == (X, Y)
    assert call.options == {}


def test_children_leave_out_binders_and_references() -> None:
    let = KernelLet(X, None, Y, {"k": X})
    assert let.children() == [Y, X]
    assert KernelCall(dtype("int32"), X, (Y,)).children() == [Y]


def test_mapping_nothing_returns_the_same_object() -> None:
    for node in (KernelAdd(X, Y), KernelCall(dtype("int32"), X, [X]), KernelLet(X, Y, Y, {"k": X})):
        assert node.map_children(lambda n: n) is node
        assert Rewriter().visit(node) is node


def test_mapping_rebuilds_only_what_changed() -> None:
    inner = KernelAdd(X, X)
    outer = KernelSub(inner, KernelAdd(Y, Y))

    class Renamer(Rewriter):
        def visit_kernel_var(self, var: KernelVar) -> KernelVar:
            return Y if var is X else var

    new = Renamer().visit(outer)
    assert new.a.a is Y and new.b is outer.b


def test_replace_changes_fields_and_rejects_others() -> None:
    node = KernelAdd(X, Y).replace(b=X)
    assert node.b is X and type(node) is KernelAdd
    with pytest.raises(TypeError, match="requires fields of"):
        node.replace(c=X)


def test_nodes_are_immutable_in_check_mode() -> None:
    node = KernelAdd(X, Y)
    with pytest.raises(AttributeError, match="immutable"):
        node.a = Y  # type: ignore[misc]


def test_pickling_keeps_structure() -> None:
    node = pickle.loads(pickle.dumps(KernelCall(dtype("int32"), X, [X, Y], {"k": 1})))
    assert node.args[0] is node.op and node.options == {"k": 1}


def test_visit_methods_dispatch_on_base_classes() -> None:
    class Counter(Visitor):
        count = 0

        def visit_kernel_binary(self, node: KernelBinary) -> None:
            self.count += 1
            self.visit_children(node)

    counter = Counter()
    counter.visit(KernelAdd(KernelSub(X, Y), X))
    assert counter.count == 2


def test_a_method_for_no_class_is_rejected() -> None:
    with pytest.raises(TypeError, match="visit_kernel_bniary"):

        class Wrong(Visitor):
            def visit_kernel_bniary(self, node: Node) -> None: ...


def test_memoised_rewriters_keep_sharing() -> None:
    node: KernelExpr = X
    for _ in range(200):
        node = KernelAdd(node, node)  # 2**200 paths

    class Swap(Rewriter, memo=True):
        def visit_kernel_var(self, var: KernelVar) -> KernelVar:
            return Y

    new = Swap().visit(node)
    assert new.a is new.b


def test_chains_of_50000_nodes_can_be_walked() -> None:
    node: KernelExpr = X
    for _ in range(50_000):
        node = KernelAdd(node, Y)
    assert deep(Rewriter().visit)(node) is node
    assert deep(node.map_children)(Rewriter().visit) is node
    deep(Visitor().visit)(node)


def test_generic_text_names_fields() -> None:
    assert generic_repr(KernelVar("x", "int32")) == "KernelVar(name='x', dtype='int32')"


class KernelPart(Node):
    operand_kind: ClassVar[str] = "part"
    inner: RelayExpr
    label: str = leaf(default="")


class KernelWhole(RelayExpr):
    bound: RelayExpr = binder("first")
    first: RelayExpr
    annotation: Type | None = child(default=None)
    parts: tuple[KernelPart, ...] = child(default=())
    last: tuple[RelayExpr, ...] = child(default=())


def test_operands_follow_the_roles_of_fields() -> None:
    a, b, c, d, e = [GlobalVar(name) for name in "abcde"]
    whole = KernelWhole(a, b, None, (KernelPart(c, "x"),), (d, e))
    assert KernelWhole.operands is not None
    assert KernelWhole.with_operands is not None
    assert [g.name_hint for g in KernelWhole.operands(whole)] == ["a", "b", "c", "d", "e"]
    new = KernelWhole.with_operands(whole, [e, d, c, b, a])
    assert [g.name_hint for g in KernelWhole.operands(new)] == ["e", "d", "c", "b", "a"]
    assert new.parts[0] is whole.parts[0]
    assert GlobalVar.operands is None


def test_context_visitors_pass_on_what_the_caller_knows() -> None:
    class Depths(ContextVisitor):
        def visit_kernel_expr(self, node: KernelExpr, depth: int) -> int:
            return depth

        def visit_kernel_add(self, node: KernelAdd, depth: int) -> int:
            return max(self.visit(node.a, depth + 1), self.visit(node.b, depth + 1))

    x = KernelVar("x", "int32")
    assert Depths().visit(KernelAdd(KernelAdd(x, x), x), 0) == 2
    with pytest.raises(TVMError, match="Depths has no method for KernelPart"):
        Depths().visit(KernelPart(GlobalVar("g")), 0)


def test_names_of_sources_are_equal_by_their_text() -> None:
    span = Span(SourceName("model.onnx"), 1, 1, 2, 5)
    read = load_json(save_json(span))
    assert read.source_name == span.source_name != SourceName("other.onnx")
    assert {span.source_name: 1}[read.source_name] == 1
