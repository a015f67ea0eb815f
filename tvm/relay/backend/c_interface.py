"""How programs in C call a model: the header `tvmgen_<name>.h` and the function `tvmgen_<name>_run`.

struct tvmgen_default_inputs inputs = {.x = x};
struct tvmgen_default_outputs outputs = {.output = y};
tvmgen_default_run(&inputs, &outputs);
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tvm.codegen.c.names import identifier
from tvm.codegen.model_metadata import TensorInfo
from tvm.error import TVMError
from tvm.relay.backend.aot_function import main_name
from tvm.relay.backend.graph import bytes_of_elements
from tvm.relay.backend.name_transforms import mangle_module_name, sanitize

_BYTES_IN_LINE = 24


@dataclass(frozen=True)
class PoolArgument:
    """Memory that the model's function takes behind inputs and outputs."""

    name: str
    size: int
    alignment: int
    is_internal: bool  # the library brings it
    data: bytes | None = None  # what a pool of constants holds

    @property
    def is_constant(self) -> bool:
        return self.data is not None


@dataclass(frozen=True)
class PoolOffset:
    """Where in a pool an input or an output is."""

    pool: PoolArgument
    byte_offset: int


@dataclass(frozen=True)
class ModelInterface:
    """What the header tells about a model."""

    mod_name: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    workspace_size: int
    pools: tuple[PoolArgument, ...] = ()
    # of the inputs and the outputs, if they are in the pools
    offsets: tuple[tuple[PoolOffset, ...], tuple[PoolOffset, ...]] | None = None

    @property
    def prefix(self) -> str:
        """Of all names: `tvmgen_default`."""
        return sanitize(mangle_module_name(self.mod_name)).lower()

    @property
    def run(self) -> str:
        """The function that runs the model."""
        return f"{sanitize(mangle_module_name(self.mod_name))}_run"

    @property
    def given_pools(self) -> list[PoolArgument]:
        """The pools that the caller brings."""
        return [pool for pool in self.pools if not pool.is_internal]


def header_text(model: ModelInterface) -> str:
    """The header."""
    guard = f"{model.prefix}_h_".upper()
    pools = model.given_pools
    structs = [
        _struct(model, "inputs", "Input tensor pointers", c_names(model.inputs)),
        _struct(model, "outputs", "Output tensor pointers", c_names(model.outputs)),
    ]
    if pools:
        names = [identifier(pool.name) for pool in pools]
        structs.append(_struct(model, "workspace_pools", "Memory pool pointers", names))
    return "\n".join(
        [
            f"#ifndef {guard}",
            f"#define {guard}",
            "#include <stdint.h>",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            *_sizes(model),
            *structs,
            f"/*! \\brief Run the TVM module {_quoted(model)}; 0 if all went well */",
            f"{signature(model)};",
            *[f"{line};" for line in _map_signatures(model)],
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            f"#endif  /* {guard} */",
            "",
        ]
    )


def signature(model: ModelInterface) -> str:
    """The function's declaration."""
    kinds = [] if model.offsets else ["inputs", "outputs"]
    params = [f"struct {model.prefix}_{kind}* {kind}" for kind in kinds]
    return f"int32_t {model.run}({', '.join([*params, *_pool_params(model)]) or 'void'})"


def _pool_params(model: ModelInterface) -> list[str]:
    pools = f"struct {model.prefix}_workspace_pools* workspace_pools"
    return [pools] if model.given_pools else []


def _map_signatures(model: ModelInterface) -> list[str]:
    """Functions that tell where in the pools the inputs and the outputs are."""
    params = ", ".join(_pool_params(model)) or "void"
    kinds = ("inputs", "outputs") if model.offsets else ()
    return [f"struct {model.prefix}_{kind} {model.prefix}_map_{kind}({params})" for kind in kinds]


