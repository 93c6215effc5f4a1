"""Launches replaced by recorders: each is traced where it stands, its faults are told, and the driver goes on.

While a driver is evaluated abstractly the real launch is staged, inside a jitted function whose name marks it
(``UNIT``), so that what ``vmap``, ``grad`` and ``shard_map`` make of the kernel is found in the driver's program.
While a driver runs concretely the launch is traced aside and zeros of its output types are returned: nothing runs on a
device.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import sys
import types
from collections.abc import Callable
from typing import Any

from . import backends, compat, devices, entry_calls, faults, frames, internals
from .session import MOST_CAPTURES_PER_KERNEL, Capture, LaunchFailed, Session

UNIT = "pallas_lsp_unit_"

# (module, attribute, name in reports, position of the output type)
_LAUNCHES = (
    ("jax.experimental.pallas", "pallas_call", "pl.pallas_call", 1),
    ("jax.experimental.pallas", "kernel", "pl.kernel", 1),
    ("jax.experimental.pallas.mosaic_gpu", "kernel", "plgpu.kernel", 1),
    ("jax.experimental.pallas.tpu", "kernel", "pltpu.kernel", 1),
)
_OUTPUTS = ("out_type", "out_shape")
_BODIES = ("body", "kernel")


def install(session: Session) -> None:
    """Replace the launch functions in jax's public namespaces."""
    done: dict[int, Callable[..., Any]] = {}
    for module_name, attribute, api, position in _LAUNCHES:
        module = sys.modules.get(module_name)
        original = getattr(module, attribute, None)
        if module is None or original is None:
            continue
        if id(original) not in done:
            done[id(original)] = _factory(session, original, api, position)
        setattr(module, attribute, done[id(original)])
    # jax's own modules import the function by name.
    within = internals.loaded(internals.PALLAS_CALL)
    if id(within) in done:
        holder, name = internals.PALLAS_CALL
        setattr(sys.modules[holder], name, done[id(within)])


def _factory(session: Session, original: Callable[..., Any], api: str, position: int) -> Callable[..., Any]:
    @functools.wraps(original)
    def launch(*args: Any, **options: Any) -> Any:
        if session.inside:
            return original(*args, **options)
        body = args[0] if args else next((options[name] for name in _BODIES if name in options), None)
        here = frames.of_stack(sys._getframe(1))
        if not callable(body) and not isinstance(body, (list, tuple)):  # several bodies: one for each mesh

            def decorate(function: Any) -> Any:
                return _Launch(session, original, api, position, (function, *args[1:]), options, here)

            return decorate
        return _Launch(session, original, api, position, args, options, here)

    return launch


