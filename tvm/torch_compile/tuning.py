"""AutoTVM for graphs of TorchDynamo: kernels are measured, and records decide."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tvm import autotvm
from tvm.driver.tvmc.autotuner import tune_tasks
from tvm.ir.module import IRModule
from tvm.runtime.ndarray import NDArray

from .options import Options


@contextmanager
def tuned(mod: IRModule, params: Mapping[str, NDArray], options: Options) -> Iterator[None]:
    """A scope in which the fastest candidates of a module's kernels are known.

    Kernels that the records name already are not measured again.
    """
    if not options.trials and options.tuning_records is None:
        yield
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(options.tuning_records or Path(folder) / "records.json")
        path.touch()
        if options.trials:
            tasks = autotvm.task.extract_from_program(mod, dict(params), options.target)
            known = {inp.task.workload for inp, _ in autotvm.record.load_from_file(str(path))}
            unknown = [task for task in tasks if task.workload not in known]
            if unknown:
                measure = autotvm.measure_option(
                    builder=autotvm.LocalBuilder(),
                    runner=autotvm.LocalRunner(number=4, repeat=1, min_repeat_ms=20),
                )
                tune_tasks(unknown, str(path), measure, "ga", options.trials)
        with autotvm.apply_history_best(str(path)):
            yield
