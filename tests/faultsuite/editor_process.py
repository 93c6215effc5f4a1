"""An editor that can be killed: its server checks code that does not end; it tells which processes there are.

Arguments: the folder, the Python with jax, and ``held`` to have another process keep the server's input open.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from editor import Editor, descendants
from kernels import good

_ENDLESS = """\
import ctypes, signal, time
ctypes.CDLL(None).fork()
signal.signal(signal.SIGTERM, signal.SIG_IGN)
open('both', 'a').write('x')
while True: pass
"""


def main() -> None:
    folder, python = Path(sys.argv[1]), sys.argv[2]
    workspace = folder / "workspace"
    workspace.mkdir()
    editor = Editor(workspace, {"interpreter": python}, home=folder)
    editor.start(process_id=os.getpid())
    editor.open(good(main=_ENDLESS))
    server = editor.process.pid
    while not any(_both_loop(pid) for pid in descendants(server)):
        time.sleep(0.02)
    holder = None
    if "held" in sys.argv:
        assert editor.process.stdin is not None
        pipe = editor.process.stdin.fileno()
        holder = subprocess.Popen(["sleep", "300"], pass_fds=[pipe], stdout=subprocess.DEVNULL).pid
    print(json.dumps({"server": server, "below": descendants(server), "holder": holder}), flush=True)
    time.sleep(300)


def _both_loop(pid: int) -> bool:
    """Whether a process works in the folder of the run whose two processes have begun to loop."""
    try:
        return Path(f"/proc/{pid}/cwd/both").read_text() == "xx"
    except OSError:
        return False


if __name__ == "__main__":
    main()
