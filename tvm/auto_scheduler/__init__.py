"""The auto-scheduler: schedules searched for whole programs, without templates (Ansor).

@auto_scheduler.register_workload
def matmul(n, m, k): ...

task = auto_scheduler.SearchTask(func=matmul, args=(512, 512, 512), target="llvm")
task.tune(auto_scheduler.TuningOptions(num_measure_trials=64, measure_callbacks=[RecordToFile(log)]))
sch, args = task.apply_best(log)
"""

from tvm.driver.tuners import is_auto_scheduler_enabled
from tvm.support.later import names_from_above as _names_from_above

from . import (
    _ffi_api,
    compute_dag,
    cost_model,
    dispatcher,
    feature,
    ffi,
    loop_state,
    measure,
    measure_record,
    search_policy,
    search_task,
    task_scheduler,
    utils,
    workload_registry,
)
from .compute_dag import ComputeDAG, LayoutRewriteOption, get_shape_from_rewritten_layout
from .cost_model import RandomModel, XGBModel
from .dispatcher import ApplyHistoryBest, ApplyHistoryBestOrSample, DispatchContext
from .hardware import HardwareParams
from .measure import (
    DaskBuilder,
    DaskRunner,
    LocalBuilder,
    LocalRPCMeasureContext,
    LocalRunner,
    MeasureInput,
    MeasureResult,
    RPCRunner,
    register_task_input_check_func,
)
from .measure_record import (
    RecordReader,
    RecordToFile,
    load_best_record,
    load_records,
    save_records,
)
from .search_policy import (
    EmptyPolicy,
    PreloadCustomSketchRule,
    PreloadMeasuredStates,
    SketchPolicy,
)
from .search_task import (
    SearchTask,
    TuningOptions,
    auto_schedule,
    create_task,
)
from .task_scheduler import TaskScheduler
from .workload_registry import make_workload_key, register_workload

__getattr__ = _names_from_above(__name__)

__all__ = [
    "ApplyHistoryBest", "ApplyHistoryBestOrSample", "ComputeDAG", "DaskBuilder", "DaskRunner", "DispatchContext", "EmptyPolicy", "HardwareParams", "LayoutRewriteOption", "LocalBuilder",
    "LocalRPCMeasureContext", "LocalRunner", "MeasureInput", "MeasureResult",
    "PreloadCustomSketchRule", "PreloadMeasuredStates", "RPCRunner", "RandomModel",
    "RecordReader", "RecordToFile", "SearchTask", "SketchPolicy", "TaskScheduler",
    "TuningOptions", "XGBModel", "auto_schedule", "compute_dag", "cost_model", "create_task", "dispatcher",
    "feature", "get_shape_from_rewritten_layout", "load_best_record", "load_records",
    "is_auto_scheduler_enabled", "loop_state", "make_workload_key", "measure", "measure_record",
    "register_task_input_check_func", "register_workload", "save_records", "search_policy",
    "search_task", "task_scheduler", "utils", "workload_registry",
]  # fmt: skip
