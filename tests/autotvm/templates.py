"""Templates that several tests tune."""

from __future__ import annotations

from typing import Any

from tvm import autotvm, te


@autotvm.template("tests/matmul")
def matmul(n: int, k: int, m: int, dtype: str) -> tuple[Any, list[Any]]:
    """A product whose two output axes are split."""
    a = te.placeholder((n, k), name="A", dtype=dtype)
    b = te.placeholder((k, m), name="B", dtype=dtype)
    r = te.reduce_axis((0, k), name="r")
    c = te.compute((n, m), lambda i, j: te.sum(a[i, r] * b[r, j], axis=r), name="C")
    s = te.create_schedule(c.op)
    y, x = s[c].op.axis
    cfg = autotvm.get_config()
    cfg.define_split("tile_y", y, num_outputs=2)
    cfg.define_split("tile_x", x, num_outputs=2)
    yo, yi = cfg["tile_y"].apply(s, c, y)
    xo, xi = cfg["tile_x"].apply(s, c, x)
    s[c].reorder(yo, xo, s[c].op.reduce_axis[0], yi, xi)
    return s, [a, b, c]


@autotvm.register_topi_compute("tests/scale.x86")
def scale(cfg: Any, data: Any, factor: float) -> Any:
    """Each element times a number."""
    cfg.define_knob("twice", [False, True])
    return te.compute(data.shape, lambda *i: data(*i) * factor, name="scale")


@autotvm.register_topi_schedule("tests/scale.x86")
def schedule_scale(cfg: Any, outs: Any) -> Any:
    """One loop, split."""
    s = te.create_schedule(outs[0].op)
    cfg.define_split("tile", outs[0].op.axis[0], num_outputs=2)
    cfg["tile"].apply(s, outs[0], outs[0].op.axis[0])
    return s


def matmul_task(n: int = 32, k: int = 16, m: int = 64) -> Any:
    """The task of a small product."""
    return autotvm.task.create("tests/matmul", args=(n, k, m, "float32"), target="llvm")


def record_of(task: Any, index: int, cost: float, error_no: int = 0) -> tuple[Any, Any]:
    """A record as if a candidate had been measured."""
    inp = autotvm.MeasureInput(task.target, task, task.config_space.get(index))
    return inp, autotvm.MeasureResult((cost,), error_no, 1.0, 0.0)
