"""Recorded shapes: what ``pallas-lsp record`` puts into a program of the user's, and how the recordings are kept."""