class _Launch:
    """A launch that waits for its arguments."""

    def __init__(
        self,
        session: Session,
        original: Callable[..., Any],
        api: str,
        position: int,
        args: tuple[Any, ...],
        options: dict[str, Any],
        here: list[frames.Frame],
    ) -> None:
        self._session = session
        self._api = api
        self._here = here
        self._options = options
        given = args[0] if args else next(options[name] for name in _BODIES if name in options)
        self._body = given[0] if isinstance(given, (list, tuple)) and given else given
        self._output = next((options[name] for name in _OUTPUTS if name in options), None)
        if self._output is None and len(args) > position:
            self._output = args[position]
        forced = dict(options)
        if "interpret" in forced:
            # How the user runs the kernel today says nothing of the platform that it is written for.
            forced["interpret"] = False if api == "pl.pallas_call" else None
        self._inner: Callable[..., Any] | None = None
        try:
            with session.launching():
                self._inner = original(*args, **forced)
        except Exception as error:
            if session.failure_is_expected():
                raise
            capture = self._capture([], here)
            capture.failed = True
            session.tell_capture(capture)
            session.tell_fault(error, stage="build", capture=capture, launch=here)
        functools.update_wrapper(self, self._body if hasattr(self._body, "__name__") else original)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        session = self._session
        session.launched += 1
        if self._inner is None:
            return self._fakes()
        import jax

        leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
        if session.inside:
            return self._inner(*args, **kwargs)
        if any(compat.is_ref(getattr(leaf, "aval", None)) for leaf in leaves):
            return self._over_refs(leaves, args, kwargs)
        if session.failure_is_expected():
            return self._fakes() if session.mode == "concrete" else self._inner(*args, **kwargs)
        key = self._key(leaves)
        if key in session.outputs:
            return self._filled(session.outputs[key])
        if sum(1 for known in session.outputs if known[:2] == key[:2]) >= MOST_CAPTURES_PER_KERNEL:
            return self._fakes()
        call = frames.of_stack(sys._getframe(1))
        capture = self._capture(leaves, call)
        capture.entry = _entry(sys._getframe(1))
        session.tell_capture(capture)
        try:
            with session.launching():
                result = self._trace(capture, leaves, tree)
        except Exception as error:
            capture.failed = True
            session.tell_fault(error, stage="trace", capture=capture, launch=call)
            result = self._fakes()
        session.outputs[key] = jax.tree_util.tree_map(_shape_only, result)
        return result

    def _over_refs(self, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A launch inside ``run_state``: like a ``core_map``, it is lowered with what is around it."""
        session = self._session
        assert self._inner is not None
        if session.failure_is_expected():
            return self._inner(*args, **kwargs)
        call = frames.of_stack(sys._getframe(2))
        capture = self._capture(leaves, call)
        capture.stateful = True
        session.tell_capture(capture)
        try:
            with session.launching():
                result = self._inner(*args, **kwargs)
        except Exception as error:
            capture.failed = True
            session.tell_fault(error, stage="trace", capture=capture, launch=call)
            return self._fakes()
        capture.stage = "trace"
        session.tell_capture(capture)
        return result

    def _trace(self, capture: Capture, leaves: list[Any], tree: Any) -> Any:
        import jax

        arrays = [i for i, leaf in enumerate(leaves) if _is_array(leaf)]
        inner = self._inner
        assert inner is not None

        def unit(*given: Any) -> Any:
            full = list(leaves)
            for index, value in zip(arrays, given, strict=True):
                full[index] = value
            args, kwargs = jax.tree_util.tree_unflatten(tree, full)
            return inner(*args, **kwargs)

        unit.__name__ = unit.__qualname__ = f"{UNIT}{capture.id}"
        types = [jax.ShapeDtypeStruct(jax.numpy.shape(leaves[i]), jax.dtypes.result_type(leaves[i])) for i in arrays]
        if self._session.mode == "abstract":
            result = jax.jit(unit)(*[leaves[i] for i in arrays])
            if not jax.sharding.get_abstract_mesh().manual_axes:  # alone, it would have no axes
                capture.again = (compat.in_memory_spaces(jax.jit(unit), [jax.typeof(leaves[i]) for i in arrays]), types)
        else:
            capture.program, shapes = jax.make_jaxpr(jax.jit(unit), return_shape=True)(*types)
            result = self._filled(shapes)
        capture.stage = "trace"
        self._session.tell_capture(capture)
        return result

    def _capture(self, leaves: list[Any], call: list[frames.Frame]) -> Capture:
        namespace = getattr(unwrapped(self._body), "__globals__", {})
        capture = self._session.new_capture(
            api=self._api,
            arguments=", ".join(compat.notation(leaf) for leaf in leaves),
            launch=self._here,
            call=call,
            body=body_of(self._body),
            options=self._options,
            namespace=namespace,
        )
        capture.backend = backends.of_launch(self._api, self._options, namespace)
        capture.tpu = devices.answered_tpu()
        return capture

    def _key(self, leaves: list[Any]) -> tuple[Any, ...]:
        """What makes two launches the same kernel with the same types."""
        code = getattr(unwrapped(self._body), "__code__", None)
        place = tuple((f["path"], f["line"], f.get("column")) for f in self._here[-1:])
        types = tuple(compat.notation(leaf) for leaf in leaves)
        statics = _ADDRESS.sub("", f"{_plain(self._options)!r} {_closure(self._body)!r}")
        return (place, code, types, statics)

    def _fakes(self) -> Any:
        if self._output is None:
            raise LaunchFailed(f"stopped at a launch ({self._api}) that failed and has no output type to go on with")
        return self._filled(self._output)

    @staticmethod
    def _filled(types: Any) -> Any:
        import jax

        def zeros(leaf: Any) -> Any:
            if not (hasattr(leaf, "shape") and hasattr(leaf, "dtype")):
                raise LaunchFailed("stopped at a launch that failed and whose output type has no shape to go on with")
            return jax.numpy.zeros(tuple(leaf.shape), leaf.dtype)

        try:
            return jax.tree_util.tree_map(zeros, types, is_leaf=lambda leaf: hasattr(leaf, "shape"))
        except LaunchFailed:
            raise
        except Exception as error:
            raise LaunchFailed(f"stopped at a launch that failed: {faults.summary(error)}") from error


_ADDRESS = re.compile(r" at 0x[0-9a-f]+")


def _shape_only(leaf: Any) -> Any:
    import jax

    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype)


def _plain(options: dict[str, Any]) -> Any:
    """The options with each array replaced by its type."""
    import jax

    return jax.tree_util.tree_map(lambda leaf: compat.notation(leaf) if _is_typed(leaf) else leaf, options)


def _is_typed(leaf: Any) -> bool:
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype")


def _is_array(leaf: Any) -> bool:
    return _is_typed(leaf) or isinstance(leaf, (int, float, complex))


def unwrapped(body: Any) -> Any:
    """The function under partials, wrappers and bound methods."""
    for _ in range(16):
        if isinstance(body, functools.partial):
            body = body.func
        elif hasattr(body, "__wrapped__"):
            body = body.__wrapped__
        elif inspect.ismethod(body):
            body = body.__func__
        else:
            break
    return body if hasattr(body, "__code__") else getattr(type(body), "__call__", body)  # noqa: B004


def body_of(body: Any) -> dict[str, Any] | None:
    """Path, first line and name of the unwrapped body: the kernel's identity."""
    code = getattr(unwrapped(body), "__code__", None)
    return {"path": code.co_filename, "line": code.co_firstlineno, "name": code.co_name} if code else None


def _entry(frame: types.FrameType) -> dict[str, Any] | None:
    """The call of a function of the file that led to a launch, where it can be written down."""
    with contextlib.suppress(Exception):  # values of the user's types may do anything
        found = entry_calls.innermost(frame)
        if found is not None:
            code, call = found
            return {"path": code.co_filename, "line": code.co_firstlineno, "call": call}
    return None


def _closure(body: Any) -> list[Any]:
    """The plain values that a body closes over or was given by ``partial``."""
    found: list[Any] = []
    for _ in range(16):
        if isinstance(body, functools.partial):
            found += [*body.args, *sorted(body.keywords.items())]
            body = body.func
        elif hasattr(body, "__wrapped__"):
            body = body.__wrapped__
        else:
            break
    for cell in getattr(body, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:
            continue
        if isinstance(value, (int, float, str, bool, tuple, type(None))):
            found.append(value)
        elif callable(value):
            found.append(_closure(value))
    return found
