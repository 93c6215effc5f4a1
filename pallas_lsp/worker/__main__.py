"""The worker program: started by path with the interpreter of the user's project, see docs/protocol.md.

This file must parse on any Python 3, so that a too old one can be told by name.
"""

import importlib
import importlib.util
import os
import sys

OLDEST_PYTHON = (3, 10)
PACKAGE = "pallas_lsp_worker"


def load_package():  # type: ignore[no-untyped-def]  # noqa: ANN201
    """Make this folder a package with a name of its own, so that no module in it hides one of the user's."""
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [each for each in sys.path if os.path.abspath(each or os.curdir) != folder]
    spec = importlib.util.spec_from_file_location(
        PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    package = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)  # type: ignore[union-attr]
    return package


def main():  # type: ignore[no-untyped-def]  # noqa: ANN201
    if sys.version_info < OLDEST_PYTHON:
        version = ".".join(map(str, sys.version_info[:3]))
        line = '{"jsonrpc":"2.0","id":null,"error":{"code":5,"message":"Python %s","data":{"python":"%s"}}}\n'
        os.write(1, (line % (version, version)).encode())
        sys.exit(3)
    load_package()  # type: ignore[no-untyped-call]
    incoming, outgoing = importlib.import_module(PACKAGE + ".stream").take_over()
    importlib.import_module(PACKAGE + ".service").serve(incoming, outgoing)


if __name__ == "__main__":
    main()  # type: ignore[no-untyped-call]
