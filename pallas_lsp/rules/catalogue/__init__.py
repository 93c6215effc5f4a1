"""The catalogue of the places where jax refuses a kernel: read by AST, classified, and assigned to rules.

``sites`` reads an installed jax, ``reach`` says what a user's code can reach, ``judgements`` what was decided by hand,
``claims`` which rule explains a site, ``record`` is the file that keeps the result.  jax is never imported.
"""
