"""Everything that touches jax's internals, for every supported version.

Public API comes first; where a private name is needed it stands in ``internals``.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from . import internals

PROTOCOL = 1
OLDEST = (0, 10)

BACKENDS = {
    "mosaic_gpu": "jax.experimental.pallas.mosaic_gpu",
    "triton": "jax.experimental.pallas.triton",
    "tpu": "jax.experimental.pallas.tpu",
}

# -- the handshake ---------------------------------------------------------------------------------------------------

_missing: dict[str, str] = {}


def preimport() -> None:
    """Import jax and each Pallas backend; what cannot be imported is told in ``worker_info``."""
    try:
        importlib.import_module("jax.experimental.pallas")
    except BaseException as error:
        _missing["jax"] = _reason(error)
        return
    for backend, module in BACKENDS.items():
        try:
            importlib.import_module(module)
        except BaseException as error:
            _missing[backend] = _reason(error)
    with contextlib.suppress(BaseException):
        # jax imports it when it lowers for the first time, in each run anew.
        importlib.import_module("jaxlib.mlir.dialects.mhlo")
    with contextlib.suppress(Exception):
        # Full tracebacks, with the user's frames in them, are what faults are located by.
        importlib.import_module("jax").config.update("jax_traceback_filtering", "off")
    if os.environ.get("JAX_PLATFORMS") == "cpu":
        with contextlib.suppress(Exception):  # a jax that is too old, which the engine will say
            _pretend_cuda()


class _CudaVersions:
    """Stands for jaxlib's module about the installed CUDA, which the kernels inside jax ask for its version."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_: 13_000 if name.endswith("version") else 1


def _pretend_cuda() -> None:
    """Let code that is imported from now on find a CUDA, so that kernels for it can be traced without one."""
    lib = importlib.import_module(internals.LIBRARY)
    if getattr(lib, "cuda_versions", None) is None:
        lib.cuda_versions = versions = _CudaVersions()  # type: ignore[attr-defined]
        cudnn: Any = sys.modules.get(internals.CUDNN)
        if cudnn is not None:
            cudnn.cuda_versions = versions


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def worker_info() -> dict[str, Any]:
    """The fields of ``WorkerInfo``."""
    jax = sys.modules.get("jax")
    return {
        "protocol": PROTOCOL,
        "python": ".".join(map(str, sys.version_info[:3])),
        "executable": sys.executable,
        "jax": getattr(jax, "__version__", None) if "jax" not in _missing else None,
        "backends": [name for name, module in BACKENDS.items() if module in sys.modules and name not in _missing],
        "missing": dict(_missing),
    }


def backends_initialized() -> bool:
    """Whether jax started a backend in this process: such a process must not be forked."""
    return bool(internals.loaded(internals.BACKENDS))


# -- types and programs ----------------------------------------------------------------------------------------------


def is_equation(value: Any) -> bool:
    return type(value).__name__ == "JaxprEqn" and hasattr(value, "primitive") and hasattr(value, "source_info")


def is_jaxpr(value: Any) -> bool:
    return hasattr(value, "eqns") and hasattr(value, "invars")


def open_jaxpr(value: Any) -> Any:
    """The jaxpr of a jaxpr or closed jaxpr, else None."""
    inner = getattr(value, "jaxpr", None)
    if is_jaxpr(inner):
        return inner
    return value if is_jaxpr(value) else None


def sub_jaxprs(equation: Any) -> Iterator[Any]:
    """The programs inside an equation's parameters, nested tuples included."""
    pending = list(equation.params.values())
    while pending:
        value = pending.pop(0)
        if isinstance(value, (tuple, list)):
            pending.extend(value)
        elif (jaxpr := open_jaxpr(value)) is not None:
            yield jaxpr


def closed(jaxpr_param: Any, consts: tuple[Any, ...] = ()) -> Any:
    if hasattr(jaxpr_param, "jaxpr") and hasattr(jaxpr_param, "consts"):
        return jaxpr_param
    from jax.extend import core

    return core.ClosedJaxpr(jaxpr_param, consts)


