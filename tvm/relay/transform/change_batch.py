"""Another number of rows in the inputs of a network.

fn (%data: Tensor[(1, 3, 8, 8), float32])  ->  fn (%data: Tensor[(16, 3, 8, 8), float32])
"""

from __future__ import annotations

from collections.abc import Mapping

from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.ir.transform import PassContext
from tvm.ir.type import TensorType
from tvm.relay.analysis.infer import tensor_type_of
from tvm.relay.expr import Var
from tvm.relay.function import Function
from tvm.relay.transform.common import function_pass
from tvm.relay.traverse import substitute


@function_pass(opt_level=0)
class ChangeBatch:
    """The pass.

    Parameters
    ----------
    data : the parameters to change, each with the axis of the batch.
    batch_size : the new extent.
    """

    def __init__(self, data: Mapping[Var, int], batch_size: int = 16) -> None:
        self.data = {var.name_hint: int(axis) for var, axis in data.items()}
        self.batch_size = batch_size

    def transform_function(self, func: Function, mod: IRModule, ctx: PassContext) -> Function:
        """`func` over the larger or smaller inputs, its types to be found anew."""
        missing = self.data.keys() - {p.name_hint for p in func.params}
        if missing:
            raise TVMError(f"ChangeBatch requires the parameters {sorted(missing)} in the function")
        renamed = {p: Var(p.name_hint, self._type(p)) for p in func.params}
        body = substitute(func.body, renamed)
        return Function(list(renamed.values()), body, None, func.type_params, func.attrs)

    def _type(self, param: Var) -> TensorType:
        ty = tensor_type_of(param)
        axis = self.data.get(param.name_hint)
        if axis is None:
            return ty
        axis %= len(ty.shape)
        shape = [self.batch_size if i == axis else dim for i, dim in enumerate(ty.shape)]
        return TensorType(tuple(shape), ty.dtype)
