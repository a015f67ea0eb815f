"""What the methods of `Schedule` share: random variables and their values, recorded steps, rendered errors."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tvm.arith import Analyzer
from tvm.error import RuntimeTypeError, RuntimeValueError
from tvm.ir.expr import GlobalVar, PrimExpr
from tvm.ir.module import IRModule
from tvm.runtime.object import Object
from tvm.tir.block_scope import StmtSRef
from tvm.tir.buffer import Buffer
from tvm.tir.expr import IntImm, Var
from tvm.tir.function import PrimFunc
from tvm.tir.index_map import IndexMap
from tvm.tir.stmt import Block, For
from tvm.tir.stmt_functor import substitute

from .errors import RENDER_LEVELS, PrimitiveError, rendered
from .instruction import Instruction, InstructionKind, variables_in
from .random_variables import BlockRV, LoopRV
from .state import ScheduleState
from .trace import Trace

T = TypeVar("T")
MULTIPLIER, MODULUS = 48271, 2147483647  # of the minimal standard generator


class ScheduleBase(Object):
    """Random variables, the trace, and how primitives are run."""

    def __init__(
        self,
        mod: PrimFunc | IRModule,
        *,
        seed: int | None = None,
        debug_mask: str | int = "none",
        error_render_level: str = "detail",
        enable_check: bool = True,
    ) -> None:
        if error_render_level not in RENDER_LEVELS:
            raise RuntimeValueError(
                f"error_render_level requires one of {list(RENDER_LEVELS)}, got {error_render_level!r}"
            )
        self._state = ScheduleState(mod, debug_mask=debug_mask, enable_check=enable_check)
        self._trace: Trace | None = Trace()
        self._error_render_level = error_render_level
        self._srefs: dict[Any, StmtSRef] = {}
        self._numbers: dict[Var, int] = {}
        self._working_on: GlobalVar | None = None
        functions = [
            gvar for gvar, func in self._state.mod.functions.items() if isinstance(func, PrimFunc)
        ]
        names = [gvar.name_hint for gvar in functions]
        if "main" in names:
            self._working_on = functions[names.index("main")]
        elif len(functions) == 1:
            self._working_on = functions[0]
        self._random_state = 1
        self._seed(seed)

    # ---- the program

    @property
    def mod(self) -> IRModule:
        """The program, as it is now."""
        return self._state.mod

    @property
    def state(self) -> ScheduleState:
        """The program with the references into it."""
        return self._state

    @property
    def trace(self) -> Trace | None:
        """The steps so far."""
        return self._trace

    @property
    def func_working_on(self) -> GlobalVar | None:
        """The function whose blocks are found by name alone."""
        return self._working_on

    def work_on(self, func_name: str) -> None:
        """Find blocks in another function from now on.

        Parameters
        ----------
        func_name : str
            The function's name.
        """
        self._working_on = self.mod.get_global_var(func_name)

    def _repr_html_(self) -> str:
        return self.mod._repr_html_()

    def show(self, *args: Any, **kwargs: Any) -> None:
        """Print the program and the trace.

        Parameters
        ----------
        args, kwargs
            As of ``IRModule.show``.
        """
        self.mod.show(*args, **kwargs)
        if self._trace is not None:
            self._trace.show(*args, **kwargs)

    # ---- random numbers

    def _seed(self, seed: int | None) -> None:
        if seed is None or seed == -1:
            seed = secrets.randbelow(MODULUS - 1) + 1
        if not isinstance(seed, int):
            raise RuntimeTypeError(f"a seed has to be an integer, got {type(seed).__name__}")
        if seed < 0:
            raise RuntimeValueError(
                f"a seed requires an integer from 1 to {MODULUS - 1}, or -1, got {seed}"
            )
        self._random_state = seed % MODULUS or 1

    def _next_random(self) -> int:
        self._random_state = self._random_state * MULTIPLIER % MODULUS
        return self._random_state

    def seed(self, seed: int) -> None:
        """Start the random numbers anew.

        Parameters
        ----------
        seed : int
            The seed; -1 for one that is drawn.
        """
        self._seed(seed)

    def fork_seed(self) -> int:
        """A seed for another schedule, from this one's random numbers."""
        return self._next_random() * 32767 % 1999999973

    # ---- random variables

    def get(self, rand_var_or_sref: Any) -> Any:
        """What a random variable or a reference stands for now.

        Parameters
        ----------
        rand_var_or_sref : BlockRV, LoopRV, ExprRV or StmtSRef

        Returns
        -------
        Block, For or int
        """
        if isinstance(rand_var_or_sref, StmtSRef):
            return rand_var_or_sref.stmt
        if isinstance(rand_var_or_sref, (BlockRV, LoopRV)):
            return self._sref(rand_var_or_sref).stmt
        return self._number(rand_var_or_sref)

    def get_sref(self, rand_var_or_stmt: Any) -> StmtSRef | None:
        """The reference that a random variable, a loop or a block has.

        Parameters
        ----------
        rand_var_or_stmt : BlockRV, LoopRV, Block or For
        """
        if isinstance(rand_var_or_stmt, (Block, For)):
            return self._state.get_sref(rand_var_or_stmt)
        return self._sref(rand_var_or_stmt)

    def remove_rv(self, rand_var: Any) -> None:
        """Forget a random variable.

        Parameters
        ----------
        rand_var : BlockRV, LoopRV or ExprRV
        """
        table: dict[Any, Any] = self._numbers if isinstance(rand_var, Var) else self._srefs
        if rand_var not in table:
            raise IndexError(f"no such random variable is known: {rand_var}")
        del table[rand_var]

    def _sref(self, variable: Any) -> StmtSRef:
        if not isinstance(variable, (BlockRV, LoopRV)):
            raise RuntimeTypeError(
                f"a BlockRV or LoopRV is required, got {type(variable).__name__}"
            )
        sref = self._srefs.get(variable)
        if sref is None:
            raise IndexError(f"Cannot find corresponding {type(variable).__name__}: {variable!r}")
        if sref.stmt is None and sref not in (StmtSRef.inline_mark(), StmtSRef.root_mark()):
            raise RuntimeValueError(
                f"The {type(variable).__name__} is no longer part of the program: it was removed by "
                "a primitive"
            )
        return sref

    def _loop(self, variable: Any) -> StmtSRef:
        if not isinstance(variable, LoopRV):
            raise RuntimeTypeError(f"a LoopRV is required, got {type(variable).__name__}")
        return self._sref(variable)

    def _place(self, variable: Any) -> StmtSRef:
        """The reference of a loop or a block."""
        return self._sref(variable)

    def _number(self, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, (int, PrimExpr)):
            raise RuntimeTypeError(
                f"an integer or an ExprRV is required, got {type(value).__name__}"
            )
        if isinstance(value, int):
            return value
        if isinstance(value, Var):
            if value not in self._numbers:
                raise IndexError(f"Cannot find corresponding ExprRV: {value}")
            return self._numbers[value]
        expr = Analyzer().simplify(self._evaluated(value))
        if not isinstance(expr, IntImm):
            raise IndexError(f"the value of {value} is not known")
        return expr.value

    def _evaluated(self, expr: Any) -> Any:
        """An expression with the numbers that were sampled in it."""
        if isinstance(expr, PrimExpr):
            sampled = {
                var: self._numbers[var] for var in variables_in(expr) if var in self._numbers
            }
            return Analyzer().simplify(substitute(expr, sampled) if sampled else expr)
        if isinstance(expr, IndexMap):
            return expr.replace(
                final_indices=tuple([self._evaluated(e) for e in expr.final_indices])
            )
        if isinstance(expr, (list, tuple)):
            return [self._evaluated(item) for item in expr]
        if isinstance(expr, dict):
            return {key: self._evaluated(item) for key, item in expr.items()}
        return expr

    def _block_rv(self, block: Any) -> BlockRV:
        """A block that is given by its name or as a random variable."""
        if isinstance(block, str):
            return self.get_block(block)  # type: ignore[attr-defined, no-any-return]
        if not isinstance(block, BlockRV):
            raise RuntimeTypeError(
                f"a BlockRV or the name of a block is required, got {type(block).__name__}"
            )
        return block

    def _block(self, variable: BlockRV) -> StmtSRef:
        return self._sref(variable)

    def _new_block(self, sref: StmtSRef) -> BlockRV:
        variable = BlockRV()
        self._srefs[variable] = sref
        return variable

    def _new_loop(self, sref: StmtSRef) -> LoopRV:
        variable = LoopRV()
        self._srefs[variable] = sref
        return variable

    def _new_number(self, value: int) -> Var:
        variable = Var("v", "int32")
        self._numbers[variable] = value
        return variable

    # ---- steps

    def _run(self, primitive: str, function: Callable[..., T], *args: Any) -> T:
        """Apply a primitive; an error leaves the program as it was."""
        restore = self._state.snapshot()
        try:
            result = function(self._state, *args)
        except PrimitiveError as error:
            restore()
            raise rendered(error, primitive, self.mod, self._error_render_level) from None
        if self._state.debug_mask:
            self._state.debug_verify()
        return result

    def _record(
        self,
        kind: str,
        inputs: Sequence[Any],
        attrs: Sequence[Any] = (),
        outputs: Sequence[Any] = (),
        decision: Any = None,
    ) -> None:
        if self._trace is not None:
            step = Instruction(InstructionKind.get(kind), inputs, attrs, outputs)
            self._trace.append(step, decision)

    def _region_index(self, block: BlockRV, buffer: Any, access: str) -> int:
        """The number of a region that is given as a number, or by its buffer."""
        if isinstance(buffer, int):
            return int(buffer)
        stmt = self._block(block).block
        regions = stmt.reads if access == "read" else stmt.writes
        for index, region in enumerate(regions):
            if region.buffer is buffer or region.buffer.name == buffer:
                return index
        raise RuntimeValueError(f"block {stmt.name_hint} does not {access} the buffer {buffer!r}")

    def _buffer_index(self, block: BlockRV, buffer: Any) -> tuple[str, int, Buffer]:
        """A buffer that is given as itself, by name, or by kind and position among the block's regions."""
        stmt = self._block(block).block
        if isinstance(buffer, tuple):
            if len(buffer) != 2 or buffer[0] not in ("read", "write"):
                raise RuntimeTypeError(
                    f"a buffer requires ('read' or 'write', index), got {buffer!r}"
                )
            kind, index = buffer[0], int(buffer[1])
            regions = stmt.reads if kind == "read" else stmt.writes
            if not 0 <= index < len(regions):
                raise AssertionError(
                    f"block {stmt.name_hint} has {len(regions)} {kind} regions, got index {index}"
                )
            return kind, index, regions[index].buffer
        if isinstance(buffer, str) and "[" not in buffer:
            return _named_buffer(stmt, buffer)
        if isinstance(buffer, Buffer):
            for kind, regions in (("read", stmt.reads), ("write", stmt.writes)):
                for index, region in enumerate(regions):
                    if region.buffer is buffer:
                        return kind, index, buffer
            raise RuntimeValueError(f"block {stmt.name_hint} does not access buffer {buffer.name}")
        raise RuntimeTypeError(
            f"a Buffer, its name or (kind, index) is required, got {type(buffer).__name__}"
        )


def _named_buffer(block: Block, name: str) -> tuple[str, int, Buffer]:
    found: dict[Buffer, tuple[str, int]] = {}
    for kind, regions in (("read", block.reads), ("write", block.writes)):
        for index, region in enumerate(regions):
            # a buffer that is read and written is meant as the one that is written
            if region.buffer.name == name:
                found[region.buffer] = (kind, index)
    if not found:
        known = dict.fromkeys([r.buffer.name for r in (*block.reads, *block.writes)])
        raise RuntimeValueError(
            f"block {block.name_hint} accesses no buffer called {name!r}, but {list(known)}"
        )
    if len(found) > 1:
        raise RuntimeValueError(f"block {block.name_hint} accesses several buffers called {name!r}")
    ((buffer, (kind, index)),) = found.items()
    return kind, index, buffer
