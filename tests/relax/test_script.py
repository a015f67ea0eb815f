"""Programs as text: what is printed is read back as the same program."""

from __future__ import annotations

import pytest

import tvm
from tvm import relax
from tvm.error import DiagnosticError
from tvm.ir import assert_structural_equal
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tir as T


@I.ir_module
class Everything:
    @T.prim_func
    def copy(x: T.handle, y: T.handle):
        n = T.int64()
        A = T.match_buffer(x, (n,))
        B = T.match_buffer(y, (n,))
        for i in range(n):
            with T.block("b"):
                v = T.axis.spatial(n, i)
                B[v] = A[v] + 1.0

    @R.function
    def helper(x: R.Tensor(("n", "n + 1"), "float32")) -> R.Shape(["n"]):
        n = T.int64()
        return R.shape([n])

    @R.function(pure=False)
    def main(x: R.Tensor(("n",), "float32"), c: R.Tensor((), "bool"), o: R.Object) -> R.Tuple(
        R.Tensor(ndim=1, dtype="float32"), R.Object
    ):
        n = T.int64()
        R.func_attr({"relax.force_pure": True})
        cls = Everything
        with R.dataflow():
            a = R.call_tir(cls.copy, (x,), out_sinfo=R.Tensor((n,), "float32"))
            b: R.Tensor((n,), "float32") = R.add(a, R.exp(x))
            s = R.strided_slice(b, [0], [1], [n - 1], assume_inbound=False)
            R.output(b)
        if c:
            z = R.add(b, b)
        else:
            z = b
        m = T.int64()
        w = R.match_cast(z, R.Tensor((m,), "float32"))

        @R.function
        def inner(y: R.Tensor(("k",), "float32")) -> R.Tensor(("k",), "float32"):
            return R.nn.softmax(R.multiply(y, R.const(2.0, "float32")), axis=-1)

        q = inner(w)
        t = (q, R.call_pure_packed("f", q, R.prim_value(m + 1), sinfo_args=R.Object))
        p = R.call_packed("g", R.str("text"), R.dtype("int8"), sinfo_args=(R.Tensor((m,), "int8"),))
        R.print(p, format="{}")
        return (t[0], o)


def test_text_is_read_back() -> None:
    text = Everything.script(show_meta=True)
    assert_structural_equal(tvm.script.from_source(text), Everything)
    assert tvm.script.from_source(text).script(show_meta=True) == text


def test_tensors_are_kept_apart() -> None:
    import numpy as np

    @R.function
    def func(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
        return R.add(x, R.const(np.array([1, 2], "float32")))

    text = func.script(show_meta=True)
    assert 'metadata["relax.expr.Constant"][0]' in text
    assert_structural_equal(tvm.script.from_source(text), func)


def test_annotations_that_do_not_fit_are_rejected() -> None:
    with pytest.raises(tvm.error.DiagnosticError, match="Invalid annotation"):

        @R.function
        def func(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
            s = R.match_cast(x, R.Tensor((2,), "float32"))
            y: R.Tensor((3,), "float32") = s
            return y


def test_functions_without_a_result_are_rejected() -> None:
    with pytest.raises(tvm.TVMError, match="must have a return value"):

        @R.function
        def func(x: R.Tensor((2,), "float32")):
            y = R.exp(x)


def test_struct_info_is_printed_in_the_words_of_programs() -> None:
    assert str(relax.TensorStructInfo((2, 3), "int8")) == 'R.Tensor((2, 3), dtype="int8")'
    assert str(relax.TensorStructInfo(None, "", ndim=2)) == "R.Tensor(ndim=2)"
    assert str(relax.FuncStructInfo.opaque_func()) == "R.Callable"
    assert str(relax.TupleStructInfo([relax.ObjectStructInfo()])) == "R.Tuple(R.Object)"


def test_an_ill_formed_function_is_rejected() -> None:
    with pytest.raises(DiagnosticError, match="is used before it is defined"):

        @R.function
        def bad(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
            m = T.int64()
            gv: R.Tensor((m,), "float32") = R.call_dps_packed(
                "f", (x,), out_sinfo=R.Tensor((m,), "float32")
            )
            return gv


def test_an_ill_formed_function_is_accepted_where_that_is_asked_for() -> None:
    @R.function(check_well_formed=False)
    def allowed(x: R.Tensor(("n",), "float32")):
        m = T.int64()
        gv: R.Tensor((m,), "float32") = R.call_dps_packed(
            "f", (x,), out_sinfo=R.Tensor((m,), "float32")
        )
        return gv

    assert not relax.analysis.well_formed(allowed)


def test_an_ill_formed_module_is_rejected() -> None:
    with pytest.raises(DiagnosticError, match="impure"):

        @I.ir_module
        class Bad:
            @R.function
            def main(x: R.Tensor((2,), "float32")) -> R.Tensor((2,), "float32"):
                _ = R.print(x, format="{}")
                return x
