"""A worker on another machine or in a container: it brings itself over the standard input of a Python there.

The command (``["ssh", "box", "python3"]``, ``["docker", "exec", "-i", NAME, "python3"]``, ``["srun", "python3"]``) is
continued with ``-u -c BOOTSTRAP``.  What is written to it first is a line of JSON and a zip of the worker's sources;
the bootstrap unpacks them in a temporary folder, runs the worker from there, and removes the folder when it ends.
"""

from __future__ import annotations

import io
import json
import shlex
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from pallas_lsp.engine.process import PROGRAM
from pallas_lsp.engine.settings import Start

_THROUGH_A_SHELL = {"ssh", "slogin", "mosh", "autossh", "tsh", "gcloud"}
"""Programs that hand their arguments to a shell on the other side."""

BOOTSTRAP = """
import io,json,os,shutil,signal,subprocess,sys,tempfile,zipfile
def read(n):
    parts=b""
    while len(parts)<n:
        part=os.read(0,n-len(parts))
        if not part: sys.exit(1)
        parts+=part
    return parts
head=b""
while not head.endswith(b"\\n"): head+=read(1)
head=json.loads(head)
folder=tempfile.mkdtemp(prefix="pallas-lsp-")
def stop(*_): raise SystemExit(143)
for name in ("SIGTERM","SIGHUP","SIGINT"):
    if hasattr(signal,name): signal.signal(getattr(signal,name),stop)
worker=None
try:
    zipfile.ZipFile(io.BytesIO(read(head["size"]))).extractall(folder)
    program=os.path.join(folder,"worker")
    options={"start_new_session":True} if os.name=="posix" else {}
    worker=subprocess.Popen([sys.executable,"-u",program],env={**os.environ,**head["environment"]},**options)
    code=worker.wait()
finally:
    if worker is not None and worker.poll() is None:
        worker.terminate()
        try: worker.wait(5)
        except subprocess.TimeoutExpired: worker.kill()
    shutil.rmtree(folder,ignore_errors=True)
sys.exit(code)
"""


def remote_start(command: Sequence[str], start: Start, environment: Mapping[str, str]) -> Start:
    """How to start a worker through a command."""
    arguments = ["-u", "-c", BOOTSTRAP]
    if PurePath(command[0]).name.removesuffix(".exe") in _THROUGH_A_SHELL:
        arguments = [shlex.quote(argument) for argument in arguments]
    sources = _sources()
    head = {"size": len(sources), "environment": dict(environment)}
    return replace(start, command=(*command, *arguments), preamble=json.dumps(head).encode() + b"\n" + sources)


def _sources() -> bytes:
    """The worker program as a zip, with the same bytes for the same sources."""
    folder = Path(PROGRAM)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.suffix in (".py", ".json") and "__pycache__" not in path.parts:
                name = "worker/" + path.relative_to(folder).as_posix()
                archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return data.getvalue()
