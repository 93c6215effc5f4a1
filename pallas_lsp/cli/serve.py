"""``pallas-lsp serve``: the language server."""

from __future__ import annotations

import argparse

from pallas_lsp.cli.main import UsageError

_LEVELS = ("off", "error", "warning", "info", "debug")


def configure(parser: argparse.ArgumentParser) -> None:
    transport = parser.add_mutually_exclusive_group()
    transport.add_argument("--stdio", action="store_true", help="speak over standard input and output (the default)")
    transport.add_argument("--tcp", metavar="HOST:PORT", type=_address, help="listen on an address, for debugging")
    parser.add_argument("--log-file", metavar="FILE", help="write the log to a file, too")
    parser.add_argument("--log-level", choices=_LEVELS, default="info", help="how much is logged (default: info)")
    parser.add_argument("--python", metavar="INTERPRETER", help="the Python with the jax to check with")


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not HOST:PORT, such as 127.0.0.1:2087")
    return host.strip("[]"), int(port)


def run(arguments: argparse.Namespace) -> int:
    from pallas_lsp.server.main import serve

    try:
        return serve(
            tcp=arguments.tcp,
            log_file=arguments.log_file,
            log_level=arguments.log_level,
            python=arguments.python,
        )
    except OSError as error:
        raise UsageError(f"the server could not start: {error}") from error
