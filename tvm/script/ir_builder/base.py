"""The builder, and the frames that are open in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

from tvm.ir.extension import ClassExtension
from tvm.runtime.object import Object
from tvm.support import Scoped

V = TypeVar("V")
F = TypeVar("F", bound="IRBuilderFrame")

# names what a class of values stands for, from (name, value)
namer: ClassExtension[Callable[[str, Any], None]] = ClassExtension()


class IRBuilderFrame(Object):
    """A construct that encloses others: open inside a ``with`` block.

    When it ends it hands what it built to the frame around it, or to the builder.
    """

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], Any]] = []

    def __enter__(self) -> Any:
        """Open the frame; the value is what ``with ... as x`` binds."""
        IRBuilder.current().frames.append(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        if exc_type is None:
            self.close()

    def close(self) -> None:
        """End the frame, after those that were to end with it."""
        for callback in reversed(self.callbacks):
            callback()
        self.callbacks.clear()
        frames = IRBuilder.current().frames
        if not frames or frames[-1] is not self:
            raise ValueError(f"{type(self).__name__} requires to be the innermost frame to end")
        frames.pop()
        self.finish()

    def finish(self) -> None:
        """Hand on what was built."""

    def add_callback(self, callback: Callable[[], Any]) -> None:
        """Call a function when the frame that is innermost now ends.

        ``frame.add_callback(frame.__exit__)``, and then ``frame.__enter__()``, lets a frame last as
        long as the one around it.
        """
        frames = IRBuilder.current().frames
        if not frames:
            raise ValueError("add_callback requires a frame around it, got none")
        frames[-1].callbacks.append(callback)

    def open_to_end(self) -> Any:
        """Open the frame for the rest of the one around it."""
        self.add_callback(self.close)
        return self.__enter__()


class IRBuilder(Object):
    """Holds the frames that are open, from the outermost, and the result."""

    def __init__(self) -> None:
        self.frames: list[IRBuilderFrame] = []
        self.result: Any = None

    def __enter__(self) -> IRBuilder:
        _CURRENT.push(self)
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _CURRENT.pop()

    @staticmethod
    def current() -> IRBuilder:
        """The innermost builder.

        Raises
        ------
        ValueError
            Outside all of them.
        """
        builder = _CURRENT.current()
        if builder is None:
            raise ValueError("no IRBuilder is in scope; hint: with IRBuilder() as builder: ...")
        return builder

    @staticmethod
    def is_in_scope() -> bool:
        """Whether there is a builder."""
        return _CURRENT.current() is not None

    def get(self) -> Any:
        """What was built.

        Raises
        ------
        ValueError
            If nothing was.
        """
        if self.result is None:
            raise ValueError("IRBuilder.get requires a program that was built, got none")
        return self.result

    def set_result(self, result: Any) -> None:
        """Take what no frame is around."""
        if self.result is not None:
            raise ValueError("an IRBuilder builds one result, got a second one outside all frames")
        self.result = result

    def find_frame(self, kind: type[F]) -> F | None:
        """The innermost frame of a class."""
        for frame in reversed(self.frames):
            if isinstance(frame, kind):
                return frame
        return None

    def last_frame(self, kind: type[F]) -> F | None:
        """The innermost frame, if it is of a class."""
        last = self.frames[-1] if self.frames else None
        return last if isinstance(last, kind) else None

    @staticmethod
    def name(s: str, v: V) -> V:
        """Give a variable, buffer or the like a name.

        Parameters
        ----------
        s : str
            The name.
        v : object
            What was made for the program that is being built.
        """
        function = namer.find(type(v))
        if function is not None:
            function(s, v)
        return v

    @staticmethod
    def name_many(s: Sequence[str], vs: Sequence[V]) -> list[V]:
        """Give several of them names."""
        return [IRBuilder.name(name, value) for name, value in zip(s, vs, strict=True)]


_CURRENT: Scoped[IRBuilder] = Scoped("tvm_script_ir_builder")

__all__ = ["IRBuilder", "IRBuilderFrame"]
