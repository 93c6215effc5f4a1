"""A server process with a fake engine, for tests over a real stream.

The text of a document says what its check does: ``sleep SECONDS``, ``print``, ``block`` (the loop stands still for a
while), ``crash``; ``fault`` is a finding on its line.
"""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from server_harness import FakeEngine, at, finding, fix

from pallas_lsp.server.app import PallasServer
from pallas_lsp.server.main import serve
from pallas_lsp.server.trust import TrustStore


class TextEngine(FakeEngine):
    child: subprocess.Popen[bytes] | None = None

    async def check(self, snapshot, path, on_report=None, *, run=True):
        self.auto = self.report
        text = snapshot.documents[path].text
        if match := re.search(r"sleep ([\d.]+)", text):
            await asyncio.sleep(float(match[1]))
        if "print" in text:
            print("a stray print")
            os.write(1, b"and one past Python\n")
        if "stuck thread" in text:
            threading.Thread(target=time.sleep, args=(60,)).start()
            asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)
        if "child" in text:
            self.child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
            Path(path).with_suffix(".pid").write_text(str(self.child.pid))
        if "crash" in text:
            raise RuntimeError("the engine broke")
        return await super().check(snapshot, path, on_report, run=run)

    def report(self, call):
        found = []
        for number, line in enumerate(call.text.splitlines()):
            for match in re.finditer("fault", line):
                place = at(number, match.start(), match.end())
                found.append(finding(call.path, place, fixes=(fix(call.path, place, "right"),)))
        return call.make(*found)

    async def aclose(self):
        if self.child is not None:
            self.child.kill()
            self.child.wait()


def make_server() -> PallasServer:
    return PallasServer(lambda _: TextEngine(), TrustStore(Path(os.environ["PALLAS_LSP_TEST_TRUST"])))


if __name__ == "__main__":
    tcp = ("127.0.0.1", int(sys.argv[2])) if "--tcp" in sys.argv else None
    sys.exit(serve(tcp=tcp, make_server=make_server))
