"""`tvmc compile`."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm import knobs, relay
from tvm.driver.tvmc import composite_target, frontends, pass_list, registry
from tvm.driver.tvmc.config_options import set_defaults
from tvm.driver.tvmc.errors import TVMCException
from tvm.driver.tvmc.messages import add_quiet_arg, tell
from tvm.driver.tvmc.model import LIBRARY_FORMATS, TVMCModel, TVMCPackage
from tvm.driver.tvmc.pass_config import parse_configs
from tvm.driver.tvmc.target import generate_target_args, reconstruct_target_args, target_from_cli
from tvm.driver.tvmc.transform import (
    TRANSFORM_ARGS,
    apply_graph_transforms,
    generate_transform_args,
    parse_graph_transform_args,
)
from tvm.driver.tvmc.tuning_records import check_records, context_of
from tvm.driver.tvmc.workspace_pools import (
    generate_workspace_pools_args,
    workspace_pools_recombobulate,
)
from tvm.error import TVMError
from tvm.ir import transform
from tvm.ir.instrument import PassInstrument, PassPrintingInstrument, PassTimingInstrument
from tvm.ir.module import IRModule
from tvm.ir.op import Op
from tvm.relay.backend.executor import Executor
from tvm.relay.backend.executor_factory import ExecutorFactoryModule
from tvm.relay.backend.graph_codegen import NeedsVirtualMachine
from tvm.relay.backend.runtime import Runtime
from tvm.relay.expr import Call
from tvm.relay.function import Function
from tvm.relay.progress import progress
from tvm.relay.traverse import post_order
from tvm.relay.ty import TensorType, plain_dims
from tvm.runtime.vm import Executable
from tvm.support.files import write_bytes, write_text
from tvm.target import Target

logger = logging.getLogger("TVMC")

_DUMPS = ("relay", "tir", "ll", "asm", "bc", "c", "cc")


_COMMON = (
    "FILE", "output", "target", "input_shapes", "opt_level", "executor", "output_format",
    "cross_compiler", "tuning_records", "quiet",
)  # fmt: skip
_EPILOG = """examples:
  tvmc compile resnet50.onnx -o resnet50.so
  tvmc compile bert.onnx --input-shapes "input_ids:[1,128]" --target "llvm -mcpu=znver4"
  tvmc compile resnet50.onnx --target "llvm -mtriple=aarch64-linux-gnu -mattr=+neon"
       --cross-compiler aarch64-linux-gnu-gcc -o pi.tar
