from __future__ import annotations

import ctypes
import struct

import numpy as np
import pytest

import tvm
from tvm import te
from tvm.error import LoweringError, TVMError
from tvm.support.dtype import dtype
from tvm.target import datatype

# a float32 whose bits are turned around; its functions are C
SOURCE = """
#include <stdint.h>
#include <string.h>
static uint32_t turned(uint32_t x) { return ~x; }
uint32_t TurnedFromFloat(float x) { uint32_t b; memcpy(&b, &x, 4); return turned(b); }
float TurnedToFloat(uint32_t x) { float f; x = turned(x); memcpy(&f, &x, 4); return f; }
uint32_t TurnedAdd(uint32_t a, uint32_t b) { return TurnedFromFloat(TurnedToFloat(a) + TurnedToFloat(b)); }
uint32_t TurnedSqrt(uint32_t a) { return TurnedFromFloat(__builtin_sqrtf(TurnedToFloat(a))); }
uint32_t TurnedMin(void) { return TurnedFromFloat(-1e30f); }
"""
TURNED = "custom[turned]32"


@pytest.fixture(scope="module", autouse=True)
def turned(tmp_path_factory: pytest.TempPathFactory) -> None:
    from tvm.contrib import cc

    folder = tmp_path_factory.mktemp("turned")
    (folder / "turned.c").write_text(SOURCE)
    library = str(folder / "turned.so")
    cc.create_shared(library, [str(folder / "turned.c")], ["-O2"])
    ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
    datatype.register("turned", 151)
    lower = datatype.create_lower_func
    datatype.register_op(lower({(32, 32): "TurnedFromFloat"}), "Cast", "llvm", "float", "turned")
    datatype.register_op(lower({(32, 32): "TurnedToFloat"}), "Cast", "llvm", "turned", "float")
    datatype.register_op(lower({32: "TurnedAdd"}), "Add", "llvm", "turned")
    datatype.register_op(lower({32: "TurnedFromFloat"}), "FloatImm", "llvm", "turned")
    datatype.register_op(
        lower({32: "TurnedSqrt"}), "Call", "llvm", "turned", intrinsic_name="tir.sqrt"
    )
    datatype.register_op(
        datatype.lower_ite, "Call", "llvm", "turned", intrinsic_name="tir.if_then_else"
    )
    datatype.register_op(
        datatype.lower_call_pure_extern,
        "Call",
        "llvm",
        "turned",
        intrinsic_name="tir.call_pure_extern",
    )
    datatype.register_min_func(
        datatype.create_min_lower_func({32: "TurnedMin"}, "turned"), "turned"
    )


def test_names_and_codes_are_known() -> None:
    assert datatype.get_type_code("turned") == 151
    assert datatype.get_type_name(151) == "turned"
    assert datatype.get_type_registered(151) and not datatype.get_type_registered(152)
    assert datatype.get_type_code("float") == 2
    assert (dtype(TURNED).bits, dtype(TURNED).type_code) == (32, 151)
    assert str(dtype(TURNED).with_lanes(4)) == "custom[turned]32x4"


def test_codes_of_others_are_rejected() -> None:
    with pytest.raises(ValueError, match="a code from 129 to 255, got 5"):
        datatype.register("other", 5)
    with pytest.raises(ValueError, match="cannot have code 151"):
        datatype.register("other", 151)
    with pytest.raises(TVMError, match="no data type is registered as 'turnd'"):
        datatype.get_type_code("turnd")
    with pytest.raises(ValueError, match=r"got 'custom\[nothing\]32'"):
        dtype("custom[nothing]32")


def run(compute: object) -> np.ndarray:
    a = te.placeholder((4,), name="a")
    b = te.compute((4,), lambda i: compute(a[i].astype(TURNED)).astype("float32"), name="b")
    f = tvm.build(te.create_schedule(b.op), [a, b], "llvm")
    out = tvm.nd.empty((4,))
    f(tvm.nd.array(np.array([1, 4, 9, 16], "float32")), out)
    return out.numpy()


