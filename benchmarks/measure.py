"""Run the benchmarks of keystrokes, of many files and of memory, and write their tables into benchmarks/README.md.

.venvs/dev/bin/python benchmarks/measure.py --python .venvs/jax-0.12.0.1/bin/python
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", required=True, help="the interpreter that has jax")
    options = parser.parse_args()
    for name in ("keystrokes", "many", "memory"):
        print(f"{name} ...", file=sys.stderr, flush=True)
        command = [sys.executable, str(HERE / f"{name}.py"), "--python", options.python, "--write"]
        if status := subprocess.run(command, check=False).returncode:
            return status
    return 0


if __name__ == "__main__":
    sys.exit(main())
