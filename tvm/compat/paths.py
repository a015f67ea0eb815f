"""Imports of classic module paths whose names live in the package above them today.

from tvm.tir.transform.transform import Simplify    is    tvm.tir.transform.Simplify
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tvm.support.deprecation import warn_renamed
from tvm.support.later import provide

from . import MEANINGS, MODULES

# package -> the modules that it had
CLASSIC = {
    "tvm.ir": "tensor_type type_relation",
    "tvm.relax.analysis": "analysis",
    "tvm.relax.op.nn": "nn",
    "tvm.relax.transform": "transform",
    "tvm.relay": "type_relation",
    "tvm.relay.analysis": "analysis",
    "tvm.relay.op": "_make tensor transform",
    "tvm.relay.op.image": "image",
    "tvm.relay.op.nn": "_make nn",
    "tvm.relay.quantize": "_annotate _calibrate _partition _partition_conversions",
    "tvm.relay.transform": "transform",
    "tvm.tir.analysis": "analysis",
    "tvm.tir.transform": "transform",
    "tvm.topi": "scatter_elements sparse_fill_empty_rows sparse_reshape",
    "tvm.topi.generic": "conv2d default extern image injective math nn search sort vision",
    "tvm.topi.nn": """
        batch_norm batch_to_space_nd bitserial_conv2d bitserial_dense bitserial_util bnn
        conv1d_transpose conv3d conv3d_transpose depth_to_space flatten group_norm instance_norm
        layer_norm rms_norm space_to_batch_nd space_to_depth
    """,
    "tvm.topi.testing": """
        adaptive_pool_python attention_python batch_matmul batch_norm batch_to_space_nd
        conv1d_ncw_python conv1d_transpose_ncw_python conv2d_backcward_weight_python
        conv2d_hwcn_python conv2d_nchw_python conv2d_nhwc_python conv2d_transpose_python
        conv3d_ncdhw_python conv3d_ndhwc_python conv3d_transpose_ncdhw_python
        correlation_nchw_python deformable_conv2d_python
        crop_and_resize_python dense depth_to_space depthwise_conv2d_python dilate_python
        gather_nd_python gather_python grid_sample_python group_norm_python instance_norm_python
        l2_normalize_python layer_norm_python lrn_python lstm_python matrix_set_diag nll_loss
        one_hot pool_grad_python poolnd_python resize_python rms_norm_python searchsorted
        sequence_mask_python slice_axis_python softmax_python space_to_batch_nd space_to_depth
        strided_slice_python
    """,
    "tvm.topi.x86": """
        injective reduction binarize_pack binary_dense bitserial_conv2d bitserial_dense concat conv1d
        conv2d_avx_common conv2d_int8 conv2d_transpose conv3d conv3d_transpose depthwise_conv2d
        group_conv2d nn pooling roi_align sparse
    """,
}

# modules and packages that stood elsewhere, and where they are
MOVED = {
    "tvm.contrib.rpc": "tvm.rpc",
    "tvm.meta_schedule.testing.te_workload": "tvm.testing.te_workload",
    "tvm.relay.op.contrib": "tvm.relay.contrib",
}

# modules of releases 0.6 and 0.7, and what they are called today
RENAMED = {
    # tvm.codegen is the name of a package of ours
    **{f"tvm.{name}": place for name, place in MODULES.items() if name != "codegen"},
    "tvm.autotvm.util": "tvm.autotvm.utils",
    "tvm.relay.backend.compile_engine": "tvm.relay.backend.te_compiler",
    "tvm.relay.feature": "tvm.relay.analysis.feature",
    "tvm.relay.module": "tvm.compat.relay",
    "tvm.relay.testing.config": "tvm.relay.testing",
    "tvm.te.hybrid.util": "tvm.te.hybrid.utils",
    "tvm.topi.util": "tvm.topi.utils",
}

# package -> names that it had, and the layers above it define: (name, module or module:attribute)
FROM_ABOVE = {
    "tvm.auto_scheduler.search_policy": {
        "rank_first_candidates": "tvm.topi.cpu.first_candidates:rank_first_candidates",
    },
    "tvm.autotvm": {"graph_tuner": "tvm.autotvm.graph_tuner"},
    "tvm.autotvm.record": {"ApplyHistoryBest": "tvm.autotvm.task:ApplyHistoryBest"},
    "tvm.autotvm.task": {
        "extract_from_multiple_program": "tvm.autotvm.task.relay_integration:extract_from_multiple_program",
        "extract_from_program": "tvm.autotvm.task.relay_integration:extract_from_program",
        "relay_integration": "tvm.autotvm.task.relay_integration",
    },
    "tvm.relay.backend.kernels": {
        "schedule_of": "tvm.auto_scheduler.dispatcher:schedule_of",
    },
    "tvm.auto_scheduler": {
        name: f"tvm.auto_scheduler.relay_integration{suffix}"
        for name, suffix in (
            ("extract_tasks", ":extract_tasks"),
            ("relay_integration", ""),
            ("remove_index_check", ":remove_index_check"),
            ("rewrite_compute_body", ":rewrite_compute_body"),
            ("rewrite_tensor_shape", ":rewrite_tensor_shape"),
        )
    },
    "tvm.relay": {
        "tensor": "tvm.relay.op.tensor",
        **{name: f"tvm.compat.relay:{name}" for name in ("Module", "build_config", "module")},
    },
    "tvm.relay.analysis": {
        "alpha_equal": "tvm.ir:structural_equal",
        "extract_fused_functions": "tvm.relay.transform.fused_functions:extract_fused_functions",
        "get_calibration_data": "tvm.relay.calibration:get_calibration_data",
    },
    "tvm.relay.expr": {"bind": "tvm.relay.traverse:bind"},
    "tvm.relay.expr_functor": {"Call": "tvm.relay.expr:Call"},
    "tvm.relay.op": {
        "const": "tvm.relay.expr:const",
        **{name: f"tvm.relay.op.{name}" for name in ("contrib", "tensor", "transform")},
    },
    "tvm.relay.op.image": {"image": "tvm.relay.op.image.image"},
    "tvm.relay.op.nn": {"Constant": "tvm.relay.expr:Constant", "nn": "tvm.relay.op.nn.nn"},
    "tvm.relay.testing": {
        "ctx_list": "tvm.testing:enabled_targets",
        "enabled_targets": "tvm.testing:enabled_targets",
    },
    "tvm.runtime.script_printer": {
        name: f"tvm.ir.script_printer:{name}" for name in ("PrinterConfig", "Scriptable")
    },
    "tvm.support": {"FrontendTestModule": "tvm.runtime.frontend_module:FrontendTestModule"},
    "tvm.tir": {
        "Schedule": "tvm.tir.schedule:Schedule",
        "ScheduleState": "tvm.tir.schedule:ScheduleState",
        "schedule": "tvm.tir.schedule",
        "tensor_intrin": "tvm.tir.tensor_intrin",
    },
    "tvm.tir.analysis": {
        "get_vtcm_compaction_passes": "tvm.tir.pipeline:get_vtcm_compaction_passes"
    },
    "tvm.topi.arm_cpu.dense_alter_op": {
        "_alter_dense": "tvm.relay.op.nn.dense_layouts:alter_dense"
    },
    "tvm.topi.sparse.utils": {
        name: f"tvm.relay.data_dep_optimization.random_weights:{name}"
        for name in ("convert_model_dense_to_sparse", "random_sparse_dense_params")
    },
    "tvm.topi.x86.dense_alter_op": {
        "_alter_dense_layout": "tvm.relay.op.nn.dense_layouts:alter_dense_layout"
    },
    "tvm.tir.op": {"Op": "tvm.ir.op:Op"},
    "tvm.tir.transform": {
        "DefaultGPUSchedule": "tvm.driver.default_gpu_schedule:DefaultGPUSchedule"
    },
}


# modules of parts of operators' records (`facets.py`), and the beginnings of those operators' names
FACETS: dict[str, tuple[str, ...]] = {
    "tvm.relay.op._algorithm": ("dyn.",),
    "tvm.relay.op._reduce": ("dyn.",),
    "tvm.relay.op._tensor": ("dyn.",),
    "tvm.relay.op._tensor_grad": ("nn.", "dyn."),
    "tvm.relay.op._transform": ("dyn.",),
    "tvm.relay.op.dyn._algorithm": ("dyn.",),
    "tvm.relay.op.dyn._tensor": ("dyn.",),
    "tvm.relay.op.dyn._transform": ("dyn.",),
    "tvm.relay.op.image._image": ("image.",),
    "tvm.relay.op.nn._nn": ("nn.",),
    "tvm.relay.op.vision._rcnn": ("vision.",),
    "tvm.relay.op.vision._vision": ("vision.",),
}


class Facade(ModuleType):
    """A module that looks its names up in the package above it.

    Importing it puts it in the place of a function of the same name, such as
    ``tvm.topi.nn.layer_norm``; so it can be called as that function.
    """

    _package: ModuleType
    _function: Any = None

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and hasattr(self._package, name):
            found = getattr(self._package, name)
            return self._function if found is self else found
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._function is None:
            raise TypeError(f"module {self.__name__!r} is not callable")
        return self._function(*args, **kwargs)


class ClassicPaths(MetaPathFinder, Loader):
    """Finds what no other finder found, among `CLASSIC`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package, _, name = fullname.rpartition(".")
        if name in CLASSIC.get(package, "").split():
            return ModuleSpec(fullname, self)
        if fullname in MOVED:
            return ModuleSpec(fullname, self, is_package=True)
        if (
            fullname in RENAMED
            or fullname in FACETS
            or _moved_with_package(package, name) is not None
        ):
            return ModuleSpec(fullname, self)
        if any([path.rpartition(".")[0] == fullname for path in MOVED]):
            return ModuleSpec(fullname, self, is_package=True)
        if package.startswith("tvm.topi") and _absent_library(package, name) is not None:
            return ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        package, _, name = spec.name.rpartition(".")
        if spec.name in FACETS:
            return ModuleType(spec.name)
        return _absent_library(package, name) or Facade(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if prefixes := FACETS.get(module.__name__, ()):
            reader = importlib.import_module("tvm.compat.facets").facet_reader
            vars(module)["__getattr__"] = reader(module.__name__, prefixes)
        if not isinstance(module, Facade):
            return
        package, _, name = module.__name__.rpartition(".")
        if today := RENAMED.get(module.__name__):
            warn_renamed(module.__name__, MEANINGS.get(today, today))
            sys.modules[module.__name__] = importlib.import_module(today)
            return
        if moved := _moved_with_package(package, name):
            sys.modules[module.__name__] = importlib.import_module(moved)
            return
        if module.__name__ in MOVED:
            module._package = importlib.import_module(MOVED[module.__name__])
            vars(module)["__all__"] = getattr(module._package, "__all__", dir(module._package))
            return
        module._package = importlib.import_module(package)
        module._function = vars(module._package).get(name)


def _moved_with_package(package: str, name: str) -> str | None:
    """Where a module of a package in `MOVED` is: the same module, under both paths."""
    if package not in MOVED:
        return None
    spec = importlib.util.find_spec(f"{MOVED[package]}.{name}")
    return None if spec is None else spec.name


def _absent_library(package: str, name: str) -> ModuleType | None:
    """A module of an operator library of topi that has names alone, such as ``tvm.topi.cuda``."""
    absent = importlib.import_module("tvm.topi.devices").AbsentLibrary
    parent = importlib.import_module(package)
    if isinstance(parent, absent):
        part: ModuleType = parent.part(name)
        return part
    found = vars(parent).get(name)
    return found if isinstance(found, absent) else None


def install() -> None:
    """Ask here last when a module is imported, and for the names in `FROM_ABOVE`.

    Modules that a package had are its attributes as well, as they were imported with it.
    """
    renamed = [path.rpartition(".")[::2] for path in RENAMED]
    for package in {**FROM_ABOVE, **CLASSIC, **dict(renamed)}:
        if package == "tvm":
            continue  # has them by itself
        modules = [name for name in CLASSIC.get(package, "").split() if not name.startswith("_")]
        modules += [name for of, name in renamed if of == package]
        paths = {name: f"{package}.{name}" for name in modules}
        provide(package, {**paths, **FROM_ABOVE.get(package, {})})
    if not any([isinstance(finder, ClassicPaths) for finder in sys.meta_path]):
        sys.meta_path.append(ClassicPaths())
