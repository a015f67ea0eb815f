"""Passes: functions from module to module, alone or in sequence.

@tvm.transform.module_pass(opt_level=1)
def rename(mod, ctx): ...

with tvm.transform.PassContext(opt_level=3):
    mod = tvm.transform.Sequential([rename, ...])(mod)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from tvm.error import TVMError, suggest
from tvm.support import deep
from tvm.support.rvalue import ObjectRValueRef

from .instrument import environment_instruments
from .module import IRModule
from .pass_context import PassContext, PassInfo, register_pass_config

__all__ = [
    "ApplyPassToFunction", "FunctionPass", "ModulePass", "Pass", "PassContext", "PassInfo",
    "PrintIR", "Sequential", "module_pass", "register_pass_config",
]  # fmt: skip


class Pass:
    """The base of passes: call it with a module to get a module."""

    def __init__(self, info: PassInfo) -> None:
        self.info = info
        PASSES.setdefault(info.name, self)

    @property
    def pass_info(self) -> PassInfo:
        """The same as ``info``, by the name of the node's field."""
        return self.info

    @deep
    def __call__(self, mod: IRModule | ObjectRValueRef) -> IRModule:
        """Run the pass under the current context; instruments see it."""
        if isinstance(mod, ObjectRValueRef):
            mod = mod.obj
        if not isinstance(mod, IRModule):
            raise TypeError(f"pass {self.info.name} requires an IRModule, got {type(mod).__name__}")
        context = PassContext.current()
        instruments = [*context.instruments, *environment_instruments()]
        watched = [i for i in instruments if _should_run(i, mod, self.info)]
        if len(watched) < len(instruments):
            return mod
        for instrument in watched:
            instrument.run_before_pass(mod, self.info)
        try:
            result = self.run(mod, context)
        except TVMError as error:
            error.add_context(f"pass {self.info.name}")
            raise
        for instrument in watched:
            instrument.run_after_pass(result, self.info)
        return result

    def run(self, mod: IRModule, context: PassContext) -> IRModule:
        """What the pass does."""
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        """What the object has that a user's class of passes made."""
        if "instance" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        return getattr(self.instance, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.info.name!r}, opt_level={self.info.opt_level})"


# by name, for what a Sequential or a context requires; the compiler itself imports passes
PASSES: dict[str, Pass] = {}


def _should_run(instrument: Any, mod: IRModule, info: PassInfo) -> bool:
    decide = getattr(instrument, "should_run", None)
    return decide is None or decide(mod, info) is not False


class ModulePass(Pass):
    """A pass made of a function from (module, context) to module."""

    def __init__(
        self, transform: Callable[[IRModule, PassContext], IRModule], info: PassInfo
    ) -> None:
        super().__init__(info)
        self.transform = transform

    def run(self, mod: IRModule, context: PassContext) -> IRModule:
        result = self.transform(mod, context)
        if not isinstance(result, IRModule):
            raise TypeError(
                f"pass {self.info.name} requires its function to return an IRModule, "
                f"got {type(result).__name__}"
            )
        return result


class FunctionPass(Pass):
    """A pass that rewrites each function of a kind on its own.

    Parameters
    ----------
    transform : callable
        From (function, module, context) to function.
    function_type : type
        The class of functions that it applies to.
    """

    def __init__(
        self,
        transform: Callable[[Any, IRModule, PassContext], Any],
        info: PassInfo,
        function_type: type,
    ) -> None:
        super().__init__(info)
        self.transform = transform
        self.function_type = function_type

    def run(self, mod: IRModule, context: PassContext) -> IRModule:
        functions = {}
        for gvar, function in mod.functions.items():
            if isinstance(function, self.function_type):
                try:
                    function = self.transform(function, mod, context)
                except TVMError as error:
                    error.add_context(f"function {gvar.name_hint}")
                    raise
                if function is None:
                    continue
            functions[gvar] = function
        return mod.with_functions(functions)


class Sequential(Pass):
    """Passes one after another; those that the context does not enable are left out."""

    def __init__(
        self,
        passes: Sequence[Pass] | None = None,
        opt_level: int = 0,
        name: str = "sequential",
        required: Iterable[str] | None = None,
        traceable: bool = False,
    ) -> None:
        for item in passes or ():
            if not isinstance(item, Pass):
                raise TypeError(f"Sequential requires passes, got {type(item).__name__}")
        self.passes = list(passes or ())
        super().__init__(PassInfo(opt_level, name, tuple(required or ()), traceable))

    def run(self, mod: IRModule, context: PassContext) -> IRModule:
        for item in self.passes:
            info = item.info
            if not context.enables(info.name, info.opt_level):
                continue
            for name in info.required:
                mod = _find_pass(name)(mod)
            mod = item(mod)
        return mod


