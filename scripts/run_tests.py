"""Install what the tests need and run them all: ``python3 scripts/run_tests.py [options] [arguments for pytest]``.

Needs Python 3.11 or later and a connection to a package index the first time.  The server's side gets the environment
``.venvs/dev``; each tested jax gets ``.venvs/jax-VERSION`` with a Python of this machine that it installs on.
"""

import argparse
import os
import subprocess
import sys
import time

if sys.version_info < (3, 11):  # noqa: UP036  # an older Python gets this sentence, not a traceback
    sys.exit(
        f"Pallas LSP needs Python 3.11 or later; this is {sys.version.split()[0]}. Use a newer one for this script."
    )

import environments as env

_MOST_PROCESSES = 4
"""Of pytest: each of them starts workers with jax, of about a gigabyte."""


def parse(arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--all",
        action="store_true",
        default=bool(os.environ.get("CI")),
        help="fail when a tested jax version cannot be tested on its own Python (the default when CI is set)",
    )
    parser.add_argument("--only-environments", action="store_true", help="make the environments and run nothing")
    editors = parser.add_mutually_exclusive_group()
    editors.add_argument(
        "--editors",
        action="store_true",
        default=bool(os.environ.get("CI")),
        help="install VS Code, Neovim and others below .venvs and test in them (the default when CI is set)",
    )
    editors.add_argument("--no-editors", dest="editors", action="store_false", help="leave out the tests in editors")
    parser.add_argument("--no-lint", action="store_true", help="run pytest only")
    parser.add_argument("--refresh", action="store_true", help="resolve the pinned versions anew and write them down")
    return parser.parse_known_args(arguments)


def choose(pythons: dict[env.Minor, str], every: bool) -> tuple[list[tuple[env.TestedJax, str]], list[str]]:
    """The jax versions that this machine can test, each with its Python, and sentences about the others."""
    chosen, missing = [], []
    for jax in env.TESTED:
        python = env.python_for(jax, pythons)
        if python is None or (every and jax.python not in pythons):
            wanted = env.dotted(jax.python if every else jax.oldest) + ("" if every else " or later")
            missing.append(f"jax {jax.version}: not tested, it needs Python {wanted}, which was not found")
        else:
            chosen.append((jax, python))
    return chosen, missing


def refresh(chosen: list[tuple[env.TestedJax, str]], pythons: dict[env.Minor, str]) -> None:
    env.refresh(env.DEV_PINS, next(iter(pythons.values())), env.dev_requirements())
    for jax, python in chosen:
        env.refresh(jax.pins, python, jax.requirements())


def run(title: str, command: list[str], **variables: str) -> bool:
    print(f"\n== {title}: {' '.join(command[1:])}", flush=True)
    return subprocess.run(command, cwd=env.PROJECT, env={**os.environ, **variables}, check=False).returncode == 0


def main() -> int:
    options, pytest_arguments = parse(sys.argv[1:])
    started = time.monotonic()
    pythons = env.find_pythons()
    print("== Pythons: " + ", ".join(f"{env.dotted(minor)} ({path})" for minor, path in pythons.items()), flush=True)
    chosen, missing = choose(pythons, options.all or options.refresh)
    if missing and (options.all or options.refresh):
        raise env.SetupError("\n".join(missing))
    if options.refresh:
        refresh(chosen, pythons)

    print("== environments", flush=True)
    dev = env.PROJECT / ".venvs" / "dev"
    env.ensure_pinned(dev, sys.executable, env.DEV_PINS)
    env.ensure_project(dev)
    for jax, python in chosen:
        env.ensure_pinned(jax.environment, python, jax.pins)
    if options.only_environments:
        return 0

    python = str(env.interpreter(dev))
    failed = []
    if not options.no_lint:
        lint = {
            "ruff": [python, "-m", "ruff", "check", "."],
            "format": [python, "-m", "ruff", "format", "--check", "."],
            "mypy": [python, "-m", "mypy"],
        }
        failed += [name for name, command in lint.items() if not run(name, command)]
    jax_pythons = os.pathsep.join(str(env.interpreter(jax.environment)) for jax, _ in chosen)
    tests = [python, "-m", "pytest", "-n", str(min(os.cpu_count() or 1, _MOST_PROCESSES))]
    # On a busy machine a process may miss a moment: what fails runs once more, and the summary shows how it failed.
    tests += ["--reruns", "1", "--max-suite-reruns", "10", "--rerun-show-tracebacks", *pytest_arguments]
    if options.editors:
        print("\n== editors", flush=True)
        tools = [python, "scripts/editor_tools.py", *(["--all"] if options.all else [])]
        if subprocess.run(tools, cwd=env.PROJECT, check=False).returncode != 0:
            raise env.SetupError("An editor could not be installed; the reason stands above. Or use --no-editors.")
    else:
        tests.append("--ignore=tests/editors")
        missing.append("editors: not tested; --editors installs them (1.5 GB) and tests in them")
    if not run("pytest", tests, PALLAS_LSP_TEST_PYTHONS=jax_pythons or os.pathsep):
        failed.append("pytest")

    print(f"\n== {time.monotonic() - started:.0f} s", flush=True)
    for jax, _ in chosen:
        answer = env.ask([str(env.interpreter(jax.environment))])
        print(f"jax {jax.version}: tested on Python {env.dotted(answer[0]) if answer else '?'}")
    for sentence in missing:
        print(sentence)
    print(f"FAILED: {', '.join(failed)}" if failed else "Everything passed.")
    return 1 if failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except env.SetupError as error:
        sys.exit(f"\n{error}")
    except KeyboardInterrupt:
        sys.exit(130)
