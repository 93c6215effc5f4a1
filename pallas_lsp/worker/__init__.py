"""What runs in the user's Python: the standard library and the user's jax, nothing of the server."""
