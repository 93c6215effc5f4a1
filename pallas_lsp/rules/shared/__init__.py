"""What several rules need: places of arguments, uses of run_state and run_scoped, accumulators."""
