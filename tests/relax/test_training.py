"""Losses, optimizers and the trainer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tvm
from tvm import relax
from tvm.error import TVMError
from tvm.relax.training import AppendLoss, SetupTrainer, Trainer
from tvm.relax.training.loss import (
    CategoricalCrossEntropyLoss,
    CrossEntropyLoss,
    L1Loss,
    Loss,
    MSELoss,
)
from tvm.relax.training.optimizer import SGD, Adam, MomentumSGD, Optimizer
from tvm.script import ir as I
from tvm.script import relax as R


def _tensor(*shape: int, dtype: str = "float32") -> Any:
    return relax.TensorStructInfo(shape, dtype)


def _call(func: Any, *arrays: np.ndarray) -> np.ndarray:
    mod = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    return vm["main"](*[tvm.nd.array(a) for a in arrays]).numpy()


def test_losses_are_what_they_say() -> None:
    rng = np.random.default_rng(0)
    x, y = [rng.normal(size=(3, 4)).astype("float32") for _ in range(2)]
    shape = _tensor(3, 4)
    np.testing.assert_allclose(_call(L1Loss()(shape, shape), x, y), np.abs(x - y).mean(), 1e-5)
    squares = _call(MSELoss("none")(shape, shape), x, y)
    np.testing.assert_allclose(squares, (x - y) ** 2, 1e-5)
    logits = x - np.log(np.exp(x).sum(1, keepdims=True))
    classes, weights = np.array([1, 3, 0]), np.array([1, 2, 3, 4], "float32")
    loss = CrossEntropyLoss("sum")(shape, _tensor(3, dtype="int64"), _tensor(4))
    wanted = -(logits[range(3), classes] * weights[classes]).sum()
    np.testing.assert_allclose(_call(loss, x, classes, weights), wanted, 1e-5)
    mask = np.array([1, 1, 0, 1])
    loss = CategoricalCrossEntropyLoss("mean", ignore_index=2)(shape, shape, _tensor(4))
    wanted = -(logits * y * mask * weights).mean()
    np.testing.assert_allclose(_call(loss, x, y, weights), wanted, 1e-5)
    with pytest.raises(ValueError, match="requires reduction"):
        MSELoss("all")


def test_further_results_of_a_model_are_returned_behind_the_loss() -> None:
    @I.ir_module
    class Mod:
        @R.function
        def main(x: R.Tensor((2,), "float32")):
            with R.dataflow():
                y = R.exp(x)
                z = R.add(y, x)
                R.output(y, z)
            return y, z

    loss = MSELoss()(_tensor(2), _tensor(2))
    mod = AppendLoss("main", loss)(Mod)
    assert relax.analysis.well_formed(mod)
    func = mod["main_loss"]
    assert len(func.params) == 2 and len(func.body.blocks) == 1
    assert [len(f.struct_info.shape) for f in func.body.body.fields] == [0, 1]
    with pytest.raises(TVMError, match="requires results that the loss takes"):
        AppendLoss("main", MSELoss()(_tensor(3), _tensor(3)))(Mod)


def _model() -> tvm.IRModule:
    @I.ir_module
    class Mod:
        I.module_attrs({"param_num": 2, "state_num": 1})

        @R.function
        def backbone(
            x: R.Tensor((2, 3), "float32"),
            w: R.Tensor((3, 2), "float32"),
            b: R.Tensor((2,), "float32"),
            count: R.Tensor((), "float32"),
        ):
            with R.dataflow():
                m = R.matmul(x, w)
                y = R.add(m, b)
                steps = R.add(count, R.const(1.0, "float32"))
                R.output(y, steps)
            return y, steps

    return Mod


@pytest.mark.parametrize(
    "optimizer", [SGD(0.1, 0.001), MomentumSGD(0.05, 0.5, nesterov=True), Adam(0.1)]
)
def test_models_learn(optimizer: Optimizer) -> None:
    mod = SetupTrainer(MSELoss(), optimizer, [_tensor(2, 2), _tensor(2, 2)])(_model())
    vm = relax.VirtualMachine(relax.build(mod, "llvm"), tvm.cpu())
    trainer = Trainer(mod, vm, tvm.cpu())
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(3, 2)).astype("float32")
    losses = []
    for _ in range(100):
        x = rng.normal(size=(2, 3)).astype("float32")
        losses.append(float(trainer.update(x, x @ weights + 1).numpy()))
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) / 20
    assert float(trainer.export_states()["count"].numpy()) == 100
    x = np.eye(2, 3, dtype="float32")
    np.testing.assert_allclose(trainer.predict(x).numpy(), x @ weights + 1, atol=0.5)
    other = Trainer(mod, vm, tvm.cpu(), zero_init_param_state=False)
    with pytest.raises(TVMError, match="requires values of w, b"):
        other.predict(x)
    other.load_params(trainer.export_params())
    other.zero_init_states()
    np.testing.assert_array_equal(other.predict(x).numpy(), trainer.predict(x).numpy())


def test_what_training_requires_is_said() -> None:
    loss: Loss = MSELoss()
    plain = tvm.IRModule({"backbone": _model()["backbone"]})
    with pytest.raises(ValueError, match="requires the module's attribute 'param_num'"):
        SetupTrainer(loss, SGD(0.1), [_tensor(2, 2)] * 2)(plain)
    with pytest.raises(TVMError, match=r"requires init\(params\)"):
        SGD(0.1).get_function()
    with pytest.raises(TVMError, match="requires float tensors of one dtype"):
        SGD(0.1).init([relax.Var("n", _tensor(2, dtype="int32"))])
