"""Models compiled ahead of time to C, checked in a program around them.

compile_and_run(AOTTestModel(module=mod, inputs={"x": x}, outputs=generate_ref_data(mod, {"x": x})),
                AOT_DEFAULT_RUNNER, interface_api="c", use_unpacked_api=True)
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tvm import relay, transform
from tvm.contrib.graph_executor import GraphModule
from tvm.error import TVMError
from tvm.ir.module import IRModule
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import AOTExecutorFactoryModule, GraphExecutorFactoryModule
from tvm.relay.backend.runtime import Runtime
from tvm.relay.function import Function, output_names
from tvm.relay.ty import flat_types
from tvm.runtime import cpu, load_module
from tvm.runtime.export import collect_modules
from tvm.support.absent import absent_name as _absent_name
from tvm.target import Target

from .aot_program import run_program, write_program


def __getattr__(name: str) -> Any:
    return _absent_name("tvm.testing.aot", name)


class AOTTestModel(NamedTuple):
    """A model, what it is given, and what it must return, by name."""

    module: IRModule
    inputs: Mapping[str, np.ndarray[Any, Any]]
    outputs: Mapping[str, np.ndarray[Any, Any]]
    output_tolerance: float | Mapping[str, float] | None = None
    name: str = "default"
    params: Mapping[str, np.ndarray[Any, Any]] | None = None
    extra_memory_in_bytes: int = 0


class AOTCompiledTestModel(NamedTuple):
    """A model and what it was compiled to."""

    model: AOTTestModel
    executor_factory: GraphExecutorFactoryModule | AOTExecutorFactoryModule


class AOTDataLinkage(NamedTuple):
    """Where the linker puts inputs and outputs."""

    section: str
    alignment: int


class AOTTestRunner(NamedTuple):
    """How the program around models is made."""

    makefile: str = "default"
    prologue: str = ""  # C text before the models are called
    epilogue: str = ""  # and after
    includes: Sequence[str] = ()
    parameters: Mapping[str, str] = {}  # of the makefile
    pass_config: Mapping[str, Any] = {}


def get_dtype_range(dtype: str) -> tuple[int, int]:
    """The least and the greatest number to draw from: all of small integers, 0 to 1 for others."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        limits = np.iinfo(kind)
        return int(limits.min), int(limits.max)
    return 0, 1


def generate_ref_data(
    mod: IRModule | Function,
    input_data: Mapping[str, np.ndarray[Any, Any]],
    params: Mapping[str, Any] | None = None,
    target: str = "llvm",
) -> OrderedDict[str, np.ndarray[Any, Any]]:
    """What a model returns under the graph executor, by the names of the outputs."""
    if isinstance(mod, Function):
        mod = IRModule.from_expr(mod)
    with transform.PassContext(opt_level=3):
        lib = relay.build(mod, target, params=dict(params or {}))
    create = lib["default"]
    if any([module.type_key == "c" for module in collect_modules(lib.lib)]):
        with tempfile.TemporaryDirectory() as folder:
            lib.export_library(path := str(Path(folder) / "model.so"))
            create = load_module(path)["default"]
    module = GraphModule(create(cpu()))
    for name, value in input_data.items():
        module.set_input(name, value)
    module.run()
    main = relay.transform.InferType()(mod)["main"]
    count = len(flat_types(main.checked_type.ret_type))
    names = output_names(main, count) or (
        ["output"] if count == 1 else [f"output{i}" for i in range(count)]
    )
    return OrderedDict((name, module.get_output(i).numpy()) for i, name in enumerate(names))


def compile_models(
    models: AOTTestModel | Sequence[AOTTestModel],
    interface_api: str,
    use_unpacked_api: bool,
    workspace_byte_alignment: int = 8,
    constant_byte_alignment: int = 8,
    enable_op_fusion: bool = True,
    pass_config: Mapping[str, Any] | None = None,
    use_runtime_executor: bool = True,
    target: Target | str | Sequence[Any] = "c",
    workspace_memory_pools: Any = None,
    constant_memory_pools: Any = None,
    schedule_name: str | None = None,
    runtime: Runtime | None = None,
) -> list[AOTCompiledTestModel]:
    """Compile models for programs in C.

    Parameters
    ----------
    interface_api : "c" or "packed".
    use_unpacked_api : whether kernels take plain pointers.
    enable_op_fusion : whether operators become one kernel where they can.
    pass_config : options of passes.
    runtime : "crt" by default.
    """
    if not use_runtime_executor or schedule_name is not None:
        raise TVMError("compile_models takes use_runtime_executor=True and no schedule_name")
    options = {
        "interface-api": interface_api,
        "unpacked-api": use_unpacked_api,
        "workspace-byte-alignment": workspace_byte_alignment,
        "constant-byte-alignment": constant_byte_alignment,
    }
    config = {"tir.disable_vectorize": True, **(pass_config or {})}
    if not enable_op_fusion:
        config["relay.FuseOps.max_depth"] = 1
    found = []
    for model in [models] if isinstance(models, AOTTestModel) else models:
        with transform.PassContext(opt_level=3, config=config):
            factory = relay.build(
                model.module, target, params=dict(model.params or {}), mod_name=model.name,
                executor=Executor("aot", options), runtime=runtime or Runtime("crt"),
                workspace_memory_pools=workspace_memory_pools,
                constant_memory_pools=constant_memory_pools,
            )  # fmt: skip
        found.append(AOTCompiledTestModel(model, factory))
    return found


