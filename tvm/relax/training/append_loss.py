"""A model's function with a loss behind it.

def main(x, w): return matmul(x, w)             def main_loss(x, w, targets):
def mse_loss(predictions, targets): ...   ->        lv = matmul(x, w)
                                                    return mean(square(lv - targets))
"""

from __future__ import annotations

from tvm.error import TVMError
from tvm.ir.expr import RelayExpr
from tvm.ir.module import IRModule
from tvm.ir.transform import Pass
from tvm.relax.base import update_struct_info
from tvm.relax.bind import copy_with_new_vars, substituted
from tvm.relax.expr import (
    Binding,
    BindingBlock,
    DataflowBlock,
    DataflowVar,
    Function,
    SeqExpr,
    Tuple,
    Var,
)
from tvm.relax.transform.pass_kinds import whole_module_pass


def AppendLoss(
    func_name: str,
    loss_function: Function,
    num_backbone_outputs: int = 1,
    new_func_name: str | None = None,
) -> Pass:
    """Add a function that computes the loss of what another one gives.

    Parameters
    ----------
    func_name : str
        The model's function.
    loss_function : Function
        Its first parameters take the model's first results; the others become parameters of the new
        function, behind those of the model.
    num_backbone_outputs : int
        How many results the loss takes. Further ones are returned behind the loss.
    new_func_name : str, optional
        By default ``func_name + "_loss"``.
    """
    name = new_func_name or f"{func_name}_loss"

    def run(mod: IRModule) -> IRModule:
        func = mod[func_name]
        if not isinstance(func, Function):
            raise TVMError(f"AppendLoss requires a relax function, got {func_name}")
        made = _appended(func, loss_function, num_backbone_outputs, name)
        new = mod.clone()
        new[name] = made
        return new

    return whole_module_pass("AppendLoss", run)


def _appended(model: Function, loss: Function, count: int, name: str) -> Function:
    model, loss = copy_with_new_vars(model), copy_with_new_vars(loss)
    body = model.body.body
    results = list(body.fields) if isinstance(body, Tuple) else [body]
    if len(results) < count or len(loss.params) < count:
        raise TVMError(
            f"AppendLoss requires {count} results of the model and parameters of the loss, got "
            f"{len(results)} and {len(loss.params)}"
        )
    for result, param in zip(results[:count], loss.params, strict=False):
        if not param.struct_info.is_base_of(result.struct_info):
            raise TVMError(
                f"AppendLoss requires results that the loss takes, got {result.struct_info} for "
                f"{param.name_hint} which is {param.struct_info}"
            )
    values = dict(zip(loss.params[:count], results, strict=False))
    blocks = [*model.body.blocks, *[_moved(block, values) for block in loss.body.blocks]]
    value = substituted(loss.body.body, values)
    found = [value, *results[count:]]
    new = Tuple(found) if len(found) > 1 else value
    seq = SeqExpr(_merged(blocks, new), new)
    update_struct_info(seq, new.struct_info_)
    attrs = {**dict(model.attrs or {}), "global_symbol": name}
    params = [*model.params, *loss.params[count:]]
    return Function(params, seq, None, model.is_pure and loss.is_pure, attrs)


def _moved(block: BindingBlock, values: dict[Var, RelayExpr]) -> BindingBlock:
    bindings = [b.replace(value=substituted(b.value, values)) for b in block.bindings]
    return type(block)(bindings)


def _merged(blocks: list[BindingBlock], result: RelayExpr) -> list[BindingBlock]:
    """Dataflow blocks alone as one, of which only what is returned leaves."""
    if not all([isinstance(block, DataflowBlock) for block in blocks]):
        return blocks
    left = result.fields if isinstance(result, Tuple) else (result,)
    local: dict[Var, RelayExpr] = {}
    bindings: list[Binding] = []
    for binding in [b for block in blocks for b in block.bindings]:
        value = substituted(binding.value, local) if local else binding.value
        var = binding.var
        if not isinstance(var, DataflowVar) and not any([var is other for other in left]):
            local[var] = var = DataflowVar(var.vid, var.struct_info_)
        bindings.append(binding.replace(var=var, value=value))
    return [DataflowBlock(bindings)]
