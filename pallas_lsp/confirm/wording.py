"""Verdicts and figures in words, the same for editors and every output of the command line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pallas_lsp.confirm.verdicts import Verdict
from pallas_lsp.model import Capture, Finding

_SENTENCES = {
    Verdict.CONFIRMED: "Confirmed on {gpu}",
    Verdict.NOT_REPRODUCED: "Not reproduced on {gpu}: there the kernel lowers and compiles",
    Verdict.DEVICE_ONLY: "Only {gpu} shows it",
    Verdict.TIMED_OUT: "Not confirmed: it timed out on {gpu}",
    Verdict.NO_GPU: "Not confirmed: there is no GPU of the kind that it needs, only {gpu}",
}


def verdict_sentences(finding: Finding) -> list[str]:
    """One sentence for each GPU that said something of a finding."""
    return [_sentence(each) for each in finding.data.get("verdicts", ()) if isinstance(each, Mapping)]


def spoken_verdicts(finding: Finding) -> list[str]:
    """The same without those of GPUs that say nothing of the kernel: for an editor, where they would only be noise."""
    given = (each for each in finding.data.get("verdicts", ()) if isinstance(each, Mapping))
    return [_sentence(each) for each in given if each["verdict"] != Verdict.NO_GPU]


def _sentence(verdict: Mapping[str, str]) -> str:
    gpu = f"{verdict['gpu']} (compute capability {verdict['computeCapability']})"
    text = _SENTENCES[Verdict(verdict["verdict"])].format(gpu=gpu)
    return f"{text} ({verdict['detail']})." if verdict.get("detail") else f"{text}."


def with_verdicts(finding: Finding) -> str:
    """A finding's message with what GPUs said of it."""
    return "\n".join([finding.message, *verdict_sentences(finding)])


_STATES = {
    "timed out": "the compiler did not end in time",
    "crashed": "the compiler crashed",
    "failed": "refused",
    "launch failed": "compiled, the launch failed",
    "launch timed out": "compiled, the launch did not end",
    "launched": "compiled and launched",
    "compiled": "compiled",
    "no memory": "not compiled: the GPU's memory is full",
}


def figures(capture: Capture) -> list[str]:
    """A line for each GPU that compiled a capture; else what its program alone tells."""
    devices = capture.resources.get("devices") or ()
    if devices:
        return [device_line(device) for device in devices]
    entries = (capture.resources.get("programs") or {}).values()
    lines = [", ".join(_needs(entry)) for entry in entries]
    return [line for line in dict.fromkeys(lines) if line]


def device_line(device: Mapping[str, Any]) -> str:
    """``NVIDIA H200: 90 registers, ...; 2 blocks per SM (limited by shared memory)``."""
    state = str(device.get("state"))
    if state == "other":
        return f"{device['gpu']}: not compiled, it needs {device.get('needs')}"
    parts = ", ".join([*_compiled(device), *_needs(device)])
    text = f"{device['gpu']}: {parts or _STATES.get(state, state)}"
    if parts and state not in ("compiled", "launched"):
        text += f" ({_STATES.get(state, state)})"
    if (blocks := device.get("blocksPerSm")) is not None:
        plural = "block" if blocks == 1 else "blocks"
        text += f"; {blocks} {plural} per SM (limited by {device['limitedBy']})"
    return text


def _compiled(entry: Mapping[str, Any]) -> Iterable[str]:
    if (registers := entry.get("registers")) is not None:
        yield f"{registers} registers"
    spilled = int(entry.get("spill_store_bytes") or 0) + int(entry.get("spill_load_bytes") or 0)
    if spilled:
        stores, loads = entry.get("spill_store_bytes", 0), entry.get("spill_load_bytes", 0)
        yield f"{stores} bytes of spill stores and {loads} of loads"
    if (stack := entry.get("stack_bytes")) and not spilled:
        yield f"{stack} bytes of stack"


def _needs(entry: Mapping[str, Any]) -> Iterable[str]:
    if (threads := entry.get("threads")) is not None:
        yield f"{threads} threads"
    if (smem := entry.get("smem_bytes")) is not None:
        yield f"{_size(int(smem))} of shared memory"
    if (static := entry.get("static_smem_bytes")) and int(static) > 64:
        yield f"{_size(int(static))} of static shared memory"
    if columns := entry.get("tmem_columns"):
        yield f"{columns} TMEM columns"
    if barriers := entry.get("barriers"):
        yield f"{barriers} barrier{'' if barriers == 1 else 's'}"


def _size(size: int) -> str:
    return f"{size} bytes" if size < 2048 else f"{size / 1024:.1f} KiB".replace(".0 KiB", " KiB")
