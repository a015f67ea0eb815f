"""AutoTVM: templates with knobs, measured candidates, records, and schedules that use them.

@autotvm.template("tutorial/matmul")
def matmul(N, L, M, dtype): ...

task = autotvm.task.create("tutorial/matmul", args=(512, 512, 512, "float32"), target="llvm")
autotvm.tuner.XGBTuner(task).tune(
    n_trial=100,
    measure_option=autotvm.measure_option(autotvm.LocalBuilder(), autotvm.LocalRunner()),
    callbacks=[autotvm.callback.log_to_file("matmul.log")],
)
with autotvm.apply_history_best("matmul.log"), tvm.target.Target("llvm"):
    s, arg_bufs = matmul(512, 512, 512, "float32")
"""

from tvm.support.later import names_from_above as _names_from_above

from . import database, env, feature, measure, record, task, tophub, tuner, utils
from .env import GLOBAL_SCOPE
from .measure import (
    DaskBuilder,
    DaskRunner,
    LocalBuilder,
    LocalRunner,
    MeasureErrorNo,
    MeasureInput,
    MeasureResult,
    RPCRunner,
    measure_option,
)
from .task import ApplyFixedConfig as apply_fixed_config
from .task import ApplyGraphBest as apply_graph_best
from .task import ApplyHistoryBest as apply_history_best
from .task import (
    ConfigEntity,
    ConfigSpace,
    DispatchContext,
    FallbackContext,
    create,
    get_config,
    register_topi_compute,
    register_topi_schedule,
    template,
)
from .tuner import callback

__getattr__ = _names_from_above(__name__)