def _find_pass(name: str) -> Pass:
    if name not in PASSES:
        raise TVMError(f"a pass requires the pass {name!r}", hint=suggest(name, PASSES))
    return PASSES[name]


def make_pass_decorator(
    public_name: str, build: Callable[[Any, PassInfo], Pass], method: str, form: str
) -> Callable[..., Any]:
    """A classic pass decorator: of functions gives a pass, of classes a factory of passes.

    Parameters
    ----------
    public_name : str
        The decorator's own name.
    build : callable
        From (transform, info) to the pass.
    method : str
        What a class of passes calls its transform.
    form : str
        The transform's arguments and result, for the documentation.
    """

    def decorate(
        pass_func: Any = None,
        opt_level: int | None = None,
        name: str | None = None,
        required: Iterable[str] | None = None,
        traceable: bool = False,
    ) -> Any:
        if opt_level is None:
            raise ValueError("a pass requires an opt_level, got None")

        def make(function: Any) -> Any:
            info = PassInfo(opt_level, name or function.__name__, tuple(required or ()), traceable)
            if inspect.isclass(function):
                return _class_factory(function, info, build, method)
            if not callable(function):
                raise TypeError(f"a pass requires a function, got {function!r}")
            return build(function, info)

        return make if pass_func is None else make(pass_func)

    decorate.__name__ = decorate.__qualname__ = public_name
    decorate.__doc__ = _PASS_DECORATOR.format(method=method, form=form)
    return decorate


_PASS_DECORATOR = """Make a pass of a function, or of a class with ``{method}``.

    Parameters
    ----------
    pass_func : callable or class, optional
        ``{form}``; without it, a decorator is returned.
    opt_level : int
        The level from which on the pass runs.
    name : str, optional
        The function's name by default.
    required : list of str, optional
        Names of passes to run before.
    traceable : bool
        What the pass's information says of it; passes run alike.
    """


def _class_factory(
    cls: Any, info: PassInfo, build: Callable[[Any, PassInfo], Pass], method: str
) -> Any:
    """``Class(args)`` makes the object, and a pass that calls its method."""

    class PassFactory:
        def __new__(factory, *args: Any, **kwargs: Any) -> Any:
            instance = cls(*args, **kwargs)
            made = build(getattr(instance, method), info)
            made.instance = instance  # type: ignore[attr-defined]
            return made

    PassFactory.__name__, PassFactory.__doc__ = cls.__name__, cls.__doc__
    PassFactory.__qualname__, PassFactory.__module__ = cls.__qualname__, cls.__module__
    return PassFactory


module_pass = make_pass_decorator(
    "module_pass", ModulePass, "transform_module", "f(mod, ctx) -> mod"
)


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:
    """A pass that prints the module and returns it."""

    def show(mod: IRModule, _: PassContext) -> IRModule:
        print(f"PrintIR({header}):\n{mod.astext(show_meta_data)}")
        return mod

    return ModulePass(show, PassInfo(0, "PrintIR"))


def ApplyPassToFunction(
    transform: Pass, func_name_regex: str, error_if_no_function_matches_regex: bool = False
) -> Pass:
    """Run a pass on the functions whose name matches, the others left as they are."""

    def run(mod: IRModule, _: PassContext) -> IRModule:
        chosen = {
            gvar: function
            for gvar, function in mod.functions.items()
            if re.fullmatch(func_name_regex, gvar.name_hint)
        }
        if not chosen and error_if_no_function_matches_regex:
            names = [gvar.name_hint for gvar in mod.functions]
            raise TVMError(
                f"ApplyPassToFunction requires a function that matches {func_name_regex!r}, "
                f"got {names}"
            )
        part = transform(IRModule(chosen, mod.type_definitions, mod.attrs, mod.global_infos))
        return mod.with_functions({**mod.functions, **part.functions})

    return ModulePass(run, PassInfo(0, f"ApplyPassToFunction({transform.info.name})"))
