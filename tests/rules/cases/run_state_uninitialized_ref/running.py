from jax.experimental import pallas as pl


def run(body, *refs):
    """Run a body that takes refs one by one."""
    return pl.run_state(lambda args: body(*args))(refs)