def program_source(jaxpr: Any) -> str:
    """File of the function that a jaxpr was traced from, or an empty string."""
    info = getattr(jaxpr, "debug_info", None)
    text = getattr(info, "func_src_info", None) or ""
    return _SOURCE.sub(r"\1", text) if _SOURCE.search(text) else ""


_SOURCE = re.compile(r"^.* at (.+):\d+$")


def is_ref(aval: Any) -> bool:
    return isinstance(aval, internals.get(internals.ABSTRACT_REF))


def is_tracer(value: Any) -> bool:
    return isinstance(value, internals.get(internals.TRACER))


def soften_tracers() -> None:
    """Let code that waits for a result go on under a trace, where there is nothing to wait for."""
    internals.get(internals.TRACER).block_until_ready = lambda self: self


def fake_kernels_on_cpu() -> None:
    """Where user code has a function with a kernel compiled for this machine's CPU, the kernel gives zeros."""
    full, register = internals.get(internals.FULL_LIKE_AVAL), internals.get(internals.REGISTER_LOWERING)

    def zeros(context: Any, *_: Any, **__: Any) -> list[Any]:
        return [full(context, 0, aval) for aval in context.avals_out]

    for primitive in internals.KERNEL_PRIMITIVES:
        with contextlib.suppress(ImportError, AttributeError):
            register(internals.get(primitive), zeros, platform="cpu")


@contextlib.contextmanager
def soft_values(allowed: Callable[[], bool]) -> Iterator[None]:
    """Tracers convert to zeros, to True and to 1.0 where ``allowed()``: a driver goes on past a value that it looks at.

    Shapes never come from this: ``int`` of a tracer stays an error.
    """
    import numpy  # type: ignore[import-not-found]

    Tracer = internals.get(internals.TRACER)  # noqa: N806 - a class
    names = ("__array__", "__bool__", "__float__", "item", "tolist")
    before: dict[str, Any] = {name: Tracer.__dict__.get(name) for name in names}

    def array(self: Any, *args: Any, **kwargs: Any) -> Any:
        if allowed():
            return numpy.zeros(self.aval.shape, self.aval.dtype)
        return before["__array__"](self, *args, **kwargs)

    def boolean(self: Any) -> Any:
        return True if allowed() else before["__bool__"](self)

    def number(self: Any) -> float:
        return 1.0 if allowed() else before["__float__"](self)

    def item(self: Any, *args: Any) -> Any:
        if not allowed() or numpy.issubdtype(self.aval.dtype, numpy.integer):
            return _original(before, "item", self)(*args)
        return bool(self) if self.aval.dtype == bool else float(self)

    def listed(self: Any) -> Any:
        if not allowed() or numpy.issubdtype(self.aval.dtype, numpy.integer):
            return _original(before, "tolist", self)()
        return numpy.zeros(self.aval.shape, self.aval.dtype).tolist()

    for name, soft in zip(names, (array, boolean, number, item, listed), strict=True):
        setattr(Tracer, name, soft)
    try:
        yield
    finally:
        for name, original in before.items():
            if original is None:
                delattr(Tracer, name)
            else:
                setattr(Tracer, name, original)


def _original(before: dict[str, Any], name: str, tracer: Any) -> Callable[..., Any]:
    """A method of a tracer as jax has it: of the class, or found through its type."""
    if before[name] is not None:
        return types.MethodType(before[name], tracer)
    method: Callable[..., Any] = tracer.__getattr__(name)
    return method


_SHORT = {
    "float": "f",
    "bfloat": "bf",
    "uint": "u",
    "int": "i",
    "complex": "c",
}