def test_operations_are_calls_of_the_functions() -> None:
    np.testing.assert_array_equal(run(lambda x: x + x), [2, 8, 18, 32])
    np.testing.assert_array_equal(
        run(lambda x: x + tvm.tir.const(1.5, TURNED)), [2.5, 5.5, 10.5, 17.5]
    )
    np.testing.assert_array_equal(run(te.sqrt), [1, 2, 3, 4])
    np.testing.assert_array_equal(
        run(lambda x: x + te.min_value(TURNED)), np.full(4, -1e30, "float32")
    )


def test_values_are_kept_in_memory() -> None:
    a = te.placeholder((8,), name="a")
    middle = te.compute((8,), lambda i: a[i].astype(TURNED) + a[i].astype(TURNED), name="middle")
    chosen = te.compute(
        (8,), lambda i: te.if_then_else(i < 4, middle[i], middle[7 - i]).astype("float32")
    )
    f = tvm.build(te.create_schedule(chosen.op), [a, chosen], "llvm")
    x, out = np.arange(8, dtype="float32"), tvm.nd.empty((8,))
    f(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), [0, 2, 4, 6, 6, 4, 2, 0])


def test_arguments_of_custom_types_are_bits() -> None:
    a = te.placeholder((2,), TURNED, name="a")
    b = te.compute((2,), lambda i: (a[i] + a[i]).astype("float32"), name="b")
    s = te.create_schedule(b.op)
    f = tvm.build(s, [a, b], "llvm")
    bits = [~struct.unpack("I", struct.pack("f", x))[0] & 0xFFFFFFFF for x in (1.5, 2.5)]
    given = tvm.nd.empty((2,), TURNED)
    given._copy_from_buffer(np.array(bits, "uint32"))
    out = tvm.nd.empty((2,))
    f(given, out)
    np.testing.assert_array_equal(out.numpy(), [3, 5])


def test_vectorized_loops_compute_one_number_at_a_time() -> None:
    a = te.placeholder((8,), name="a")
    b = te.compute(
        (8,), lambda i: (te.sqrt(a[i].astype(TURNED)) + a[i].astype(TURNED)).astype("float32")
    )
    s = te.create_schedule(b.op)
    s[b].vectorize(b.op.axis[0])
    out = tvm.nd.empty((8,))
    x = np.arange(8, dtype="float32") ** 2
    tvm.build(s, [a, b], "llvm")(tvm.nd.array(x), out)
    np.testing.assert_array_equal(out.numpy(), np.sqrt(x) + x)


def test_an_operation_without_a_function_is_rejected() -> None:
    with pytest.raises(LoweringError, match="Mul of turned needs a function for target llvm"):
        run(lambda x: x * x)


def register_example() -> None:
    """The format whose functions are part of the runtime, for a type of its own."""
    datatype.register("example", 152)
    lower = datatype.create_lower_func
    datatype.register_op(lower({(32, 32): "FloatToCustom32"}), "Cast", "llvm", "float", "example")
    datatype.register_op(lower({(32, 32): "Custom32ToFloat"}), "Cast", "llvm", "example", "float")
    datatype.register_op(lower({32: "FloatToCustom32"}), "FloatImm", "llvm", "example")
    for name in ("Add", "Sub", "Mul", "Div", "Max"):
        datatype.register_op(lower({32: f"Custom32{name}"}), name, "llvm", "example")
    intrinsics = {"exp": "Exp", "sqrt": "Sqrt"}
    for name, function in intrinsics.items():
        lowering = lower({32: f"Custom32{function}"})
        datatype.register_op(lowering, "Call", "llvm", "example", intrinsic_name=f"tir.{name}")
    calls = {
        "if_then_else": datatype.lower_ite,
        "call_pure_extern": datatype.lower_call_pure_extern,
    }
    for name, lowering in calls.items():
        datatype.register_op(lowering, "Call", "llvm", "example", intrinsic_name=f"tir.{name}")
    datatype.register_min_func(
        datatype.create_min_lower_func({32: "MinCustom32"}, "example"), "example"
    )