"""


def add_compile_parser(
    subparsers: Any, _: argparse.ArgumentParser, json_params: Mapping[str, Any]
) -> None:
    """`tvmc compile`."""
    parser = subparsers.add_parser(
        "compile", help="compile a model", usage="tvmc compile FILE [options]",
        description="Compile a model to a file that `tvmc run` and tvm.driver.tvmc.run take.",
        common=_COMMON, epilog=_EPILOG,
    )  # fmt: skip
    parser.set_defaults(func=drive_compile)
    frontends.add_model_args(parser)
    _add_output_args(parser)
    _add_optimization_args(parser)
    add_quiet_arg(parser)
    generate_transform_args(parser)
    generate_target_args(parser)
    registry.generate_registry_args(parser, Executor, "graph")
    registry.generate_registry_args(parser, Runtime, "cpp")
    generate_workspace_pools_args(parser)
    set_defaults(parser, json_params)


def _add_output_args(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", default="module.tar", metavar="FILE",
        help="archive, or library that C++ takes too: model.so (module.tar)",
    )  # fmt: skip
    parser.add_argument(
        "-f", "--output-format", choices=[*LIBRARY_FORMATS, "mlf"], default="so",
        help="the archive has a library, objects, or C sources (so)",
    )  # fmt: skip
    parser.add_argument(
        "--cross-compiler", default="", metavar="CC",
        help="a compiler for another machine, aarch64-linux-gnu-gcc",
    )  # fmt: skip
    parser.add_argument(
        "--cross-compiler-options", default="", metavar="OPTIONS",
        help='its options, after "=": --cross-compiler-options="-O2 -march=armv8.2-a"',
    )  # fmt: skip
    parser.add_argument("--module-name", default="default", help="part of the kernels' names")
    parser.add_argument(
        "--dump-code", metavar="FORMAT", default="",
        help=f"files beside the archive, separated by commas: {', '.join(_DUMPS)}",
    )  # fmt: skip
    parser.add_argument(
        "--dump-offloads", metavar="FILE", default="",
        help="list which operator is left to which code generator; - for the terminal",
    )  # fmt: skip


def _add_optimization_args(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-O", "--opt-level", type=int, choices=range(4), default=3, metavar="[0-3]",
        help="level of optimisation (3)",
    )  # fmt: skip
    parser.add_argument(
        "--pass-config", action="append", metavar="name=value",
        help="an option of a pass, such as tir.disable_vectorize=1; may be given several times",
    )  # fmt: skip
    listed: dict[str, Any] = {
        "type": pass_list.parse_pass_list_str,
        "metavar": "PASSES",
        "default": "",
    }
    parser.add_argument("--disabled-pass", help="passes to leave out, with commas", **listed)
    parser.add_argument("--print-ir-before", help="show the program before these", **listed)
    parser.add_argument("--print-ir-after", help="show the program after these", **listed)
    parser.add_argument(
        "--print-pass-times", action="store_true", help="show how long each pass took"
    )
    parser.add_argument(
        "--tuning-records", metavar="PATH", default="", help="records that `tvmc tune` wrote"
    )
    parser.add_argument(
        "--use-vm", action="store_true",
        help="compile for the virtual machine, as models with open dimensions or control flow are "
        "without it",
    )  # fmt: skip


def drive_compile(args: argparse.Namespace) -> int:
    """Do what the arguments say."""
    if not args.target:
        raise TVMCException("--target is required, such as --target llvm")
    with knobs.QUIET.scope(args.quiet or knobs.QUIET.value), progress() as step:
        executor = registry.reconstruct_registry_entity(args, Executor)
        runtime = registry.reconstruct_registry_entity(args, Runtime)
        step(f"importing {Path(args.FILE).name}")
        model = frontends.load_from_arguments(args)
        step(f"compiling {Path(args.FILE).name}")
        _compile_from_arguments(model, args, executor, runtime)
    return 0


def _compile_from_arguments(
    model: TVMCModel, args: argparse.Namespace, executor: Executor, runtime: Runtime
) -> None:
    additional = reconstruct_target_args(args)
    target, codegens = target_from_cli(args.target, additional)
    compile_model(
        model,
        args.target,
        workspace_pools=workspace_pools_recombobulate(args, [target], codegens),
        opt_level=args.opt_level,
        executor=executor,
        runtime=runtime,
        tuning_records=args.tuning_records,
        package_path=args.output,
        cross=args.cross_compiler or None,
        cross_options=args.cross_compiler_options or None,
        output_format=args.output_format,
        dump_code=[part.strip() for part in args.dump_code.split(",") if part.strip()],
        dump_offloads=args.dump_offloads,
        disabled_pass=args.disabled_pass,
        pass_context_configs=args.pass_config,
        additional_target_options=additional,
        use_vm=args.use_vm,
        mod_name=args.module_name,
        print_pass_times=args.print_pass_times,
        print_ir_before=args.print_ir_before,
        print_ir_after=args.print_ir_after,
        **parse_graph_transform_args(args),
    )


def compile_model(
    tvmc_model: TVMCModel,
    target: str | Target,
    opt_level: int = 3,
    executor: Executor | None = None,
    runtime: Runtime | None = None,
    tuning_records: str | None = None,
    package_path: str | None = None,
    cross: Any = None,
    cross_options: str | None = None,
    output_format: str = "so",
    dump_code: str | Sequence[str] | None = None,
    dump_offloads: str = "",
    target_host: str | None = None,
    disabled_pass: Sequence[str] | None = None,
    pass_context_configs: Sequence[str] | None = None,
    additional_target_options: Mapping[str, Mapping[str, Any]] | None = None,
    use_vm: bool = False,
    mod_name: str = "default",
    workspace_pools: Any = None,
    print_pass_times: bool = False,
    print_ir_before: Sequence[str] | None = None,
    print_ir_after: Sequence[str] | None = None,
    instruments: Sequence[PassInstrument] | None = None,
    **transform_args: Any,
) -> TVMCPackage:
    """Compile a model and write it to an archive.

    Parameters
    ----------
    tvmc_model : TVMCModel
        The model.
    target : str or Target
        The machine, and code generators before it: "llvm -mcpu=native", "dnnl, llvm".
    opt_level : int
        Level of optimisation, 0 to 3.
    executor, runtime : Executor, Runtime
        By default cpp, and graph or the virtual machine, whichever can run the model.
    tuning_records : str
        A file of records of tuning.
    package_path : str
        The archive, by default a temporary one; or one library with graph and weights, if the
        suffix is ".so".
    cross, cross_options : str
        A compiler that links for another machine, and its options.
    output_format : str
        "so", "tar" or "mlf".
    dump_code : str or list of str
        Files beside the archive: "relay", "tir", "ll", "asm", ...
    dump_offloads : str
        File for a list of what is left to other code generators; "-" for the terminal.
    target_host : str
        The machine of the host code, if it is another one.
    disabled_pass : list of str
        Passes to leave out.
    pass_context_configs : list of str
        Options of passes: ["tir.disable_vectorize=1"].
    additional_target_options : dict
        More options of targets by kind and name.
    use_vm : bool
        Compile for the virtual machine. Models with open dimensions or control flow are compiled for
        it without being told, if `executor` is left out; a line on stderr says so.
    mod_name : str
        Part of the kernels' names.
    workspace_pools : WorkspaceMemoryPools
        Memory for temporary arrays.
    print_pass_times, print_ir_before, print_ir_after, instruments :
        What to watch.
    transform_args : dict
        desired_layout, desired_layout_ops, mixed_precision, mixed_precision_ops,
        mixed_precision_calculation_type, mixed_precision_acc_type.

    Returns
    -------
    TVMCPackage
    """
    if not hasattr(tvmc_model, "export_package"):
        raise TVMCException(
            f"compile requires a TVMCModel, which tvmc.load(path) gives, got {tvmc_model!r}"
        )
    _check_options(tuning_records, transform_args)
    dumps = dict.fromkeys(_dump_formats(dump_code), "")
    config = parse_configs(pass_context_configs)
    if "tir" in dumps:
        add_tir_to_dumps(config, dumps)
    found, codegens = target_from_cli(target, additional_target_options)
    request = _Request(
        Target(found, target_host) if target_host else found, executor,
        runtime or Runtime("cpp"), use_vm, mod_name, workspace_pools, output_format,
    )  # fmt: skip
    watching = _instruments(instruments, print_ir_before, print_ir_after)
    partitions = _partitions(codegens, config)
    records = context_of(tuning_records, config) if tuning_records else nullcontext()
    context = transform.PassContext(
        opt_level=opt_level, disabled_pass=disabled_pass or None, instruments=watching or None,
        config=config,
    )  # fmt: skip
    with context, records, _pass_times(print_pass_times):
        mod = apply_graph_transforms(tvmc_model.mod, transform_args)
        mod, built = _compiled(mod, tvmc_model.params, request, partitions, dump_offloads)
    path = _export(tvmc_model, built, package_path, cross, cross_options, output_format)
    _fill_dumps(dumps, mod, built)
    save_dumps(Path(path).name, dumps, str(Path(path).parent))
    return TVMCPackage(path)


@dataclass(frozen=True)
class _Request:
    """What to build."""

    target: Target
    executor: Executor | None
    runtime: Runtime
    use_vm: bool
    mod_name: str
    workspace_pools: Any
    output_format: str

    def allows_vm(self) -> bool:
        """Whether nothing that was asked for is only there without the virtual machine."""
        executor = self.executor or Executor("graph")
        return (
            executor == Executor("graph")
            and self.runtime.name == "cpp"
            and self.output_format in LIBRARY_FORMATS
            and self.workspace_pools is None
        )


def _check_options(tuning_records: str | None, transform_args: Mapping[str, Any]) -> None:
    if tuning_records:
        check_records(tuning_records)
    if unknown := [name for name in transform_args if name not in TRANSFORM_ARGS]:
        raise TypeError(f"compile has no parameter {unknown[0]!r}")


def _compiled(
    mod: IRModule,
    params: Mapping[str, Any],
    request: _Request,
    partitions: Sequence[Partition],
    dump_offloads: str,
) -> tuple[IRModule, ExecutorFactoryModule | Executable]:
    """The module after its parts were given away, and what became of it."""
    open_input = "" if request.use_vm else _open_input(mod, params)
    parts = mod
    for partition in partitions:
        parts = partition(parts, params)
    if dump_offloads:
        dump_operation_offloads(parts, mod, dump_offloads)
    return parts, _build(parts, params, request, open_input)


def _dump_formats(dump_code: str | Sequence[str] | None) -> list[str]:
    names = dump_code.split(",") if isinstance(dump_code, str) else list(dump_code or ())
    for name in names:
        if name not in _DUMPS:
            raise TVMCException(f"--dump-code has the formats {', '.join(_DUMPS)}, got {name!r}")
    return names


def _instruments(
    given: Sequence[PassInstrument] | None,
    before: Sequence[str] | None,
    after: Sequence[str] | None,
) -> list[PassInstrument]:
    found = list(given or ())
    if before or after:
        found.append(PassPrintingInstrument(before or [], after or []))
    return found


@contextmanager
def _pass_times(wanted: bool) -> Iterator[None]:
    """Print a table of the passes that ran meanwhile."""
    if not wanted:
        yield
        return
    timing = PassTimingInstrument()
    context = transform.PassContext.current()
    context.instruments.append(timing)
    timing.enter_pass_ctx()
    yield
    print("Compilation time breakdown by pass:")
    print(timing.render())


Partition = Callable[[IRModule, Mapping[str, Any]], IRModule]


def _partitions(codegens: Sequence[Mapping[str, Any]], config: dict[str, Any]) -> list[Partition]:
    """What gives parts of a module away; options that are a pass's are put into ``config``."""
    found = []
    for part in codegens:
        codegen = composite_target.get_codegen_by_target(part["name"])
        if codegen["config_key"] is not None:
            config[codegen["config_key"]] = part["opts"]
        found.append(_partition(codegen["pass_pipeline"], part))
    return found


