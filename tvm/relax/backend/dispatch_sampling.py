"""Draws from distributions become cumulative sums and a search in them.

multinomial_from_uniform(prob, u, rows)    ->    call_tir(get_sample_index, (cumsum(prob), u, rows))
"""

# mypy: disable-error-code="untyped-decorator,valid-type,no-untyped-def"
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm.error import TVMError
from tvm.ir.op import Op
from tvm.ir.transform import Pass
from tvm.relax.expr import Call
from tvm.relax.op.base import call_tir
from tvm.relax.op.statistical import cumsum
from tvm.relax.transform.pass_kinds import whole_module_pass
from tvm.script import tir as T
from tvm.tir.expr import const
from tvm.tir.function import PrimFunc

from .utils import BackendDispatcher


def sample_index_function(dtypes: Sequence[str]) -> PrimFunc:
    """The first place of a row where the cumulative sum is above a number, else the last.

    Parameters
    ----------
    dtypes : list of str
        The data types of the sums, of the numbers, of the rows' indices and of the result.
    """
    prob_dtype, sample_dtype, index_dtype, dtype = dtypes
    zero = const(0, dtype)

    @T.prim_func(private=True)
    def get_sample_index(A: T.handle, B: T.handle, C: T.handle, D: T.handle) -> None:
        batch, vocab_size = T.int64(), T.int64()
        prob = T.match_buffer(A, (batch, vocab_size), prob_dtype)
        samples = T.int64()
        uniform = T.match_buffer(B, (samples, 1), sample_dtype)
        rows = T.match_buffer(C, (samples, 1), index_dtype)
        result = T.match_buffer(D, (samples, 1), dtype)
        for ax0, ax1 in T.grid(samples, vocab_size):
            with T.block("T_get_sample_index"):
                v0, v1 = T.axis.remap("SS", [ax0, ax1])
                if (
                    uniform[v0, T.int64(0)] < prob[rows[v0, T.int64(0)], v1]
                    or v1 + T.int64(1) == vocab_size
                ):
                    if v1 == T.int64(0):
                        result[v0, 0] = zero
                    elif uniform[v0, T.int64(0)] >= prob[rows[v0, T.int64(0)], v1 - T.int64(1)]:
                        result[v0, 0] = v1.astype(dtype)

    assert isinstance(get_sample_index, PrimFunc)
    return get_sample_index


class SamplingDispatcher(BackendDispatcher):
    """Replaces calls of sampling operators by what the target runs."""

    def visit_call_(self, call: Call) -> Any:
        call = super().visit_call_(call)
        if not isinstance(call.op, Op) or call.op.name != "relax.multinomial_from_uniform":
            return call
        if self.is_gpu_target(self._get_target(call.struct_info)):
            raise TVMError(
                "multinomial_from_uniform has kernels for CPUs only",
                at=call,
                hint="let the sampling run on a CPU: relax.op.to_vdevice",
            )
        prob, uniform, rows = call.args
        kinds = [str(arg.struct_info.dtype) for arg in call.args]
        sums = self.builder_.emit(cumsum(prob, axis=1, dtype=kinds[0], exclusive=False))
        search = sample_index_function((*kinds, str(call.attrs.dtype)))
        gvar = self.builder_.add_func(search, "get_sample_index")
        return call_tir(gvar, [sums, uniform, rows], out_sinfo=call.struct_info)


def DispatchSampling() -> Pass:
    """Let sampling operators be what the target runs.

    Returns
    -------
    Pass
    """
    return whole_module_pass("DispatchSampling", lambda mod: SamplingDispatcher(mod).transformed())
