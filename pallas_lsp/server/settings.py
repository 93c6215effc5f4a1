"""The settings of section ``pallas-lsp``, from initialization options, ``workspace/configuration`` or the
``didChangeConfiguration`` notification.

Wrong values are named in the log and replaced by the defaults; they never stop the server.  ``docs/lsp.md`` describes
each setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import platformdirs

from pallas_lsp.confirm.settings import ConfirmSettings
from pallas_lsp.engine.settings import TARGETS, Limits, Settings
from pallas_lsp.model import Stage
from pallas_lsp.server.logs import LEVELS

SECTION = "pallas-lsp"
_STAGES = ("read", "trace", "lower")
_LONGEST = 500_000
"""Characters of a file that is checked: while the parser reads a longer one, requests wait for more than a second."""
SEVERITIES = ("off", "error", "warning", "information", "hint")
_OF_EXTENSIONS = {"path", "importStrategy", "trace", "enable"}
"""Read by editor extensions, not here."""


@dataclass(frozen=True)
class FolderSettings:
    """What may differ between workspace folders."""

    interpreter: str | None = None
    environment: tuple[tuple[str, str], ...] = ()
    targets: tuple[tuple[str, tuple[str, ...]], ...] = ()
    time_limit: float | None = None
    memory_limit: int | None = None
    rules: tuple[tuple[str, str], ...] = ()
    stage: Stage = Stage.LOWER
    """How far kernels are taken."""
    discovery: bool = True
    code_lens: bool = True
    keep_results: bool = True
    """Between sessions, in the user's cache."""
    confirm: ConfirmSettings | None = field(default_factory=ConfirmSettings)

    def engine(self) -> Settings:
        limits = Limits()
        if self.time_limit is not None:
            limits = replace(limits, trace_seconds=self.time_limit, lower_seconds=self.time_limit)
        if self.memory_limit is not None:
            limits = replace(limits, memory_bytes=self.memory_limit)
        return Settings(
            python=self.interpreter,
            limits=limits,
            targets={**TARGETS, **dict(self.targets)},
            environment=dict(self.environment),
            discovery=self.discovery,
            confirm=self.confirm,
            figures=True,
            kept=Path(platformdirs.user_cache_dir("pallas-lsp")) / "results" if self.keep_results else None,
            longest=_LONGEST,
        )

    def severity(self, rule: str) -> str | None:
        """What the user wants a rule's findings to be: a severity, ``off``, or None for the rule's own."""
        return dict(self.rules).get(rule)


@dataclass(frozen=True)
class ServerSettings:
    folder: FolderSettings = field(default_factory=FolderSettings)
    log_level: str = "info"


Complain = Callable[[str], None]


def read(options: Any, complain: Complain, base: ServerSettings | None = None) -> ServerSettings:
    """Settings from a JSON value; what it does not say comes from ``base``."""
    base = base or ServerSettings()
    if options is None:
        return base
    if not isinstance(options, Mapping):
        complain(f"the settings must be an object, not {options!r:.50}")
        return base
    folder, level = base.folder, base.log_level
    for name, value in options.items():
        reader = _READERS.get(name)
        if name == "logLevel":
            if value in LEVELS:
                level = value
            elif value is not None:
                complain(f"logLevel must be one of {', '.join(LEVELS)}, not {value!r:.50}")
        elif reader is None:
            if name not in _OF_EXTENSIONS and name not in _SESSION:
                complain(f"there is no setting {name!r:.50}")
        elif value is not None:
            try:
                folder = replace(folder, **reader(value))
            except ValueError as error:
                complain(f"{name} {error}, not {value!r:.100}")
    return ServerSettings(folder, level)


_SESSION = {"trusted", "status", "settings", "commands"}
"""Said once, in the initialization options."""


def _interpreter(value: Any) -> dict[str, Any]:
    # VS Code's Python tools keep an array here, of which the first item counts.
    if isinstance(value, list):
        value = value[0] if value else ""
    if not isinstance(value, str):
        raise ValueError("must be a path, or an array with one")  # noqa: TRY004 (all of these are wrong values)
    return {"interpreter": value.strip() or None}


def _strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _environment(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(v, str) for v in value.values()):
        raise ValueError("must map names to strings")
    return {"environment": tuple(sorted(value.items()))}


def _targets(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(name in TARGETS and _strings(v) for name, v in value.items()):
        raise ValueError(f"must map {', '.join(TARGETS)} to arrays of strings")
    return {"targets": tuple((name, tuple(v)) for name, v in sorted(value.items()))}


def _time_limit(value: Any) -> dict[str, Any]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 86400:
        raise ValueError("must be a number of seconds above 0")
    return {"time_limit": float(value)}


def _memory_limit(value: Any) -> dict[str, Any]:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1 << 20:
        raise ValueError("must be a number of MiB above 0")
    return {"memory_limit": int(value) << 20}


def _rules(value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not all(v in SEVERITIES for v in value.values()):
        raise ValueError(f"must map rules to one of {', '.join(SEVERITIES)}")
    return {"rules": tuple(sorted(value.items()))}


def _stages(value: Any) -> dict[str, Any]:
    if value not in _STAGES:
        raise ValueError(f"must be one of {', '.join(_STAGES)}")
    return {"stage": Stage(value)}


def _discovery(value: Any) -> dict[str, Any]:
    enabled = value.get("enable", True) if isinstance(value, Mapping) else value
    if not isinstance(enabled, bool):
        raise ValueError("must say {enable: true or false}")  # noqa: TRY004
    return {"discovery": enabled}


_Reader = Callable[[Any], dict[str, Any]]


def _switch(name: str) -> _Reader:
    """A setting that is on or off; ``name``: its field."""

    def read_switch(value: Any) -> dict[str, Any]:
        if not isinstance(value, bool):
            raise ValueError("must be true or false")  # noqa: TRY004
        return {name: value}

    return read_switch


CONFIRM = ("off", "compile", "launch")


def _confirm(value: Any) -> dict[str, Any]:
    """A word, or an object with ``mode`` (``enable`` and ``launch`` say the same), ``command`` and time limits."""
    if isinstance(value, str):
        value = {"mode": value}
    if not isinstance(value, Mapping):
        raise ValueError("must be a word or an object")  # noqa: TRY004
    mode = value.get("mode")
    if mode is not None and mode not in CONFIRM:
        raise ValueError(f"must be one of {', '.join(CONFIRM)}")
    enable, command, launch = value.get("enable"), value.get("command"), value.get("launch")
    if any(each is not None and not isinstance(each, bool) for each in (enable, launch)):
        raise ValueError("must say true or false for enable and launch")
    if command is not None and not _strings(command):
        raise ValueError("must have an array of strings as command")
    if enable is False or mode == "off":
        return {"confirm": None}
    limits = {}
    for name, field_name in (("seconds", "seconds"), ("launchSeconds", "launch_seconds")):
        if value.get(name) is not None:
            limits[field_name] = _time_limit(value[name])["time_limit"]
    wanted = ConfirmSettings(command=tuple(command or ()), launch=bool(launch) or mode == "launch", **limits)
    return {"confirm": wanted}


_READERS: Mapping[str, _Reader] = {
    "interpreter": _interpreter,
    "python": _interpreter,
    "environment": _environment,
    "targets": _targets,
    "timeLimit": _time_limit,
    "memoryLimit": _memory_limit,
    "rules": _rules,
    "stages": _stages,
    "discovery": _discovery,
    "codeLens": _switch("code_lens"),
    "keepResults": _switch("keep_results"),
    "confirm": _confirm,
}
