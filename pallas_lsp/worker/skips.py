"""Which skips of tests are obeyed.

A test skips where there is no accelerator, and the reason is not there: the device that the kernels are written for
answers.  What remains is said of the kernel and its arguments (``f32 output is not supported on B200``): such a test
would lead to faults that its authors know of.
"""

from __future__ import annotations

import re
from typing import Any

_REFUSED = re.compile(
    r"not\b[\w\s]*\b(?:support|implement)|unsupported|(?:doesn'?t|does not) (?:yet )?(?:support|work)|"
    r"\b(?:broken|flaky|too slow|takes too long|out of memory|oom|todo|known (?:bug|issue|failure))\b",
    re.IGNORECASE,
)
_DEVICE_WANTED = re.compile(
    r"\b(?:cpus?|interpret(?:er)?|requires?|needs?|only|available|found|backends?|platforms?|device|without)\b",
    re.IGNORECASE,
)


def obeyed(reason: Any) -> bool:
    """Whether a skip with this reason holds though an accelerator answers."""
    text = reason if isinstance(reason, str) else ""
    return bool(_REFUSED.search(text)) and not _DEVICE_WANTED.search(text)


def mark_obeyed(mark: Any) -> bool:
    """The same of ``pytest.mark.skip`` and ``skipif``."""
    if mark.name not in ("skip", "skipif"):
        return True
    position = 0 if mark.name == "skip" else 1
    reason = mark.kwargs.get("reason", mark.args[position] if len(mark.args) > position else None)
    return obeyed(reason)