def _map_functions(model: ModelInterface) -> list[str]:
    lines: list[str] = []
    kinds = zip(("inputs", "outputs"), (model.inputs, model.outputs), strict=True)
    for (kind, tensors), offsets, head in zip(
        kinds, model.offsets or (), _map_signatures(model), strict=False
    ):
        members = [
            f".{name} = (uint8_t*){_pool_argument(allocation.pool)} + {allocation.byte_offset}"
            for name, allocation in zip(c_names(tensors), offsets, strict=True)
        ]
        lines += [
            f"{head} {{",
            *(["  (void)workspace_pools;"] if model.given_pools else []),
            f"  struct {model.prefix}_{kind} mapped = {{{', '.join(members) or '0'}}};",
            "  return mapped;",
            "}",
        ]
    return lines


def c_interface_text(model: ModelInterface) -> str:
    """C text of the function that takes structures."""
    arguments = [
        *[f"inputs->{name}" for name in c_names(model.inputs)],
        *[f"outputs->{name}" for name in c_names(model.outputs)],
    ]
    arguments = [] if model.offsets else arguments
    arguments += [_pool_argument(pool) for pool in model.pools]
    return "\n".join(
        [
            header_text(model),
            *[_internal_pool(pool) for pool in model.pools if pool.is_internal],
            _main_declaration(model, len(arguments)),
            f"{signature(model)} {{",
            *([] if model.inputs or model.offsets else ["  (void)inputs;"]),
            f"  return {main_name(model.mod_name)}({', '.join(arguments)});",
            "}",
            *_map_functions(model),
            "",
        ]
    )


def packed_interface_text(model: ModelInterface, unpacked: bool) -> str:
    """C text of the packed function that runs the model, whose own function may take plain pointers."""
    count = len(model.inputs) + len(model.outputs)
    params = (
        "TVMValue* args, int* type_codes, int num_args, TVMValue* result, int* result_code, "
        "void* resource"
    )
    names = "args, type_codes, num_args, result, result_code, resource"
    main = main_name(model.mod_name)
    declaration, steps = f"int32_t {main}({params});", []
    call = f"{main}({names})"
    unused: list[str] = []
    if unpacked:
        tensors = [_tensor_data(i) for i in range(count)]
        pools = _packed_pools(model, count)
        declaration = _main_declaration(model, count + len(pools))
        call = f"{main}({', '.join([*tensors, *pools])})"
        unused = ["type_codes", "num_args", "result", "result_code", "resource"]
    elif len(model.given_pools) < len(model.pools):
        steps = _packed_arguments(model, count)
        call = f"{main}(all, codes, {count + len(model.pools)}, result, result_code, resource)"
        unused = ["num_args"]
    return "\n".join(
        [
            "#include <tvm/runtime/c_backend_api.h>",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            *[_internal_pool(pool) for pool in model.pools if pool.is_internal],
            declaration,
            f"TVM_DLL int32_t {model.run}({params}) {{",
            *[f"  (void){name};" for name in unused],
            *steps,
            f"  return {call};",
            "}",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "",
        ]
    )


def c_names(tensors: Sequence[TensorInfo]) -> list[str]:
    """Members of a structure for tensors; names that C cannot tell apart are rejected."""
    names: dict[str, str] = {}
    for tensor in tensors:
        name = identifier(sanitize(tensor.name))
        if name in names:
            raise TVMError(
                f"Sanitized input tensor name clash: {names[name]!r} and {tensor.name!r} are both "
                f"{name} in C",
                hint="give one of them another name",
            )
        names[name] = tensor.name
    return list(names)


def byte_size(tensor: TensorInfo) -> int:
    """Bytes of a tensor."""
    count = 1
    for extent in tensor.shape:
        count *= extent
    return bytes_of_elements(count, tensor.dtype)