def _partition(pipeline: Callable[..., IRModule], part: Mapping[str, Any]) -> Partition:
    def partition(mod: IRModule, params: Mapping[str, Any]) -> IRModule:
        try:
            return pipeline(mod, params, **part["opts"])
        except TypeError as error:
            raise TVMCException(f'options of "{part["raw"]}": {error}') from None

    return partition


def _build(
    mod: IRModule, params: Mapping[str, Any], request: _Request, reason: str
) -> ExecutorFactoryModule | Executable:
    try:
        if not reason or not request.allows_vm():
            return _built(mod, params, request, request.use_vm)
    except NeedsVirtualMachine as error:
        if not request.allows_vm():
            raise TVMCException(
                f"cannot compile the model: {error}\n  without options for the executor, the runtime, "
                "the pools and the format tvmc compiles it for the virtual machine"
            ) from error
        reason = str(error.args[0])
    except (TVMError, NotImplementedError) as error:
        raise TVMCException(f"cannot compile the model: {error}") from error
    try:
        built = _built(mod, params, request, use_vm=True)
    except (TVMError, NotImplementedError) as error:
        raise TVMCException(f"cannot compile the model: {error}") from error
    tell(f"compiled for the virtual machine: {reason}")
    return built


def _open_input(mod: IRModule, params: Mapping[str, Any]) -> str:
    """Which input has open dimensions, if one has."""
    for param in mod["main"].params:
        name, ty = param.name_hint, param.type_annotation
        if isinstance(ty, TensorType) and ty.is_dynamic and name not in params:
            dims = ", ".join(["?" if dim is None else str(dim) for dim in plain_dims(ty)])
            return f"the input {name!r} is {ty.dtype}[{dims}]"
    return ""


