"""What each driver of a file depends on, as top-level statements, and which drivers have to run together.

Careful in one direction: what may matter to a driver counts as mattering to it.  Where names do not tell (state that
functions change, names made from strings) all drivers are one group that depends on everything.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pallas_lsp.model import Driver, Snapshot
from pallas_lsp.source.free_names import free_names
from pallas_lsp.source.launching import calls_back, foreign, launching
from pallas_lsp.source.modules import Module, Node
from pallas_lsp.source.state import keeps_state
from pallas_lsp.source.syntax import parse
from pallas_lsp.source.units import NoUnits, Unit
from pallas_lsp.source.workspace import resolve

_MOST_FILES = 40
"""Files beside the divided ones that are looked into for state; with more, everything is one group."""
_OWN = ("module", "main", "test", "call")
_TEST = "pytest"
"""The kind of a test in another file."""
_SHARED_LIBRARIES = ("ragged_dot",)
"""Functions of jax that launch kernels of their own: who calls them shares these."""
_LEAVES = re.compile(r"exit|quit|SystemExit")
"""What ends a main block early."""


@dataclass(frozen=True)
class Group:
    """Drivers whose results do not depend on other drivers.  ``digest``: of all that they depend on, but for layout.

    A main block whose statements launch independently is in several groups, in each with the ``lines`` of those of them
    that belong to it; where it is in one only, it has none.
    """

    drivers: tuple[Driver, ...]
    units: tuple[Unit, ...]
    digest: str


def groups(snapshot: Snapshot, path: str, texts: Mapping[str, str], drivers: Sequence[Driver]) -> list[Group]:
    """The groups of a file's drivers; raises NoUnits where texts cannot be divided.

    ``texts``: the file, those of the drivers, and the workspace files that they import.  The file, the drivers' files
    and open documents are divided into statements; other files on the disk count as a whole.
    """
    try:
        return _Groups(snapshot, path, texts, {driver.path for driver in drivers}).of(drivers)
    except (SyntaxError, ValueError) as error:
        raise NoUnits(str(error)) from error


@dataclass
class _Part:
    drivers: list[Driver]
    nodes: set[Node]
    shares: set[object]
    """What launches, by which parts belong together."""

    def take(self, other: _Part) -> None:
        """Take in another part; of a driver that is in both, the lines together."""
        known = {driver.id: driver for driver in self.drivers}
        for driver in other.drivers:
            own = known.get(driver.id)
            lines = driver.lines if own is None or own.kind != "main" else tuple(sorted({*own.lines, *driver.lines}))
            known[driver.id] = replace(driver, lines=lines)
        self.drivers = list(known.values())
        self.nodes |= other.nodes
        self.shares |= other.shares


class _Groups:
    def __init__(self, snapshot: Snapshot, path: str, texts: Mapping[str, str], own: set[str]) -> None:
        divided = [each for each in texts if each == path or each in own or each in snapshot.documents]
        self._path = path
        self._snapshot = snapshot
        self._modules = {each: Module(each, parse(texts[each])) for each in sorted(divided)}
        self._others = {each: texts[each] for each in sorted(texts) if each not in self._modules}

    def of(self, drivers: Sequence[Driver]) -> list[Group]:
        if not self._separable(drivers):
            return [self._whole(drivers)]
        base, base_shares = self._closure([(m.path, i) for m in self._modules.values() for i in m.base])
        base |= {(m.path, i) for m in self._modules.values() for i in m.wrapping}
        module = next((driver for driver in drivers if driver.kind == "module"), None)
        if base_shares and module is None:
            return [self._whole(drivers)]
        parts: list[_Part] = []
        for driver in drivers:
            if driver is module:
                found = [_Part([driver], set(base), set(base_shares))]
            else:
                found = self._main(driver) if driver.kind == "main" else self._one(driver)
            if not found:
                return [self._whole(drivers)]
            for part in found:
                part.nodes |= base
                for other in [each for each in parts if each.shares & part.shares]:
                    parts.remove(other)
                    part.take(other)
                parts.append(part)
        order = {driver.id: number for number, driver in enumerate(drivers)}
        made = [self._group(sorted(part.drivers, key=lambda d: order[d.id]), part.nodes) for part in parts]
        return sorted(made, key=lambda group: (order[group.drivers[0].id], group.drivers[0].lines))

    def _one(self, driver: Driver) -> list[_Part]:
        roots = self._roots(driver)
        return [_Part([driver], *self._closure(roots))] if roots else []

    def _main(self, driver: Driver) -> list[_Part]:
        """The statements of a main block that launch, each with what it needs; the others are needed by all."""
        module = self._modules[self._path]
        closures = {number: self._closure([(self._path, number)]) for number in module.main}
        launching = [number for number, (_, shares) in closures.items() if shares]
        if len(launching) < 2 or _LEAVES.search("".join(map(ast.unparse, (module.statements[n] for n in module.main)))):
            return [_Part([driver], *self._closure([(self._path, number) for number in module.main]))]
        always = [nodes for number, (nodes, _) in closures.items() if number not in launching]
        return [
            _Part(
                [replace(driver, lines=(module.statements[number].lineno,))],
                closures[number][0].union(*always),
                set(closures[number][1]),
            )
            for number in launching
        ]

    def _separable(self, drivers: Sequence[Driver]) -> bool:
        for driver in drivers:
            if driver.kind == _TEST:
                if driver.path not in self._modules:
                    return False
            elif driver.kind not in _OWN or driver.path != self._path:
                return False
        if len(self._others) > _MOST_FILES or len({driver.id for driver in drivers}) < len(drivers):
            return False
        texts = [*(module.syntax.text for module in self._modules.values()), *self._others.values()]
        if any(word in text for text in texts for word in _SHARED_LIBRARIES):
            return False
        if any(calls_back(self._snapshot, path, text, self._modules) for path, text in self._others.items()):
            return False
        return not any(module.keeps_state for module in self._modules.values()) and not any(
            keeps_state(text) for text in self._others.values()
        )

    def _whole(self, drivers: Sequence[Driver]) -> Group:
        return self._group(drivers, {(m.path, u.number) for m in self._modules.values() for u in m.units})

    def _group(self, drivers: Sequence[Driver], nodes: set[Node]) -> Group:
        digest = self._of_all.copy()
        chosen = [self._modules[path].units[number] for path, number in sorted(nodes)]
        for unit in chosen:
            digest.update(f"{unit.path}\0{unit.tokens.digest}\0".encode())
        for driver in drivers:
            digest.update(repr((driver.kind, driver.name, driver.path, driver.target)).encode())
        return Group(tuple(drivers), tuple(chosen), digest.hexdigest())

    def _roots(self, driver: Driver) -> list[Node]:
        if driver.kind in ("test", _TEST):
            name = re.split(r"[.\[]", driver.name, maxsplit=1)[0]
            binders = self._modules[driver.path].binders
            return [(driver.path, number) for number in binders.get(name, ())]
        names: set[str] = set()
        for line in driver.name.splitlines():
            names |= free_names(ast.parse(line.strip(), mode="eval").body)
        binders = self._modules[self._path].binders
        return [(self._path, number) for name in sorted(names) for number in binders.get(name, ())]

    def _closure(self, roots: Iterable[Node]) -> tuple[set[Node], set[object]]:
        """The statements that some depend on, themselves included, and what launches among these."""
        found = set(roots)
        pending = list(found)
        shares: set[object] = set()
        while pending:
            path, number = pending.pop()
            module = self._modules[path]
            if number in module.holders:
                shares.add((path, number))
            for name in module.reads(number):
                new: set[Node] = {(path, binder) for binder in module.binders.get(name, ())}
                for target, wanted in module.imports.get(name, ()):
                    own, foreign = self._target(path, target, wanted)
                    new |= own
                    shares |= foreign
                pending += new - found
                found |= new
        return found, shares

    @cached_property
    def _launching(self) -> set[str]:
        """The other files that may launch; of all of them the whole text counts for every group."""
        return launching(self._snapshot, self._others)

    @cached_property
    def _of_all(self) -> hashlib._Hash:
        """A digest of what all groups depend on."""
        digest = hashlib.sha256()
        for module in self._modules.values():
            digest.update(f"{module.path}\0{module.evaluated}\0".encode())
        for path, text in self._others.items():
            digest.update(f"{path}\0{_digest(text)}\0".encode())
        digest.update(repr(self._missing).encode())
        return digest

    @cached_property
    def _missing(self) -> list[tuple[str, str, str]]:
        """Names that are imported and that nothing binds: the import fails, and with it all that comes after it."""
        found = []
        for module in self._modules.values():
            for target, name in sorted({each for known in module.imports.values() for each in known if each[1]}):
                files = resolve(self._snapshot, module.path, target)
                own = [self._modules[file] for file in files if file in self._modules]
                if name and own and not any(name in each.binders for each in own):
                    found.append((module.path, target, name))
        return found

    def _target(self, importer: str, module: str, name: str | None) -> tuple[set[Node], set[object]]:
        """What an imported name stands for: statements of divided files, and else what it may share with others."""
        files = (
            [*resolve(self._snapshot, importer, f"{module}{'' if module.endswith('.') else '.'}{name}")] if name else []
        )
        files += resolve(self._snapshot, importer, module)
        nodes: set[Node] = set()
        shares: set[object] = set()
        for file in files:
            known = self._modules.get(file)
            if known is None:
                shares |= {file} & self._launching
            elif name is not None and name in known.binders:
                nodes |= {(file, number) for number in known.binders[name]}
            else:
                nodes |= {(file, unit.number) for unit in known.units}
        if not files and foreign(module, name):
            shares.add((module, name))
        return nodes, shares


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
