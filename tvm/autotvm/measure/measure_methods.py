"""The classic module of builders and runners."""

from .build_methods import BuildFunction as _WrappedBuildFunc
from .build_methods import (
    BuildResult,
    LocalBuilder,
    gpu_verify_pass,
    set_cuda_target_arch,
    vtcm_verify_pass,
)
from .dask_methods import DaskBuilder, DaskRunner
from .rpc_methods import RPCRunner, check_remote, request_remote, run_through_rpc
from .run_methods import (
    DefaultModuleLoader,
    LocalRunner,
    default_module_loader,
)

__all__ = [
    "BuildResult",
    "DaskBuilder",
    "DaskRunner",
    "DefaultModuleLoader",
    "LocalBuilder",
    "LocalRunner",
    "RPCRunner",
    "_WrappedBuildFunc",
    "check_remote",
    "default_module_loader",
    "gpu_verify_pass",
    "request_remote",
    "run_through_rpc",
    "set_cuda_target_arch",
    "vtcm_verify_pass",
]
