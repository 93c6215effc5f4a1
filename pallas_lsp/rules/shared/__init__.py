"""What several rules need: places of arguments, uses of run_state and run_scoped, accumulators, their fixes."""


class NotPossible(Exception):  # noqa: N818 - no error of ours: a fix does not apply here
    """A fix does not apply here."""
