"""Bodies and meshes of ``pl.kernel`` that do not go together."""

from __future__ import annotations

from jax_environments import JaxPython
from launch_snippets import Snippet, check

RULE = "kernel-meshes-mismatch"
BODIES = """

def copy(x_ref, o_ref):
    pltpu.sync_copy(x_ref, o_ref)


def nothing(x_ref, o_ref):
    pass


OUT = SDS((8, 128), jnp.float32)
X8 = jnp.ones((8, 128))
MESH = pltpu.create_tensorcore_mesh("x", num_cores=1)
"""
MAIN = '\nif __name__ == "__main__":\n'


SNIPPETS = {
    "a_list_for_one_body": Snippet(
        BODIES + MAIN + "    pl.kernel(copy, OUT, mesh=[MESH])(X8)\n" + " " * 29 + "#^^^^^^\n",
        says=("a list of meshes for a single body",),
        fixes=1,
        related=("This is what runs on it",),
    ),
    "one_mesh_for_a_list": Snippet(
        BODIES + MAIN + "    pl.kernel([copy], OUT, mesh=MESH)(X8)\n" + " " * 31 + "#^^^^\n",
        says=("one mesh for a list of bodies",),
        fixes=1,
    ),
    "lengths": Snippet(
        BODIES + MAIN + "    pl.kernel([copy, nothing], OUT, mesh=[MESH])(X8)\n",
        says=("2 bodies for 1 mesh",),
    ),
    "decorator": Snippet(
        BODIES
        + "\n\n@pl.kernel(out_type=OUT, mesh=[MESH])\ndef both(x_ref, o_ref):\n    pltpu.sync_copy(x_ref, o_ref)\n\n"
        + MAIN
        + "    both(X8)\n",
        says=("list of meshes",),
        fixes=1,
    ),
    "no_body": Snippet(BODIES + MAIN + "    pl.kernel([], OUT, mesh=[])(X8)\n", says=("has no body",)),
    "one_ref_twice": Snippet(
        BODIES
        + "\n\ndef add(x_ref, y_ref, o_ref):\n    pltpu.sync_copy(x_ref, o_ref)\n\n\n@jax.jit\ndef f(x):\n"
        + "    r = jax.new_ref(x)\n    return pl.kernel(add, OUT, mesh=MESH)(r, r)\n\n"
        + MAIN
        + "    f(X8)\n",
        says=("`r` is given 2 times",),
    ),
    "right": Snippet(BODIES + MAIN + "    pl.kernel(copy, OUT, mesh=MESH)(X8)\n", rule=""),
    "lists": Snippet(BODIES + MAIN + "    pl.kernel([copy], OUT, mesh=[MESH])(X8)\n", rule=""),
}


def test_kernel_meshes_mismatch(jax_python: JaxPython) -> None:
    check(jax_python.python, jax_python.version, RULE, SNIPPETS)
