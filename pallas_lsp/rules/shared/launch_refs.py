"""The refs that a kernel is called with, in order, and what each stands for."""

from __future__ import annotations

from dataclasses import dataclass

from pallas_lsp.rules.messages import short
from pallas_lsp.rules.shared.launches import Launch
from pallas_lsp.rules.shared.wording import and_list, count_text


@dataclass(frozen=True)
class Refs:
    """``names``: what each ref stands for, ``input 0``.  ``scratch_names``: keywords where scratch is a dictionary."""

    names: tuple[str, ...]
    prefetched: int
    inputs: tuple[str, ...]
    outputs: int
    scratch: int
    aliased: bool = False
    scratch_names: tuple[str, ...] = ()

    def described(self) -> str:
        """``1 input (`x`), then 1 output``"""
        parts = []
        inputs = self.inputs[self.prefetched :]
        if self.prefetched:
            parts.append(count_text(self.prefetched, "scalar-prefetch argument"))
        if inputs:
            named = f" ({and_list(list(inputs))})" if all(inputs) and len(inputs) <= 5 else ""
            parts.append(count_text(len(inputs), "input") + named)
        if self.outputs:
            parts.append(count_text(self.outputs, "output"))
        if self.scratch:
            parts.append(f"{self.scratch} of scratch")
        return ", then ".join(parts) if parts else "none"

    @property
    def first_output(self) -> int:
        return len(self.inputs)

    @property
    def first_scratch(self) -> int:
        return len(self.inputs) + self.outputs


def refs_of(launch: Launch) -> Refs | None:
    """The refs of a launch; None where its facts do not tell them."""
    facts = launch.facts
    inputs, outputs = facts.get("inputs"), facts.get("outputs")
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        return None
    leaves = launch.fault.facts.get("ref_types") if launch.fault.facts.get("ref_types_of") == "run_scoped" else None
    scratch = facts.get("scratch") or []
    if launch.api == "plgpu.kernel":
        scratch = leaves if isinstance(leaves, list) else []
    by_name = tuple(str(e.get("path", ""))[2:-2] for e in scratch if str(e.get("path", "")).startswith("['"))
    count = 0 if by_name else len(scratch)
    operands = launch.operands()
    named = tuple(f"`{short(o.source, 24)}`" for o in operands) if len(operands) == len(inputs) else ("",) * len(inputs)
    names = [f"input {i}" for i in range(len(inputs))]
    names += [f"output {i}" if len(outputs) > 1 else "the output" for i in range(len(outputs))]
    names += [f"scratch {i}" for i in range(count)]
    aliases = facts.get("given_input_output_aliases") or {}
    return Refs(
        tuple(names),
        int(facts.get("scalar_prefetch") or 0),
        named,
        len(outputs),
        count,
        bool(aliases.get("items")),
        by_name,
    )
