"""What distinguishes the C-like languages in which kernels are written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tvm.codegen.c.helpers import HELPERS, Helper
from tvm.error import LoweringError
from tvm.support.dtype import DType
from tvm.tir.expr import Call

if TYPE_CHECKING:
    from .kernel import KernelWriter
    from .wmma import Fragment

WriteCall = Callable[["KernelWriter", Call], Any]


class Language(ABC):
    """One language: its words for memory, threads, vectors and functions."""

    name: ClassVar[str]
    prelude: ClassVar[str]
    helpers: ClassVar[Mapping[str, Helper]] = {}  # instead of those of C
    intrinsics: ClassVar[Mapping[str, WriteCall]]
    widest_access: ClassVar[int]  # bytes that one access of aligned memory moves
    needs_alignment: ClassVar[bool]  # of the accesses of several elements

    def helper(self, name: str) -> Helper:
        """A function that kernels call, in this language."""
        own = self.helpers.get(name)
        return Helper(self.adapted(HELPERS[name].text), HELPERS[name].needs) if own is None else own

    def has_helper(self, name: str) -> bool:
        """Whether there is such a function."""
        return name in self.helpers or name in HELPERS

    @abstractmethod
    def adapted(self, text: str) -> str:
        """C text in this language, without loss."""

    @abstractmethod
    def signature(self, name: str, params: Sequence[str], block: Sequence[int | None]) -> str:
        """The head of a kernel whose blocks have that many threads in x, y and z, where it is known."""

    @abstractmethod
    def address_space(self, scope: str) -> str:
        """What stands before the type of a pointer to memory of a scope."""

    @abstractmethod
    def thread(self, axis: str) -> str:
        """The index of the thread or block along an axis such as ``threadIdx.x``."""

    @abstractmethod
    def shared_array(self, type_: str, name: str, size: int) -> str:
        """Declares memory that the threads of a block share."""

    def fragments(self, w: KernelWriter, name: str, kind: Fragment, elements: int) -> None:
        """Declares fragments of matrix units."""
        raise LoweringError(f"{self.name} has no memory of scope {kind.scope}")

    @abstractmethod
    def dynamic_array(self, name: str) -> tuple[str, str]:
        """Parameter and declaration of the shared memory whose size is given at the launch; one is empty."""

    @abstractmethod
    def math(self, name: str, bits: int) -> str:
        """The name of a function of C's mathematics."""

    @abstractmethod
    def barrier(self, scope: str) -> str:
        """Makes the threads wait for each other; empty if the scope needs none."""

    @abstractmethod
    def vector_type(self, element: DType, lanes: int) -> str:
        """The type of a vector in memory, of one of the lengths 2, 4, 8 and 16."""

    @abstractmethod
    def lane(self, vector: str, index: int, lanes: int) -> str:
        """One lane of a vector in a variable."""

    @abstractmethod
    def vector_load(self, pointer: str, type_: str, space: str, lanes: int) -> str:
        """Neighbouring elements as one vector."""

    @abstractmethod
    def vector_store(self, pointer: str, type_: str, space: str, values: Sequence[str]) -> str:
        """Stores neighbouring elements at once."""
