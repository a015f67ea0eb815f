"""The auto-scheduler: schedules searched for whole programs, without templates (Ansor).

@auto_scheduler.register_workload
def matmul(n, m, k): ...

task = auto_scheduler.SearchTask(func=matmul, args=(512, 512, 512), target="llvm")
sch, args = task.apply_best(log_file)
"""

from . import (
    _ffi_api,
    compute_dag,
    loop_state,
    measure_record,
    search_task,
    utils,
    workload_registry,
)
from .compute_dag import ComputeDAG, LayoutRewriteOption, get_shape_from_rewritten_layout
from .hardware import HardwareParams
from .measure_record import (
    RecordReader,
    RecordToFile,
    load_best_record,
    load_records,
    save_records,
)
from .measure_types import MeasureInput, MeasureResult
from .search_task import SearchTask
from .workload_registry import make_workload_key, register_workload
