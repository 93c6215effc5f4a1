"""The worker's JSON objects as the dataclasses of ``model``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar

import cattrs

_T = TypeVar("_T")


@cache
def _converter() -> cattrs.Converter:
    return cattrs.Converter(detailed_validation=False)


def decode(value: Mapping[str, Any], kind: type[_T]) -> _T:
    """An object of a dataclass; fields that this version does not know are left out.  Raises ValueError."""
    try:
        return _converter().structure(value, kind)
    except Exception as error:  # cattrs raises KeyError, TypeError and errors of its own
        raise ValueError(f"the worker sent no {kind.__name__}: {error!r}") from error


def encode(value: Any) -> dict[str, Any]:
    """A dataclass of ``model`` as the JSON object that ``decode`` takes."""
    encoded: dict[str, Any] = _converter().unstructure(value)
    return encoded
