"""Whether the code of a folder may be run.

Reading is always safe; checking runs the user's modules.  A client with a trust of its own (VS Code) says so in its
initialization options.  For others the answer to one question is kept per folder in the user's state directory, which
``pallas-lsp trust`` shows and changes.  An answer holds for everything below its folder; the innermost one wins.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import platformdirs

from pallas_lsp.server.pages import write_atomically

logger = logging.getLogger(__name__)

_VERSION = 1


class TrustError(Exception):
    """The answer could not be kept: what happened and what to do."""


class TrustStore:
    """The answers on disk.  Every call reads the file again: another server may have changed it."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or default_path()

    def decisions(self) -> dict[str, bool]:
        """Folder to answer."""
        try:
            content = json.loads(self.path.read_text(encoding="utf-8"))
            folders = content["folders"]
            return {str(folder): answer for folder, answer in folders.items() if isinstance(answer, bool)}
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            logger.warning(
                "The trusted folders in %s cannot be read (%s): every folder counts as not trusted. "
                "Delete the file or trust the folders again with 'pallas-lsp trust'.",
                self.path,
                error,
            )
            return {}

    def decision(self, path: str) -> bool | None:
        """The answer for a file or folder, or None where nobody was asked."""
        decisions = self.decisions()
        place = Path(canonical(path))
        for folder in (place, *place.parents):
            answer = decisions.get(str(folder))
            if answer is not None:
                return answer
        return None

    def remember(self, folder: str, trusted: bool) -> str:
        """Keep an answer.  Returns the folder as it is kept; raises TrustError."""
        key = canonical(folder)
        self._write({**self.decisions(), key: trusted})
        return key

    def forget(self, folder: str) -> bool:
        """Drop the answer for exactly this folder.  False when there was none; raises TrustError."""
        decisions = self.decisions()
        if decisions.pop(canonical(folder), None) is None:
            return False
        self._write(decisions)
        return True

    def _write(self, decisions: dict[str, bool]) -> None:
        content = {"version": _VERSION, "folders": dict(sorted(decisions.items()))}
        try:
            write_atomically(self.path, json.dumps(content, indent=2) + "\n")
        except OSError as error:
            raise TrustError(
                f"The answer could not be kept in {self.path} ({error.strerror or error}). "
                "Make the folder writable; until then the question comes again."
            ) from error


def default_path() -> Path:
    return Path(platformdirs.user_state_dir("pallas-lsp", appauthor=False), "trust.json")


def is_too_wide(folder: str) -> bool:
    """Whether a folder is the home directory or holds it: an answer for it would be one for everything."""
    home = Path(canonical("~"))
    return Path(canonical(folder)) in (home, *home.parents)


def canonical(path: str) -> str:
    """One spelling for a folder, so that a link to a folder is not another folder."""
    return os.path.normcase(os.path.realpath(Path(path).expanduser()))