def notation(value: Any) -> str:
    """A type in JAX's notation: ``bf16[512,256]``; a value that is no array as its short repr."""
    aval = getattr(value, "aval", value)
    inner = getattr(aval, "inner_aval", None)
    if inner is not None:
        return f"Ref<{notation(inner)}>"
    shape, dtype = getattr(aval, "shape", None), getattr(aval, "dtype", None)
    if shape is None or dtype is None:
        text = repr(value)
        return text if len(text) <= 40 else f"{type(value).__name__}(...)"
    name = getattr(dtype, "name", str(dtype))
    match = re.fullmatch(r"(bfloat|float|uint|int|complex)(\d\w*)", name)
    short = f"{_SHORT[match[1]]}{match[2]}" if match else name
    return f"{short}[{','.join(map(str, shape))}]"


def abstract_arguments(jaxpr: Any) -> list[Any]:
    """Fresh argument types for a captured program, free of the mesh it was traced under."""
    import jax

    return [
        jax.ShapeDtypeStruct(v.aval.shape, v.aval.dtype, weak_type=getattr(v.aval, "weak_type", False))
        if hasattr(v.aval, "shape") and hasattr(v.aval, "dtype")
        else v.aval
        for v in jaxpr.invars
    ]


def in_memory_spaces(function: Callable[..., Any], avals: Iterable[Any]) -> Callable[..., Any]:
    """The function with each argument in the memory space that its type names.

    ``pltpu.with_memory_space_constraint`` puts an array there, and a ``ShapeDtypeStruct`` cannot say it.
    """
    import jax

    spaces = [getattr(aval, "memory_space", None) for aval in avals]
    wanted = [None if isinstance(space, type(jax.memory.Space.Device)) else space for space in spaces]
    if not any(space is not None for space in wanted):
        return function
    from jax.experimental.pallas import tpu

    def constrained(*given: Any) -> Any:
        pairs = zip(given, wanted, strict=True)
        return function(*(x if space is None else tpu.with_memory_space_constraint(x, space) for x, space in pairs))

    return constrained


def one_equation(equation: Any, program: Any) -> Any:
    """A jaxpr of that one equation; ``program`` is any jaxpr, taken as the pattern."""
    from jax.extend import core

    variables = []
    for var in equation.invars:
        if not isinstance(var, core.Literal) and var not in variables:
            variables.append(var)
    info: Any = getattr(program, "debug_info", None)
    outputs = [var for var in equation.outvars if type(var).__name__ != "DropVar"]
    fields: dict[str, Any] = {"constvars": [], "invars": variables, "outvars": outputs, "eqns": [equation]}
    if hasattr(info, "with_unknown_names"):
        fields["debug_info"] = info.with_unknown_names()
    if hasattr(program, "effects"):
        fields["effects"] = equation.effects
    return program.replace(**fields)


def jaxpr_function(closed_jaxpr: Any) -> Callable[..., Any]:
    from jax.extend import core

    function: Callable[..., Any] = core.jaxpr_as_fun(closed_jaxpr)
    return function


# -- source places ---------------------------------------------------------------------------------------------------


def code_frames(traceback: Any) -> list[tuple[types.CodeType, int]]:
    """(code, last instruction) of an XLA traceback, innermost first."""
    if traceback is None:
        return []
    codes, lastis = traceback.raw_frames()
    return list(zip(codes, lastis, strict=True))


def equation_frames(equation: Any) -> list[tuple[types.CodeType, int]]:
    return code_frames(getattr(equation.source_info, "traceback", None))


def compute_on_cpu() -> None:
    """Keep what user code computes off the GPU, in a process that sees one: it is there to compile."""
    import jax

    with contextlib.suppress(RuntimeError):
        jax.config.update("jax_default_device", jax.devices("cpu")[0])


def quiet_environment() -> None:
    """Keep jax on the CPU and quiet; called before jax is imported."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
        # Meshes of several devices can be built; nothing is computed on them.
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8".strip()


def scan_parts(equation: Any) -> tuple[int, int]:
    """How many operands of a ``scan`` are constants, and how many are carried."""
    if "num_consts" in equation.params:
        return equation.params["num_consts"], equation.params["num_carry"]
    consts, carried, _ = (list(part) for part in equation.params["ft_in"].update(equation.invars).unpack())
    return len(consts), len(carried)
