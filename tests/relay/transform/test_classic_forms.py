"""What passes leave, written as programs write what they expect."""

from __future__ import annotations

import pytest

import tvm
from tvm import relay
from tvm.ir import assert_structural_equal
from tvm.relay import transform
from tvm.relay.dataflow_pattern import is_op, wildcard
from tvm.relay.testing import run_infer_type, run_opt_pass
from tvm.relay.testing.temp_op_attr import TempOpAttr


def var(name: str, *shape: int) -> relay.Var:
    return relay.var(name, shape=shape)


def test_composite_functions_say_their_types() -> None:
    a, b, x, y = [var(name, 10, 10) for name in "abxy"]
    pattern = is_op("nn.relu")(is_op("add")(wildcard(), wildcard()))
    merge = transform.MergeComposite([("add_relu", pattern)])
    found = run_opt_pass(relay.Function([a, b], relay.nn.relu(relay.add(a, b))), merge)
    inner = relay.Function([x, y], relay.nn.relu(relay.add(x, y)))
    inner = inner.with_attr("Composite", "add_relu")
    inner = inner.with_attr("PartitionedFromPattern", "add_nn.relu_")
    expected = run_infer_type(relay.Function([a, b], relay.Call(inner, [a, b])))
    assert_structural_equal(found, expected, map_free_vars=True)


def test_layouts_of_users_need_no_target() -> None:
    def alter(attrs, inputs, tinfos, out_type):
        layouts = {"data_layout": "NCHW16c", "kernel_layout": "OIHW16i"}
        return relay.nn.conv2d(*inputs, **{**dict(attrs), **layouts})

    x, w = var("x", 1, 64, 8, 8), var("w", 64, 64, 3, 3)
    attrs = {"channels": 64, "kernel_size": (3, 3), "padding": (1, 1)}
    before = relay.Function([x, w], relay.nn.relu(relay.nn.conv2d(x, w, **attrs)))
    assert_structural_equal(run_opt_pass(before, transform.AlterOpLayout()), run_infer_type(before))
    with TempOpAttr("nn.conv2d", "FTVMAlterOpLayout", alter):
        found = run_opt_pass(before, transform.AlterOpLayout())
    data = relay.layout_transform(x, "NCHW", "NCHW16c")
    weight = relay.layout_transform(w, "OIHW", "OIHW16i")
    blocked = relay.nn.conv2d(data, weight, data_layout="NCHW16c", kernel_layout="OIHW16i", **attrs)
    after = relay.layout_transform(relay.nn.relu(blocked), "NCHW16c", "NCHW")
    assert_structural_equal(found, run_infer_type(relay.Function([x, w], after)))


SOURCE = """
#[version = "0.0.5"]
type Opt[A] { Some(A), None }
def @main(%x: Tensor[(10, 5), float32], %t: (int32, Tensor[(?, 3), float64])) {
  let %r = ref(%x);
  let %_ = ref_write(%r, tanh(ref_read(%r)));
  let %o = Some(%x);
  %0 = match (%o) { Some(%v) => %v, None => %x };
  (if (%t.0 == 3) { %0 } else { nn.relu(%0) }, (), -5, 1e-5f, 3.5f64, True, 2i64)
}
"""


@pytest.mark.parametrize("way", ["text", "json"])
def test_programs_with_data_types_go_round(way: str) -> None:
    mod = relay.fromtext(SOURCE)
    if way == "text":
        again = relay.fromtext(mod.astext())
    else:
        again = transform.InferType()(tvm.ir.load_json(tvm.ir.save_json(mod)))
    assert_structural_equal(mod, again)
    assert tvm.ir.structural_hash(mod) == tvm.ir.structural_hash(again)
    other = relay.fromtext(
        SOURCE.replace("Some(A)", "Some((A, A))")
        .replace("Some(%x)", "Some((%x, %x))")
        .replace("=> %v", "=> %v.1")
    )
    assert not tvm.ir.structural_equal(mod, other)


def test_rounded_numbers_are_equal_in_assertions_alone() -> None:
    x = var("x", 1, 4, 2, 2)
    params = [var(name, 4) for name in "gbmv"]
    exact = relay.nn.batch_norm(x, *params, epsilon=1e-5)[0]
    rounded = relay.nn.batch_norm(x, *params, epsilon=9.999999747378752e-06)[0]
    assert_structural_equal(exact, rounded, map_free_vars=True)
    assert not tvm.ir.structural_equal(exact, rounded, map_free_vars=True)
    far = relay.nn.batch_norm(x, *params, epsilon=1e-4)[0]
    with pytest.raises(ValueError, match="epsilon"):
        assert_structural_equal(exact, far, map_free_vars=True)


def test_an_unknown_dtype_is_shown_in_its_place() -> None:
    with pytest.raises(
        tvm.error.DiagnosticError, match="requires a dtype here, got `float33`"
    ) as e:
        relay.fromtext('#[version = "0.0.5"]\nfn (%x: Tensor[(10,), float33]) { %x }')
    assert "^^^^^^^" in str(e.value)


def test_variables_of_patterns_are_bound_by_them() -> None:
    source = """
    #[version = "0.0.5"]
    type List[A] { Cons(A, List[A]), Nil }
    def @length[A](%l: List[A]) -> int32 {
      match (%l) { Cons(_, %rest) => 1 + @length(%rest), Nil => 0 }
    }
    def @main() -> int32 { @length(Cons(1, Cons(2, Nil))) }
    """
    mod, again = relay.fromtext(source), relay.fromtext(source.replace("%rest", "%tail"))
    assert_structural_equal(mod, again)
    assert tvm.ir.structural_hash(mod) == tvm.ir.structural_hash(again)
    other = relay.fromtext(
        source.replace("Cons(_, %rest) => 1 + @length(%rest)", "Cons(_, %rest) => 1 + @length(%l)")
    )
    assert not tvm.ir.structural_equal(mod, other)
