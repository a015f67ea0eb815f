"""From lowered kernels to modules of the runtime that launch them."""

from __future__ import annotations

from dataclasses import dataclass

from tvm._ffi.registry import get_global_func
from tvm.codegen.c.code import Code
from tvm.error import LoweringError
from tvm.ir.module import IRModule
from tvm.runtime.module import Module
from tvm.target import Target
from tvm.tir.function import PrimFunc
from tvm.tir.transform.lower_device_kernel_launch import symbol

from .compile import compile_text, has_compiler
from .cuda import CUDA
from .kernel import KernelModule, KernelWriter
from .opencl import OpenCL


@dataclass(frozen=True)
class KernelText:
    """A kernel's definition, and how it is launched."""

    name: str
    text: str
    param_types: tuple[str, ...]
    launch_params: tuple[str, ...]

    @staticmethod
    def of(name: str, func: PrimFunc, text: str) -> KernelText:
        """A function's kernel of that text."""
        types = [str(param.dtype) for param in func.params]
        launch = [str(param) for param in func.attrs.get("tir.kernel_launch_params", ())]
        return KernelText(name, text, tuple(types), tuple(launch))

    @property
    def table_row(self) -> list[str | int]:
        """The row of the runtime's table of kernels."""
        counts = len(self.param_types), len(self.launch_params)
        return [self.name, counts[0], *self.param_types, counts[1], *self.launch_params]


def build_opencl(mod: IRModule, target: Target) -> Module:
    """A runtime module of type ``opencl``, whose text the driver compiles.

    Each kernel's part of the text can be compiled by itself; ``// Function: name`` is its first line.
    """
    language, kernels, parts = OpenCL(), [], []
    for name, func in functions_of(mod):
        module = KernelModule(language)
        kernel = write_kernel(name, func, module)
        kernels.append(kernel)
        parts += [f"// Function: {name}", language.prelude, *module.parts(), kernel.text]
    create = get_global_func("runtime.OpenCLModuleCreate")
    made: Module = create("\n".join(parts), "cl", *kernel_table(kernels))
    return made


def build_cuda(mod: IRModule, target: Target) -> Module:
    """A runtime module of type ``cuda``: the text, and what NVRTC or nvcc makes of it where there is one."""
    text, kernels = cuda_text(mod)
    if (change := get_global_func("tvm_callback_cuda_postproc", allow_missing=True)) is not None:
        text = str(change(text, target))
    code, form = compiled(text, target)
    create = get_global_func("runtime.CUDAModuleCreate")
    made: Module = create(bytearray(code), form, text, *kernel_table(kernels))
    return made


def cuda_text(mod: IRModule) -> tuple[str, list[KernelText]]:
    """All kernels of a module in one text."""
    module = KernelModule(CUDA())
    kernels = [write_kernel(name, func, module) for name, func in functions_of(mod)]
    parts = [module.language.prelude, *module.parts(), *[kernel.text for kernel in kernels]]
    return "\n".join(parts), kernels


def compiled(text: str, target: Target) -> tuple[bytes, str]:
    """What ``tvm_callback_cuda_compile``, NVRTC or nvcc makes of a text, and its form; "cu" is the text itself."""
    own = get_global_func("tvm_callback_cuda_compile", allow_missing=True)
    if own is not None:
        made = own(text, target)
        code = made.encode() if isinstance(made, str) else bytes(made)
        # PTX is text that begins with a comment or a directive
        return code, "ptx" if code.lstrip()[:1] in (b"/", b".") else "cubin"
    if not has_compiler():
        return text.encode(), "cu"
    return compile_text(text, str(target.attrs["arch"])), "ptx"


def functions_of(mod: IRModule) -> list[tuple[str, PrimFunc]]:
    """The kernels of a module by their names."""
    return [
        (symbol(gvar, func), func)
        for gvar, func in mod.functions.items()
        if isinstance(func, PrimFunc)
    ]


def kernel_table(kernels: list[KernelText]) -> list[str | int]:
    """The runtime's table of kernels."""
    return [item for kernel in kernels for item in kernel.table_row]


def write_kernel(name: str, func: PrimFunc, module: KernelModule) -> KernelText:
    """One kernel; what it needs is collected in ``module``."""
    language, code = module.language, Code("")
    code.reserve(name)
    writer = KernelWriter(module, language, name, code)
    writer.restricted.update([param for param in func.params if param.dtype.is_handle])
    names = [writer.define(param) for param in func.params]
    check_parameters(name, func)
    writer.visit(func.body)
    params = [
        f"{writer.parameter_type(param)} {given}"
        for param, given in zip(func.params, names, strict=True)
    ]
    if writer.dynamic:
        params.append(writer.dynamic)
    block = [writer.block.get(f"threadIdx.{axis}", 1) for axis in "xyz"]
    code.lines[:0] = writer.head
    code.signature = language.signature(name, params, block)
    return KernelText.of(name, func, code.text())


def check_parameters(name: str, func: PrimFunc) -> None:
    """Reject parameters that launches do not pass."""
    for param in func.params:
        if param.dtype.is_bool or param.dtype.lanes > 1 or param.dtype.bits < 32:
            raise LoweringError(
                f"kernel {name} needs parameters of 32 or 64 bits, got {param.name} of {param.dtype}",
                hint="pass it in an array of one element, or as an int32",
            )
