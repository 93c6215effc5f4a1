"""``python -m pallas_lsp``: the command line."""

import sys

from pallas_lsp.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