def test_a_network_runs_on_a_type_of_its_own() -> None:
    from tvm import relay

    register_example()
    data, weight = relay.var("data", shape=(1, 3, 8, 8)), relay.var("weight", shape=(4, 3, 3, 3))
    bias, dense = relay.var("bias", shape=(4,)), relay.var("dense", shape=(5, 4))

    def network(kind: str) -> relay.Function:
        d, w, b, m = [relay.cast(v, kind) for v in (data, weight, bias, dense)]
        hidden = relay.nn.relu(relay.nn.bias_add(relay.nn.conv2d(d, w, padding=(1, 1)), b))
        pooled = relay.nn.global_avg_pool2d(relay.nn.max_pool2d(hidden, (2, 2), strides=(2, 2)))
        result = relay.nn.softmax(relay.nn.dense(relay.nn.batch_flatten(pooled), m))
        return relay.Function([data, weight, bias, dense], relay.cast(result, "float32"))

    source = np.random.default_rng(0)
    inputs = [
        source.random(shape, "float32") for shape in ((1, 3, 8, 8), (4, 3, 3, 3), (4,), (5, 4))
    ]
    results = []
    for kind in ("float32", "custom[example]32"):
        mod = tvm.IRModule.from_expr(network(kind))
        with tvm.transform.PassContext(opt_level=3):
            results.append(relay.create_executor("graph", mod=mod).evaluate()(*inputs).numpy())
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)


def test_a_float_beside_a_custom_type_wins() -> None:
    x = tvm.tir.Var("x", TURNED)
    assert (x + 1.5).dtype == (tvm.tir.const(1.0) * x).dtype == "float32"
    assert (x + 1).dtype == TURNED


def test_pointers_to_custom_types_stay_what_callers_know() -> None:
    from tvm.script import tir as T

    @T.prim_func
    def before(data: T.handle(TURNED)):
        T.func_attr({"target": T.target("llvm")})
        a = T.decl_buffer((4,), TURNED, data=data)
        for i in range(4):
            a[i] = a[i] + a[i]

    @T.prim_func
    def after(data: T.handle(TURNED)):
        T.func_attr({"target": T.target("llvm")})
        a = T.decl_buffer((4,), "uint32", data=data)
        for i in range(4):
            a[i] = T.call_pure_extern("uint32", "TurnedAdd", a[i], a[i])

    lowered = tvm.tir.transform.LowerCustomDatatypes()(tvm.IRModule({"main": before}))
    tvm.ir.assert_structural_equal(lowered["main"], after.with_attr("global_symbol", "before"))


def test_reciprocal_square_roots_need_no_function() -> None:
    register_example()
    x = te.placeholder((4,), name="x")
    y = te.compute((4,), lambda i: te.rsqrt(x[i].astype("custom[example]32")).astype("float32"))
    out = tvm.nd.empty((4,))
    tvm.build(te.create_schedule(y.op), [x, y], "llvm")(
        tvm.nd.array(np.array([1, 4, 16, 64], "float32")), out
    )
    np.testing.assert_allclose(out.numpy(), [1, 0.5, 0.25, 0.125])


def test_a_program_changes_to_a_type_of_its_own() -> None:
    from tvm import relay

    register_example()
    x = relay.var("x", shape=(3,))
    scaled = relay.multiply(x, relay.const(np.array([1, 2, 3], "float32")))
    mod = tvm.IRModule.from_expr(relay.Function([x], relay.add(scaled, relay.cast(x, "float32"))))
    changed = relay.frontend.ChangeDatatype("float32", "custom[example]32")(mod)
    changed = relay.transform.InferType()(changed)
    assert changed["main"].ret_type.dtype == "custom[example]32"
    data = relay.var("data", shape=(3,))
    body = relay.cast(
        relay.Call(changed["main"], [relay.cast(data, "custom[example]32")]), "float32"
    )
    result = relay.create_executor("graph").evaluate(relay.Function([data], body))(
        np.ones(3, "float32")
    )
    np.testing.assert_array_equal(result.numpy(), [2, 3, 4])
