"""The classic module of builders and runners."""

from .build_methods import (
    BuildResult,
    LocalBuilder,
    gpu_verify_pass,
    set_cuda_target_arch,
    vtcm_verify_pass,
)
from .run_methods import (
    DefaultModuleLoader,
    LocalRunner,
    RPCRunner,
    check_remote,
    default_module_loader,
    request_remote,
    run_through_rpc,
)

__all__ = [
    "BuildResult",
    "DefaultModuleLoader",
    "LocalBuilder",
    "LocalRunner",
    "RPCRunner",
    "check_remote",
    "default_module_loader",
    "gpu_verify_pass",
    "request_remote",
    "run_through_rpc",
    "set_cuda_target_arch",
    "vtcm_verify_pass",
]