def _built(
    mod: IRModule, params: Mapping[str, Any], request: _Request, use_vm: bool
) -> ExecutorFactoryModule | Executable:
    return build(
        mod, request.target, request.executor or Executor("graph"), request.runtime, params, use_vm,
        request.mod_name, request.workspace_pools,
    )  # fmt: skip


def build(
    mod: IRModule,
    tvm_target: Target,
    executor: Executor,
    runtime: Runtime,
    params: Mapping[str, Any],
    use_vm: bool,
    mod_name: str,
    workspace_pools: Any,
) -> ExecutorFactoryModule | Executable:
    """Compile with what is current: a program of the virtual machine, or a model for an executor."""
    if use_vm:
        logger.debug("building for the virtual machine")
        return relay.vm.compile(mod, target=tvm_target, params=params)
    logger.debug("building for the executor %s", executor)
    return relay.build(
        mod, target=tvm_target, executor=executor, runtime=runtime, params=params,
        mod_name=mod_name, workspace_memory_pools=workspace_pools,
    )  # fmt: skip


def _export(
    model: TVMCModel,
    built: ExecutorFactoryModule | Executable,
    package_path: str | None,
    cross: Any,
    cross_options: str | None,
    output_format: str,
) -> str:
    try:
        with progress() as step:
            step("writing the package")
            return model.export_package(built, package_path, cross, cross_options, output_format)
    except (TVMError, RuntimeError) as error:
        raise TVMCException(f"cannot write the package: {error}") from error


