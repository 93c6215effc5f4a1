"""Install Pallas LSP into ``.venv`` and check the kernels in ``examples``: ``python3 scripts/try_it.py``.

Needs Python 3.11 or later and a connection to a package index; no GPU.  The exit status is 0 when the faulty examples
were found faulty and the correct ones clean.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

if sys.version_info < (3, 11):  # noqa: UP036  # an older Python gets this sentence, not a traceback
    sys.exit(
        f"Pallas LSP needs Python 3.11 or later; this is {sys.version.split()[0]}. Use a newer one for this script."
    )

import environments as env

EXAMPLES = env.PROJECT / "examples"


def install(environment: Path) -> None:
    print(f"== 1. A virtual environment: {environment}", flush=True)
    made = env.make_environment(environment, sys.executable)
    print("   made" if made else "   found, used again")
    print("== 2. Installing Pallas LSP and jax (CPU) into it; the first time takes a minute or two", flush=True)
    env.pip_install(environment, "--editable", ".[jax]")
    versions = env.installed(environment)
    print(f"   pallas-lsp {versions['pallas-lsp']}, jax {versions['jax']}")


def check(environment: Path) -> list[str]:
    """Check the examples, show what the checker prints, and say what was not as it should be."""
    command = [str(env.script(environment, "pallas-lsp")), "check", "examples"]
    command += ["--python", str(env.interpreter(environment))]
    print("== 3. Checking the kernels in examples/: pallas-lsp check examples\n", flush=True)
    started = time.monotonic()
    subprocess.run(command, cwd=env.PROJECT, check=False)
    print(f"\n   ({time.monotonic() - started:.1f} s)", flush=True)
    answer = subprocess.run(
        [*command, "--format", "json"], cwd=env.PROJECT, capture_output=True, text=True, check=False
    )
    try:
        report = json.loads(answer.stdout)
    except ValueError:
        return [f"the checker gave no result (exit status {answer.returncode}):\n{answer.stderr.strip()}"]
    return judge(report, answer.returncode)


def judge(report: dict, status: int) -> list[str]:
    serious = {"error", "warning"}
    found = {(env.PROJECT / each["path"]).resolve() for each in report["diagnostics"] if each["severity"] in serious}
    lowered = {
        (env.PROJECT / launch["path"]).resolve()
        for launch in report["launches"]
        if launch["captures"] and all(capture["stage"] == "lower" for capture in launch["captures"])
    }
    wrong = []
    for path in sorted(EXAMPLES.glob("*.py")):
        faulty = path.stem.startswith("faulty_")
        if faulty != (path in found):
            wrong.append(f"{path.name}: " + ("its fault was not found" if faulty else "is correct, but got a finding"))
        elif not faulty and path not in lowered:
            wrong.append(f"{path.name}: its kernel was not lowered")
    if status != 1:
        wrong.append(f"the exit status of the checker is {status}; 1 (findings) was expected")
    return wrong


def explain(environment: Path, wrong: list[str]) -> int:
    print("== 4. What this means")
    if wrong:
        print("   Not what was expected:\n   - " + "\n   - ".join(wrong))
        print(f"   '{env.script(environment, 'pallas-lsp')} doctor' says what the checker found on this machine.")
        return 1
    faulty = len(list(EXAMPLES.glob("faulty_*.py")))
    correct = len(list(EXAMPLES.glob("*.py"))) - faulty
    activate = Path("Scripts" if os.name == "nt" else "bin") / "activate"
    print(
        f"   As expected: the {correct} correct examples are clean, and each of the {faulty} named faulty_*.py has a\n"
        "   finding on the line at fault. Every kernel was traced by jax and lowered for its GPU or TPU, on this\n"
        "   machine's CPU; nothing was run on a device.\n"
        f"   Now check your own: . {environment / activate}; pallas-lsp check YOUR_FILE.py"
    )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venv", type=Path, default=env.PROJECT / ".venv", help="the virtual environment to use")
    environment = parser.parse_args().venv.absolute()
    install(environment)
    return explain(environment, check(environment))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except env.SetupError as error:
        sys.exit(f"\n{error}")
    except KeyboardInterrupt:
        sys.exit(130)
