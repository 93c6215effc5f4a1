"""GPU verdicts: what an attached GPU, or one that a command reaches, says of each finding and each kernel."""
