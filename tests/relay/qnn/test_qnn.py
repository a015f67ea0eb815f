"""The quantised dialect: passes, configuration, parameters of the run, rejections."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tvm
from tvm import relay
from tvm.contrib import graph_executor
from tvm.relay.qnn.op.requantize import multiplier_and_shift

from ..op.qnn_cases import OPS, codes, requantized, scale, zero


def _operators(mod: tvm.IRModule) -> list[str]:
    found: list[str] = []
    relay.analysis.post_order_visit(
        mod["main"], lambda e: found.append(e.op.name) if isinstance(e, relay.Call) else None
    )
    return found


def _typed(body: relay.Expr) -> tvm.IRModule:
    return relay.transform.InferType()(tvm.IRModule.from_expr(body))


def _run(body: relay.Expr, **inputs: np.ndarray) -> np.ndarray:
    lib = relay.build(tvm.IRModule.from_expr(body), "llvm")
    module = graph_executor.GraphModule(lib["default"](tvm.cpu()))
    module.run(**inputs)
    return module.get_output(0).numpy()


def test_canonicalize_leaves_no_quantised_operator() -> None:
    x = relay.var("x", shape=(1, 4), dtype="uint8")
    y = OPS.quantize(OPS.dequantize(x, scale(0.1), zero(3)), scale(0.2), zero(1))
    mod = relay.qnn.transform.CanonicalizeOps()(_typed(y))
    assert not [name for name in _operators(mod) if name.startswith("qnn.")]


def test_legalize_makes_a_table_of_constant_parameters_only() -> None:
    x, s = relay.var("x", shape=(4,), dtype="int8"), relay.var("s", shape=(), dtype="float32")
    constant = _typed(OPS.tanh(x, scale(0.1), zero(0), scale(0.01), zero(0)))
    assert _operators(relay.qnn.transform.Legalize()(constant)) == ["reinterpret", "take"]
    of_run = _typed(relay.Function([x, s], OPS.tanh(x, s, zero(0), scale(0.01), zero(0))))
    assert _operators(relay.qnn.transform.Legalize()(of_run)) == ["qnn.tanh"]


def test_convolution_keeps_data_and_weight_in_eight_bits() -> None:
    x = relay.var("x", shape=(1, 4, 8, 8), dtype="uint8")
    weight = relay.const(codes(8, 4, 3, 3, dtype="uint8"))
    y = OPS.conv2d(x, weight, zero(9), zero(128), scale(1), scale(1), (3, 3), 8, padding=1)
    mod = relay.qnn.transform.CanonicalizeOps()(_typed(y))
    mod = relay.transform.FoldConstant()(mod)
    assert _operators(mod) == ["nn.pad", "nn.conv2d", "subtract"]
    conv = mod["main"].body.args[0]
    assert [a.checked_type.dtype for a in conv.args] == ["uint8", "int8"]


def test_parameters_may_come_at_run_time() -> None:
    x = relay.var("x", shape=(3, 5), dtype="int32")
    s, z = relay.var("s", shape=(), dtype="float32"), relay.var("z", shape=(), dtype="int32")
    body = OPS.requantize(x, s, z, scale(0.5), zero(1))
    data = np.arange(-7, 8, dtype="int32").reshape(3, 5)
    found = _run(relay.Function([x, s, z], body), x=data, s=np.float32(0.25), z=np.int32(2))
    np.testing.assert_array_equal(found, np.floor((data - 2) * 0.5 + 0.5) + 1)


def test_data_zero_point_may_come_at_run_time() -> None:
    x, z = (
        relay.var("x", shape=(1, 3, 5, 5), dtype="uint8"),
        relay.var("z", shape=(), dtype="int32"),
    )
    weight = codes(2, 3, 3, 3)
    attrs = {"kernel_size": (3, 3), "channels": 2, "padding": 1}
    build = lambda at: OPS.conv2d(x, relay.const(weight), at, zero(0), scale(1), scale(1), **attrs)  # noqa: E731
    data = codes(1, 3, 5, 5, dtype="uint8")
    late = _run(relay.Function([x, z], build(z)), x=data, z=np.int32(17))
    np.testing.assert_array_equal(late, _run(relay.Function([x], build(zero(17))), x=data))


def test_folding_evaluates_quantised_constants_when_asked() -> None:
    call = OPS.dequantize(relay.const(np.array([5, 7], "int8")), scale(0.5), zero(1))
    mod = _typed(call)
    assert isinstance(relay.transform.FoldConstant()(mod)["main"].body, relay.Call)
    folded = relay.transform.FoldConstant(fold_qnn=True)(mod)["main"].body
    np.testing.assert_array_equal(folded.data.numpy(), [2.0, 3.0])


def test_configuration_holds_inside_its_block() -> None:
    assert OPS.current_requantize_config().rounding == "UPWARD"
    with OPS.requantize_config(rounding="TONEAREST", compute_dtype="float32"):
        with OPS.requantize_config(rounding="UPWARD"):
            assert OPS.current_requantize_config().compute_dtype == "float32"
        assert OPS.current_requantize_config().rounding == "TONEAREST"
    assert OPS.current_requantize_config().compute_dtype == "int64"


def test_configuration_decides_how_halves_are_rounded() -> None:
    x = relay.var("x", shape=(2,), dtype="int32")
    y = relay.Function([x], OPS.requantize(x, scale(1), zero(0), scale(2), zero(0)))
    data = np.array([-1, -3], "int32")
    with OPS.requantize_config(rounding="TONEAREST"):
        np.testing.assert_array_equal(_run(y, x=data), [-1, -2])
    np.testing.assert_array_equal(_run(y, x=data), [0, -1])


@pytest.mark.parametrize("dtype", ["int64", "float32", "float64"])
def test_halves_go_away_from_zero_whatever_computes_them(dtype: str) -> None:
    x = relay.var("x", shape=(6,), dtype="int32")
    y = OPS.requantize(
        x, scale(1), zero(0), scale(2), zero(0), rounding="TONEAREST", compute_dtype=dtype
    )
    data = np.array([-5, -3, -1, 1, 3, 5], "int32")
    np.testing.assert_array_equal(_run(relay.Function([x], y), x=data), [-3, -2, -1, 1, 2, 3])


@settings(max_examples=5)
@given(
    s=st.floats(1e-4, 1), out_s=st.floats(1e-3, 50), z=st.integers(-128, 127),
    out_z=st.integers(-128, 127), rounding=st.sampled_from(["UPWARD", "TONEAREST"]),
)  # fmt: skip
def test_requantize_is_exact_for_any_parameters(
    s: float, out_s: float, z: int, out_z: int, rounding: str
) -> None:
    x = relay.var("x", shape=(64,), dtype="int32")
    y = OPS.requantize(x, scale(s), zero(z), scale(out_s), zero(out_z), rounding=rounding)
    data = np.random.default_rng(1).integers(-(2**20), 2**20, 64).astype("int32")
    wanted = requantized(data, np.float32(s), z, np.float32(out_s), out_z, "int8", rounding)
    np.testing.assert_array_equal(_run(relay.Function([x], y), x=data), wanted)


@given(st.floats(1e-8, 1e8))
def test_multiplier_and_shift_say_the_factor(factor: float) -> None:
    multiplier, shift = multiplier_and_shift(factor)
    assert 2**30 <= multiplier < 2**31
    assert multiplier * 2.0 ** (shift - 31) == pytest.approx(factor, rel=2**-31)


def test_tables_serve_functions_of_users() -> None:
    table = OPS.canonicalizations.create_integer_lookup_table(
        np.square, scale(0.5), zero(-2), scale(0.25), zero(1), in_dtype="int8", out_dtype="int8"
    )
    x = np.arange(-6, 3, dtype="int8")
    np.testing.assert_array_equal(table[x.view("uint8")], np.minimum((x + 2) ** 2 + 1, 127))


def test_calls_of_tables_have_a_value() -> None:
    x = np.arange(-6, 3, dtype="int8")
    call = OPS.canonicalizations.create_integer_lookup_op(
        relay.const(x), np.square, scale(0.5), zero(-2), scale(0.25), zero(1), in_dtype="int8",
        out_dtype="int8",
    )  # fmt: skip
    found = OPS.canonicalizations.run_const_expr(call)
    np.testing.assert_array_equal(found, np.minimum((x + 2) ** 2 + 1, 127))
    with pytest.raises(tvm.error.OpAttributeInvalid, match="a constant is required, got Var"):
        OPS.canonicalizations.run_const_expr(relay.var("x", shape=(2,)))


def test_users_may_register_their_own_canonicalization() -> None:
    op = tvm.ir.Op.get("qnn.log")
    before = op.qnn_canonicalize
    try:
        OPS.register_qnn_canonicalize("qnn.log", lambda attrs, inputs, types: inputs[0], level=11)
        x = relay.var("x", shape=(4,), dtype="int8")
        mod = _typed(OPS.log(x, scale(1), zero(0), scale(1), zero(0)))
        assert _operators(relay.qnn.transform.CanonicalizeOps()(mod)) == []
    finally:
        op.set_facets(qnn_canonicalize=before)


def test_vector_of_another_length_than_the_axis_is_rejected() -> None:
    x = relay.var("x", shape=(2, 3), dtype="float32")
    with pytest.raises(tvm.error.DiagnosticError, match="each of the 3 elements along axis -1"):
        _typed(OPS.quantize(x, scale([1, 2]), zero(0)))


def test_zero_point_of_another_dtype_is_rejected() -> None:
    x = relay.var("x", shape=(2, 3), dtype="float32")
    with pytest.raises(tvm.error.DiagnosticError, match="output_zero_point of dtype int32"):
        _typed(OPS.quantize(x, scale(1), relay.const(0, "int8")))


def test_unknown_rounding_is_rejected() -> None:
    x = relay.var("x", shape=(2,), dtype="int32")
    with pytest.raises(AttributeError, match="rounding of UPWARD, TONEAREST"):
        OPS.requantize(x, scale(1), zero(0), scale(2), zero(0), rounding="down")


def test_layouts_pass_through_quantised_operators() -> None:
    x = relay.var("x", shape=(1, 4, 6, 6), dtype="uint8")
    weight = relay.const(codes(8, 4, 3, 3))
    y = OPS.conv2d(x, weight, zero(3), zero(0), scale(1), scale(1), (3, 3), 8, padding=1)
    y = OPS.requantize(y, scale(np.arange(1, 9)), zero(0), scale(30), zero(5), 1, out_dtype="uint8")
    y = OPS.add(y, y, scale(1), zero(0), scale(1), zero(0), scale(2), zero(1))
    func = relay.Function([x], y)
    mod = _typed(func)
    desired = {"qnn.conv2d": ["NHWC", "default"]}
    converted = relay.transform.ConvertLayout(desired)(mod)
    names = _operators(converted)
    assert names.count("layout_transform") == 3  # the data, the weight, and the result
    assert names[-1] == "layout_transform"
    data = codes(1, 4, 6, 6, dtype="uint8")
    np.testing.assert_array_equal(_run(converted["main"], x=data), _run(func, x=data))


def test_users_may_give_their_operators_tables() -> None:
    legalize = OPS.legalizations.register_qnn_unary_op_legalize
    before = tvm.ir.Op.get("qnn.exp").qnn_legalize
    try:
        legalize("qnn.exp", OPS.legalizations.hardswish_func)
        x = relay.var("x", shape=(5,), dtype="int8")
        y = OPS.exp(x, scale(1), zero(0), scale(1), zero(0))
        found = _run(relay.Function([x], y), x=np.array([-4, -3, 0, 3, 9], "int8"))
        np.testing.assert_array_equal(found, [0, 0, 0, 3, 9])
    finally:
        tvm.ir.Op.get("qnn.exp").set_facets(qnn_legalize=before)


@pytest.mark.parametrize("dtypes", [("int8", "uint8"), ("int8", "int8"), ("uint8", "uint8")])
def test_legalisation_helpers_keep_what_products_stand_for(dtypes: tuple[str, str]) -> None:
    values = [np.random.default_rng(4).integers(0, 100, shape).astype(d) for shape, d in
              zip(((1, 4, 5, 5), (8, 4, 3, 3)), dtypes, strict=True)]  # fmt: skip
    x, w = [
        relay.var(n, shape=v.shape, dtype=str(v.dtype)) for n, v in zip("xw", values, strict=True)
    ]
    one = relay.const(np.float32(1))
    call = relay.qnn.op.conv2d(x, w, relay.const(5), relay.const(3), one, one, (3, 3), 8)
    call = relay.transform.InferType()(tvm.IRModule.from_expr(relay.Function([x, w], call)))["main"]
    body, params = call.body, call.params

    def value(expr: relay.Expr) -> np.ndarray:
        mod = tvm.IRModule.from_expr(relay.Function(params, expr))
        run = relay.create_executor("graph", mod=mod).evaluate()
        return run(*values).numpy()

    arguments = (body.attrs, body.args, [a.checked_type for a in body.args])
    changed = [
        OPS.legalizations.helper_no_fast_int8_hw_legalization(*arguments, relay.nn.conv2d),
        OPS.legalizations.helper_change_dtypes_to_uint8_int8(*arguments, relay.qnn.op.conv2d),
        OPS.legalizations.helper_change_dtypes_to_int8(*arguments, relay.qnn.op.conv2d),
        OPS.legalizations.helper_change_dtypes_to_be_same(*arguments, relay.qnn.op.conv2d),
    ]
    for expr in changed:
        if expr is not None:
            np.testing.assert_array_equal(value(expr), value(body))


def test_operators_are_names_of_the_dialect_too() -> None:
    assert relay.qnn.conv2d is relay.qnn.op.conv2d
    assert relay.qnn.requantize_config is relay.qnn.op.requantize_config
