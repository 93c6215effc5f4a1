"""Finding what reaches the launches of a file from elsewhere in the workspace: its tests first, scripts last."""