def run_and_check(
    models: Sequence[AOTCompiledTestModel],
    runner: AOTTestRunner,
    interface_api: str,
    debug_calculated_workspaces: bool = False,
    workspace_byte_alignment: int = 8,
    constant_byte_alignment: int = 8,
    data_linkage: AOTDataLinkage | None = None,
    test_dir: str | Path | None = None,
    verbose: bool = False,
    use_workspace_io: bool = False,
    debug_last_error: bool = False,
    print_output_on_mismatch: bool = False,
    expected_output: str | None = None,
    checker: Callable[[str], bool] | None = None,
) -> bool:
    """Compile and run a program that calls models one after the other, and compare what they return.

    Parameters
    ----------
    data_linkage : of the arrays that the models are given.
    test_dir : the folder of the program; one that goes away by default.
    verbose : whether the program's output is printed.
    print_output_on_mismatch : results stand in errors anyway.
    expected_output : must be in the program's output.
    checker : is given the folder when all is over.
    """
    del workspace_byte_alignment, constant_byte_alignment, print_output_on_mismatch
    if debug_calculated_workspaces or use_workspace_io or debug_last_error:
        raise TVMError(
            "run_and_check takes no debug_calculated_workspaces, use_workspace_io or debug_last_error"
        )
    if runner.makefile != "default" or runner.parameters:
        raise TVMError(
            f"run_and_check requires AOT_DEFAULT_RUNNER, got one for {runner.makefile}",
            hint="the programs of others run in simulators of boards, which are not there",
        )
    with tempfile.TemporaryDirectory() as folder:
        where = Path(test_dir or folder)
        program = write_program([(m.model, m.executor_factory) for m in models], runner, interface_api, data_linkage, where)  # fmt: skip
        text, results = run_program(program)
        if verbose:
            print(text)
        for compiled in models:
            _compare(compiled.model, results)
        if expected_output is not None and expected_output not in text:
            raise AssertionError(f"the program must print {expected_output!r}, it printed {text!r}")
        return checker is None or checker(str(where))


def _compare(model: AOTTestModel, results: Mapping[str, np.ndarray[Any, Any]]) -> None:
    for name, wanted in model.outputs.items():
        found = results[f"{model.name}.{name}"].astype(wanted.dtype).reshape(wanted.shape)
        tolerance = model.output_tolerance
        if isinstance(tolerance, Mapping):
            tolerance = tolerance.get(name)
        is_exact = wanted.dtype.kind in "iub" and not tolerance
        limit = 0.0 if is_exact else tolerance or 1e-3
        np.testing.assert_allclose(found, wanted, rtol=0 if is_exact else 1e-4, atol=limit)


def compile_and_run(
    models: AOTTestModel | Sequence[AOTTestModel],
    runner: AOTTestRunner,
    interface_api: str,
    use_unpacked_api: bool,
    debug_calculated_workspaces: bool = False,
    workspace_byte_alignment: int = 8,
    constant_byte_alignment: int = 8,
    enable_op_fusion: bool = True,
    data_linkage: AOTDataLinkage | None = None,
    use_runtime_executor: bool = True,
    target: Target | str | Sequence[Any] = "c",
    target_opts: Mapping[str, Any] | None = None,
    test_dir: str | Path | None = None,
    verbose: bool = False,
    schedule_name: str | None = None,
    debug_last_error: bool = False,
    checker: Callable[[str], bool] | None = None,
    print_output_on_mismatch: bool = False,
    runtime: Runtime | None = None,
) -> bool:
    """`compile_models` and `run_and_check`; ``target_opts`` are options of the target."""
    if target_opts:
        target = " ".join([str(target), *[f"{k}={v}" for k, v in target_opts.items()]])
    compiled = compile_models(
        models, interface_api, use_unpacked_api, workspace_byte_alignment, constant_byte_alignment,
        enable_op_fusion, runner.pass_config, use_runtime_executor, target,
        schedule_name=schedule_name, runtime=runtime,
    )  # fmt: skip
    return run_and_check(
        compiled, runner, interface_api, debug_calculated_workspaces, workspace_byte_alignment,
        constant_byte_alignment, data_linkage, test_dir, verbose, False, debug_last_error,
        print_output_on_mismatch, checker=checker,
    )  # fmt: skip
