"""What a workspace folder may say for itself: nothing that starts a program, and no limit above the session's."""

from __future__ import annotations

import asyncio
import logging

import pytest
from pygls import uris

from pallas_lsp.server.configuration import Configuration
from pallas_lsp.server.documents import Documents

EVIL = ["sh", "-c", "touch /tmp/evil"]


def settings(session, folder):
    """What the folder and a file outside of it get, where the client answers so."""

    async def pull(params):
        assert [item.scope_uri for item in params.items] == [None, uris.from_fs_path("/folder")]
        return [session, folder]

    async def pulled():
        documents = Documents()
        documents.set_folders([uris.from_fs_path("/folder")])
        configuration = Configuration(documents, pull)
        configuration.pulls = True
        await configuration.pull()
        return configuration.of("/folder/a.py"), configuration.of("/elsewhere/a.py")

    return asyncio.run(pulled())


@pytest.mark.parametrize("session", [None, {}, {"confirm": "compile"}, {"confirm": "off"}])
@pytest.mark.parametrize(
    "folder",
    [
        {"confirm": {"mode": "launch", "command": EVIL}},
        {"confirm": {"enable": True, "launch": True, "command": EVIL, "seconds": 9999, "launchSeconds": 9999}},
        {"confirm": {"command": EVIL}, "confirm.command": EVIL, "pallas-lsp.confirm.command": EVIL},
        {"settings": {"confirm": {"command": EVIL}}, "pallas-lsp": {"confirm": {"command": EVIL}}},
    ],
)
def test_a_folder_starts_no_command_and_launches_nothing(session, folder, caplog):
    with caplog.at_level(logging.CRITICAL):
        own, other = settings(session, folder)
    assert own.confirm is not None
    assert (own.confirm.command, own.confirm.launch) == ((), False)
    assert (own.confirm.seconds, own.confirm.launch_seconds) == (60.0, 10.0)
    assert other.confirm is None or other.confirm.command == ()


def test_what_the_user_says_holds_in_a_folder_that_says_something_else():
    said = {"confirm": {"mode": "launch", "command": ["ssh", "gpu"], "seconds": 90}}
    own, _ = settings(said, {"confirm": {"mode": "launch", "command": EVIL, "seconds": 80}})
    assert (own.confirm.command, own.confirm.launch, own.confirm.seconds) == (("ssh", "gpu"), True, 80.0)
    own, _ = settings(said, {"confirm": "off"})
    assert own.confirm is None


@pytest.mark.parametrize(
    ("session", "folder", "seconds", "memory"),
    [
        ({}, {"timeLimit": 86400, "memoryLimit": 1 << 20}, (30.0, 60.0), 8192),
        ({}, {"timeLimit": 5, "memoryLimit": 512}, (5.0, 5.0), 512),
        ({"timeLimit": 100, "memoryLimit": 1000}, {"timeLimit": 101, "memoryLimit": 1001}, (100.0, 100.0), 1000),
        ({"timeLimit": 100, "memoryLimit": 20000}, {"timeLimit": 99, "memoryLimit": 19999}, (99.0, 99.0), 19999),
        ({"timeLimit": 100, "memoryLimit": 20000}, {}, (30.0, 60.0), 8192),
    ],
)
def test_a_folder_lowers_limits_and_raises_none(session, folder, seconds, memory):
    limits = settings(session, folder)[0].engine().limits
    assert (limits.trace_seconds, limits.lower_seconds) == seconds
    assert limits.memory_bytes == memory << 20