def add_tir_to_dumps(config: dict[str, Any], dumps: dict[str, str]) -> None:
    """Let a last pass of the loop level write each function to ``dumps["tir"]``."""

    def record(mod: IRModule) -> IRModule:
        dumps["tir"] += "".join([f"{func}\n\n" for func in mod.functions.values()])
        return mod

    config["tir.add_lower_pass"] = [*config.get("tir.add_lower_pass", ()), (3, record)]


def _fill_dumps(
    dumps: dict[str, str], mod: IRModule, built: ExecutorFactoryModule | Executable
) -> None:
    lib = built.lib if isinstance(built, Executable) else built.get_lib()
    for name in dumps:
        if name == "relay":
            dumps[name] = str(mod)
        elif name != "tir":
            try:
                dumps[name] = lib.get_source(name)
            except (TVMError, ValueError) as error:
                raise TVMCException(f"--dump-code {name}: {error}") from None
    for external in lib.imported_modules if dumps else ():
        dumps[external.type_key] = external.get_source()


def save_dumps(module_name: str, dumps: Mapping[str, str | bytes], dump_root: str = ".") -> None:
    """Write each text to ``<module_name>.<format>`` in a folder."""
    for name, text in dumps.items():
        path = Path(dump_root) / f"{module_name}.{name}"
        if isinstance(text, str):
            write_text(path, text)
        else:
            write_bytes(path, text)


def dump_operation_offloads(mod: IRModule, initial_mod: IRModule, dump_path: str) -> None:
    """Write how many operators which code generator has, and which those are.

    Parameters
    ----------
    mod : IRModule
        The module after its parts were given away.
    initial_mod : IRModule
        The module before.
    dump_path : str
        The file; "-" for the terminal.
    """
    owners: dict[str, list[str]] = {}
    for gvar, func in mod.functions.items():
        if isinstance(func, Function):
            owner = str(func.attrs.get("Compiler") or "native")
            rows = [f"    {op.name} in @{gvar.name_hint}" for op in _operators(func)]
            owners.setdefault(owner, []).extend(rows)
    total = sum(
        len(_operators(func))
        for func in initial_mod.functions.values()
        if isinstance(func, Function)
    )
    lines = [f"Total number of operators: {total}"]
    for owner, rows in owners.items():
        lines += [f"  {owner}: {len(rows)}", *rows]
    text = "\n".join(lines) + "\n"
    if dump_path == "-":
        print(text, end="")
    else:
        write_text(dump_path, text)


def _operators(func: Function) -> list[Op]:
    return [n.op for n in post_order(func) if isinstance(n, Call) and isinstance(n.op, Op)]
