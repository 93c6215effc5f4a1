"""Pallas LSP: faults of JAX Pallas kernels on their exact line, while they are typed."""

__version__ = "0.1.0"
