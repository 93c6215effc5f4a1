"""Calls with array types instead of arrays: what a shape comment says, and what was guessed."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

TYPE = "__pallas_type__"


class BadCall(Exception):  # noqa: N818 - shown to the user as it is
    """A call that cannot be made as it is written."""


def prepare(expression: str, namespace: dict[str, Any]) -> tuple[Callable[..., Any], list[Any]]:
    """A function of arrays, and the types to evaluate it with; raises BadCall.

    ``expression`` is a call, with ``TYPE(dtype, shape)`` for each array type; the rest is evaluated in ``namespace``.
    """
    import inspect

    import jax

    captured: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def record(function: Any) -> Callable[..., None]:
        def call(*args: Any, **kwargs: Any) -> None:
            captured.append((function, args, kwargs))

        return call

    name = expression.split("(", 1)[0]
    scope = {TYPE: _type, "__pallas_record__": record, "__builtins__": builtins}
    code = f"__pallas_record__({name})({expression.split('(', 1)[1]}"
    try:
        eval(compile(code, "<shape comment>", "eval"), {**namespace, **scope})
    except NameError as error:
        raise BadCall(f"{error}: the comment's names are looked up in this file") from error
    except BadCall:
        raise
    except Exception as error:
        raise BadCall(f"{type(error).__name__}: {error}") from error
    function, args, kwargs = captured[0]
    if not callable(function):
        raise BadCall(f"{name} is no function")
    try:
        inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise BadCall(f"{name}: {error}") from error
    except ValueError:
        pass  # a function without a signature
    leaves, tree = jax.tree_util.tree_flatten((args, kwargs))
    arrays = [i for i, leaf in enumerate(leaves) if isinstance(leaf, jax.ShapeDtypeStruct)]

    def call(*given: Any) -> Any:
        full = list(leaves)
        for index, value in zip(arrays, given, strict=True):
            full[index] = value
        args, kwargs = jax.tree_util.tree_unflatten(tree, full)
        return function(*args, **kwargs)

    return call, [leaves[i] for i in arrays]


def _type(dtype: str, shape: tuple[Any, ...]) -> Any:
    import jax

    if len(shape) == 1 and isinstance(shape[0], tuple):
        shape = shape[0]
    if not all(isinstance(size, int) and not isinstance(size, bool) and size >= 0 for size in shape):
        raise BadCall(f"{dtype}{list(shape)} is no array type: dimensions are whole numbers")
    try:
        return jax.ShapeDtypeStruct(shape, jax.numpy.dtype(dtype))
    except TypeError as error:
        raise BadCall(f"this jax has no array type {dtype}") from error
