"""Starts the language server: the bundled one, or with ``fromEnvironment`` the one installed beside this Python.

usage: python -I -u -X utf8 launch.py useBundled|fromEnvironment [arguments of pallas-lsp]
"""

import importlib.util
import os
import sys


def main():  # noqa: ANN201  # an old Python must get as far as the sentence below
    if sys.version_info < (3, 11):  # noqa: UP036  # an older Python gets this sentence, not a traceback
        sys.exit("Pallas LSP needs Python 3.11 or later; this is %s." % sys.version.split()[0])  # noqa: UP031
    strategy, arguments = sys.argv[1], sys.argv[2:]
    libs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libs")  # noqa: PTH100, PTH118, PTH120
    if strategy == "fromEnvironment" and importlib.util.find_spec("pallas_lsp") is not None:
        sys.stderr.write("The server installed in %s is used.\n" % sys.prefix)  # noqa: UP031
    else:
        sys.path.insert(0, libs)
    from pallas_lsp.cli.main import main as run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