def _sizes(model: ModelInterface) -> list[str]:
    lines: list[str] = []
    for kind, tensors in (("Input", model.inputs), ("Output", model.outputs)):
        for name, tensor in zip(c_names(tensors), tensors, strict=True):
            macro = f"{model.prefix}_{name}_size".upper()
            brief = f"{kind} tensor {name} size (in bytes) for TVM module {_quoted(model)}"
            lines += [f"/*! \\brief {brief} */", f"#define {macro} {byte_size(tensor)}"]
    brief = f"Workspace size (in bytes) for TVM module {_quoted(model)}"
    macro = f"{model.prefix}_workspace_size".upper()
    lines += [f"/*! \\brief {brief} */", f"#define {macro} {model.workspace_size}"]
    for pool in model.given_pools:
        kind = "CONSTANT" if pool.is_constant else "WORKSPACE"
        macro = f"{model.prefix}_{identifier(pool.name)}".upper() + f"_{kind}_POOL"
        lines += [f"/*! \\brief {pool.name} size */", f"#define {macro}_SIZE {pool.size}"]
        if pool.data is not None:
            lines += [f"/*! \\brief {pool.name} contents */", f"#define {macro}_DATA \\"]
            lines.append(" \\\n".join(_rows(pool.data)))
    return [*lines, ""]


def _struct(model: ModelInterface, kind: str, brief: str, members: Sequence[str]) -> str:
    fields = [f"  void* {name};" for name in members] or ["  void* unused;"]
    title = f"/*! \\brief {brief} for TVM module {_quoted(model)} */"
    return "\n".join([title, f"struct {model.prefix}_{kind} {{", *fields, "};", ""])


def _main_declaration(model: ModelInterface, count: int) -> str:
    params = ", ".join(["void*"] * count) or "void"
    return f"int32_t {main_name(model.mod_name)}({params});"


def _pool_argument(pool: PoolArgument) -> str:
    name = identifier(pool.name)
    return f"(void*){name}" if pool.is_internal else f"workspace_pools->{name}"


def _tensor_data(position: int) -> str:
    return f"((DLTensor*)args[{position}].v_handle)->data"


def _packed_pools(model: ModelInterface, count: int) -> list[str]:
    """The memory of each pool: the library's own, or that of an argument behind the tensors."""
    given = iter(range(count, count + len(model.given_pools)))
    return [
        f"(void*){identifier(pool.name)}" if pool.is_internal else _tensor_data(next(given))
        for pool in model.pools
    ]


def _packed_arguments(model: ModelInterface, count: int) -> list[str]:
    """Statements that describe the pools as tensors behind the arguments."""
    total = count + len(model.pools)
    lines = [f"  TVMValue all[{total}];", f"  int codes[{total}];"]
    lines.append(f"  for (int i = 0; i < {count}; ++i) {{")
    lines += ["    all[i] = args[i];", "    codes[i] = type_codes[i];", "  }"]
    for number, (pool, data) in enumerate(
        zip(model.pools, _packed_pools(model, count), strict=True), count
    ):
        name = f"pool{number}"
        lines += [
            f"  int64_t {name}_shape[] = {{{pool.size}}};",
            f"  DLTensor {name} = {{{data}, {{kDLCPU, 0}}, 1, {{kDLUInt, 8, 1}}, {name}_shape, NULL, 0}};",
            f"  all[{number}].v_handle = &{name};",
            f"  codes[{number}] = kTVMDLTensorHandle;",
        ]
    return lines


def _internal_pool(pool: PoolArgument) -> str:
    alignment = f"__attribute__((aligned({pool.alignment})))"
    name = identifier(pool.name)
    if pool.data is None:
        return f"static {alignment} uint8_t {name}[{max(pool.size, 1)}];"
    rows = "\n".join(_rows(pool.data))
    return f"static const {alignment} uint8_t {name}[{max(pool.size, 1)}] = {{\n{rows}\n}};"


def _rows(data: bytes) -> list[str]:
    starts = range(0, len(data), _BYTES_IN_LINE)
    rows = ["  " + ", ".join([f"0x{b:02x}" for b in data[i : i + _BYTES_IN_LINE]]) for i in starts]
    return [row + "," for row in rows[:-1]] + rows[-1:]


def _quoted(model: ModelInterface) -> str:
    return f'"{model.mod_name}"'
