"""Expression nodes, Python operators, conversion of operands."""

from __future__ import annotations

import pickle

import pytest

from tvm import tir
from tvm.error import RuntimeTypeError, TVMError
from tvm.ir import Op, PointerType, PrimType, structural_equal
from tvm.tir.expr import Range, as_expr, const, convert

x = tir.Var("x", "int32")
y = tir.Var("y", "int32")
wide = tir.Var("wide", "int64")
real = tir.Var("real", "float32")


def test_operators_build_nodes() -> None:
    assert type(x + y) is tir.Add
    assert type(x - 1) is tir.Sub
    assert type(2 * x) is tir.Mul
    assert type(x // y) is tir.FloorDiv
    assert type(x % y) is tir.FloorMod
    assert type(real / 2) is tir.Div
    assert type(x < y) is tir.LT
    assert type(x >= 1) is tir.GE
    assert (x & 1).op is Op.get("tir.bitwise_and")
    assert (x << 2).op is Op.get("tir.shift_left")
    assert (~x).op is Op.get("tir.bitwise_not")


def test_a_number_takes_the_dtype_of_the_other_operand() -> None:
    assert (wide + 1).b.dtype == "int64"
    assert (1 + real).a.dtype == "float32"
    assert (tir.Var("h", "float16") * 2.5).b.dtype == "float16"
    assert (x * 0.5).dtype == "float32"


def test_a_number_beyond_int32_makes_the_expression_int64() -> None:
    assert (x + 2**40).dtype == "int64"
    assert const(2**40).dtype == "int64"


@pytest.mark.parametrize(
    ("a", "b", "result"),
    [
        ("int32", "int64", "int64"),
        ("int8", "uint8", "uint8"),
        ("uint32", "int8", "uint32"),
        ("uint32", "int64", "int64"),
        ("uint8", "uint32", "uint32"),
        ("bool", "int32", "int32"),
        ("int64", "float32", "float32"),
        ("float16", "float32", "float32"),
        ("float16", "bfloat16", "float32"),
        ("int32", "int32x4", "int32x4"),
        ("int32x4", "float32", "float32x4"),
    ],
)
def test_operands_are_brought_to_one_dtype(a: str, b: str, result: str) -> None:
    assert (tir.Var("a", a) + tir.Var("b", b)).dtype == result
    assert (tir.Var("b", b) + tir.Var("a", a)).dtype == result


def test_different_lanes_are_rejected() -> None:
    with pytest.raises(TypeError, match="as many lanes"):
        tir.Var("a", "int32x4") + tir.Var("b", "int32x8")


def test_pointers_have_no_arithmetic() -> None:
    with pytest.raises(TypeError, match="one dtype, got handle and int32"):
        tir.add(tir.Var("p", "handle"), x)


def test_the_constructor_builds_exactly_one_node() -> None:
    sum_ = tir.Add(const(1), const(2))
    assert (sum_.a.value, sum_.b.value) == (1, 2)
    assert tir.Add(x, 1).b.dtype == "int32"
    assert tir.Max(0, wide).a.dtype == "int64"
    with pytest.raises(TypeError, match="Add requires operands of one dtype, got int32 and int64"):
        tir.Add(x, wide)


def test_equality_builds_a_node_that_is_true_for_the_same_object() -> None:
    assert type(x == y) is tir.EQ
    assert x == x
    assert x != y
    assert x in [y, x]
    assert x not in [y, wide]
    assert (x == None) is False  # noqa: E711
    assert x != "x"
    assert const(3) == 3
    assert const(3) != 4


def test_other_expressions_have_no_truth_value() -> None:
    with pytest.raises(
        ValueError, match=r"no Python truth value, got x < y; hint: use tvm\.tir\.all"
    ):
        bool(x < y)
    with pytest.raises(ValueError, match="no Python truth value"):
        if x:
            pass


def test_integers_of_different_division_are_ambiguous() -> None:
    with pytest.raises(RuntimeError, match="several divisions"):
        x / y


def test_operands_that_are_no_expressions_bring_their_own_operators() -> None:
    class Tensor:
        def __radd__(self, other: object) -> str:
            return "mine"

    assert x + Tensor() == "mine"
    with pytest.raises(TypeError, match="unsupported operand"):
        x + [1]


def test_astype_and_equal() -> None:
    assert x.astype("int32") is x
    assert type(x.astype("float32")) is tir.Cast
    assert type(x.equal(y)) is tir.EQ


def test_constants() -> None:
    assert const(5) is const(5)
    assert const(5, "int64") is const(5, "int64")
    assert const(1.5).dtype == "float32"
    assert const(True).dtype == "bool"
    assert const(1, "float32x4").dtype == "float32x4"
    assert int(const(7)) == 7
    assert list(range(const(3))) == [0, 1, 2]
    assert float(const(2.5)) == 2.5
    assert not const(0)


@pytest.mark.parametrize(
    ("dtype", "value"), [("int8", 128), ("uint8", -1), ("bool", 2), ("int32", 2**31)]
)
def test_a_constant_has_to_fit(dtype: str, value: int) -> None:
    with pytest.raises(ValueError, match=f"IntImm requires a value of {dtype}, got {value}"):
        tir.IntImm(dtype, value)


def test_large_unsigned_constants() -> None:
    assert tir.IntImm("uint64", 2**64 - 1).value == 2**64 - 1


def test_a_float_constant_needs_a_float_dtype() -> None:
    with pytest.raises(TVMError, match="floating-point dtype, got int32"):
        tir.FloatImm("int32", 1.0)


def test_variables() -> None:
    pointer = tir.Var("p", PointerType(PrimType("float32"), "shared"))
    assert pointer.dtype == "handle"
    assert pointer.type_annotation.storage_scope == "shared"
    assert tir.Var("n", PrimType("int64")).dtype == "int64"
    assert isinstance(tir.SizeVar("n", "int32"), tir.Var)
    assert x.name == "x"


def test_ranges_and_iteration_variables() -> None:
    assert Range(4).min.value == 0
    assert Range(2, 6).extent.value == 4
    assert Range.from_min_extent(x, 3).extent.dtype == "int32"
    assert Range(0, 4) == Range(0, 4)
    assert Range(0, 4) != Range(0, 5)
    axis = tir.IterVar((0, 8), "i", tir.IterVar.DataPar)
    assert axis.var.name == "i"
    assert type(axis + 1) is tir.Add
    assert (axis + 1).a is axis.var
    with pytest.raises(TypeError, match="requires a Range or a pair"):
        tir.IterVar(8, "i", 0)


def test_calls() -> None:
    call = tir.call_intrin("float32", "tir.exp", real)
    assert call.op is Op.get("tir.exp")
    assert structural_equal(call, tir.exp(real))
    with pytest.raises(ValueError, match=r"named 'tir\.<name>', got 'exp'"):
        tir.Call("float32", "exp", [real])
    with pytest.raises(TVMError, match="tir.expp"):
        tir.Call("float32", "tir.expp", [real])
    with pytest.raises(TypeError, match=r"tir\.dp4a requires 3 arguments, got 2"):
        tir.builtin.intrinsic_call(x.dtype, "dp4a", (x, y))


def test_vectors() -> None:
    ramp = tir.Ramp(x, 1, 4)
    assert ramp.dtype == "int32x4"
    assert tir.Broadcast(real, 8).dtype == "float32x8"
    assert (ramp < tir.Broadcast(y, 4)).dtype == "uint1x4"
    assert tir.Shuffle([ramp], [0]).dtype == "int32"


def test_reducers() -> None:
    k = tir.IterVar((0, 8), "k", tir.IterVar.CommReduce)
    total = tir.sum(k.var.astype("float32"), k)
    assert isinstance(total, tir.Reduce)
    assert total.combiner.identity_element[0].value == 0
    combined = total.combiner((real,), (const(1.0),))
    assert structural_equal(combined[0], real + 1.0)
    assert tir.max(const(3), const(5)).value == 5
    assert type(tir.min(x, y)) is tir.Min


def test_tuple_reducers() -> None:
    argmax = tir.comm_reducer(
        lambda a, b: (tir.Select(a[1] >= b[1], a[0], b[0]), tir.Select(a[1] >= b[1], a[1], b[1])),
        lambda t0, t1: (const(-1, t0), tir.min_value(t1)),
        name="argmax",
    )
    k = tir.IterVar((0, 8), "k", tir.IterVar.CommReduce)
    index, value = argmax((k.var, real), axis=k)
    assert (index.value_index, value.value_index) == (0, 1)
    assert index.dtype == "int32"
    assert argmax.__name__ == "argmax"


def test_conversion_of_python_values() -> None:
    assert convert([1, 2.0])[1].dtype == "float32"
    assert convert("text").value == "text"
    with pytest.raises(TypeError, match="an expression is required, got object"):
        as_expr(object())


def test_nodes_survive_pickling() -> None:
    expr = (x + 1) * tir.max(x, y)
    copy = pickle.loads(pickle.dumps(expr))
    assert structural_equal(expr, copy, map_free_vars=True)


def test_numbers_that_a_small_type_cannot_hold_widen_the_expression() -> None:
    x, u = tir.Var("x", "int8"), tir.Var("u", "uint8")
    assert (x + 127).dtype == "int8" and (u * 255).dtype == "uint8"
    assert (x + 300).dtype == "int32" and (u + -1).dtype == "int32"
    below = x < 300
    assert below.a.dtype == "int32" and below.b.value == 300


def test_values_of_enumerations_are_operands() -> None:
    kind = tir.expr.IntImmEnum(2)
    x = tir.Var("x", "int32")
    assert (kind.asobject().value, kind.asobject().dtype) == (2, "int32")
    assert (x + kind).b.value == 2


def test_strings_are_chosen_among_strings_alone() -> None:
    x = tir.Var("x", "int32")
    chosen = tir.if_then_else(x > 1, "many", tir.if_then_else(x > 0, "one", "none"))
    assert chosen.dtype == "handle" and chosen.args[1].value == "many"
    with pytest.raises(TypeError, match="an expression or a number is required"):
        tir.max(x, "one")


@pytest.mark.parametrize("of", [tir.Let, lambda v, x, _: tir.LetStmt(v, x, tir.Evaluate(0))])
def test_a_variable_is_bound_to_a_value_of_its_dtype(of) -> None:
    wide = tir.Var("wide", "int64")
    assert of(wide, 3, wide).value.dtype == "int64"
    for dtype in ("int32", "uint64", "float64"):
        with pytest.raises(RuntimeTypeError, match=f"binding wide .* int64, got {dtype}"):
            of(wide, tir.Var("x", dtype), wide)


def test_the_name_of_a_variable_is_a_text() -> None:
    with pytest.raises(RuntimeTypeError, match="requires a text as its name, got 1"):
        tir.Var(1, "int32")


def test_wrong_operands_raise_the_errors_of_both_worlds() -> None:
    x, half = tir.Var("x", "int32"), tir.const(1.5, "float32")
    for build, kind in (
        (lambda: half << 1, TypeError),
        (lambda: half & 10.0, TypeError),
        (lambda: ~half, TypeError),
        (lambda: x >> 32, ValueError),
        (lambda: tir.Add(x, half), TypeError),
        (lambda: tir.BufferLoad(tir.decl_buffer((4,)), [0, 1]), ValueError),
    ):
        with pytest.raises(TVMError) as info:
            build()
        assert isinstance(info.value, kind)


@pytest.mark.parametrize(
    ("predicate", "text"),
    [
        (tir.Broadcast(tir.const(True), 8), "Got a predicate mask with 8 lanes, but trying to"),
        (tir.Broadcast(1, 4), "Predicate mask elements must be boolean values, but got int32."),
        (
            tir.Broadcast(tir.const(True), tir.vscale() * 4),
            r"Predicate mask dtype and (value dtype|load indices) must both be scalable.",
        ),
    ],
)
def test_predicates_say_something_for_each_lane(predicate: tir.PrimExpr, text: str) -> None:
    buffer, place = tir.decl_buffer((24,)), [tir.Ramp(0, 1, 4)]
    value = tir.Broadcast(tir.const(1.0), 4)
    with pytest.raises(TVMError, match=text):
        buffer.vload(place, "float32x4", predicate=predicate)
    with pytest.raises(TVMError, match=text):
        buffer.vstore(place, value, predicate=predicate)


def test_handles_have_no_arithmetic_with_floats() -> None:
    with pytest.raises(TVMError, match="operands of one dtype, got float32 and handle"):
        tir.Var("f", "float32") + tir.Var("h", "handle")
