"""Functions that only other compiled functions call are handed on as they are lowered: no machine code of their own.

numba makes machine code, optimised with everything it calls and with a wrapper for the interpreter, of every function on the
way, although callers link the functions themselves and optimise them once more. Here a compiled function is two: the one that
the interpreter calls, and the *part* that compiled callers link. A part is lowered and simplified on its own, and optimised
only within the functions that are called. A third of the time that compiling takes is saved.
"""

# mypy: disable-error-code="misc,no-any-return"

from __future__ import annotations

from typing import Any, NamedTuple

from llvmlite import binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult
from numba.core.environment import Environment, lookup_environment
from numba.core.registry import CPUDispatcher

ENVIRONMENT = "_ZN08NumbaEnv"
"""How the names of the variables begin in which compiled functions find their environments."""


class PartLibrary(JITCodeLibrary):
    """The code of a part with all that it calls, to be linked into others."""

    def finalize(self) -> None:
        """Link what it calls; neither optimise it nor make machine code of it.

        Nothing has to be run when it is loaded again (numba's `reload_init`): that is for parallel loops, and there are none.
        """
        self._raise_if_finalized()
        for library in dict.fromkeys(self._linking_libraries):
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


class PartCompiler(Compiler):
    """numba's usual steps up to the machine code."""

    def define_pipelines(self) -> Any:
        """The usual ones, with another end."""
        state = self.state
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        state.library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super().define_pipelines()


class SavedPart(NamedTuple):
    """What a part is made of again, in another process."""

    name: str
    bitcode: bytes
    description: Any
    environment: Environment
    signature: Any
    environments: tuple[Environment, ...]


def save_part(part: Any) -> SavedPart:
    """What is kept of a part."""
    module = part.library._get_module_for_linking()
    part.fndesc.typemap = part.fndesc.calltypes = None  # as numba does: they are not needed, and may not be picklable
    return SavedPart(
        part.library.name, module.as_bitcode(), part.fndesc, part.environment, part.signature,
        tuple(env for env in environments_in(module) if env.can_cache()),
    )  # fmt: skip


def load_part(saved: SavedPart, context: Any) -> Any:
    """The part that was saved."""
    library = PartLibrary(context.codegen(), saved.name)
    library._final_module = llvm.parse_bitcode(saved.bitcode)
    library._finalized = True
    empty: dict[str, Any] = dict.fromkeys(CompileResult._fields)
    known = {
        "target_context": context, "typing_context": context.typing_context, "library": library,
        "environment": saved.environment, "entry_point": object(), "fndesc": saved.description,
        "signature": saved.signature, "objectmode": False, "lifted": (), "reload_init": (),
        "referenced_envs": saved.environments,
    }  # fmt: skip
    return CompileResult(**{**empty, **known})


def environments_in(module: Any) -> list[Environment]:
    """The environments of all functions in a module."""
    found = (
        lookup_environment(variable.name)
        for variable in module.global_variables
        if variable.name.startswith(ENVIRONMENT)
    )
    return [environment for environment in found if environment is not None]


class Part(CPUDispatcher):
    """A compiled function as compiled callers see it."""

    _cache: Any

    def add_overload(self, cres: Any) -> None:
        """Callers find it under a key of its own, where others have the address of their machine code."""
        if cres.entry_point is None:
            cres = cres._replace(entry_point=object())
            self.targetctx.insert_user_function(cres.entry_point, cres.fndesc, [cres.library])
        self.overloads[tuple(cres.signature.args)] = cres


class Entry(CPUDispatcher):
    """A compiled function as the interpreter sees it; compiled callers are given its part."""

    _cache: Any

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None, **options: Any) -> None:
        given = py_func, locals or {}, targetoptions or {}
        super().__init__(*given, **options)
        self.part = Part(*given, pipeline_class=PartCompiler)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """What type inference of a caller asks for."""
        return self.part.get_call_template(args, kws)

    def get_overload(self, sig: Any) -> Any:
        """What lowering of a caller asks for."""
        return self.part.get_overload(sig)

    @property
    def is_compiling(self) -> Any:
        """Whether a specialization is being compiled: then a call of itself is a recursion."""
        return self._compiling_counter or self.part._compiling_counter

    def add_overload(self, cres: Any) -> None:
        """Ready to run: every function linked into it knows its environment, as in code that is loaded."""
        super().add_overload(cres)
        for environment in environments_in(cres.library._final_module):
            cres.codegen.set_env(environment.env_name, environment)
