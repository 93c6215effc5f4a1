"""The command line: one file a subcommand, one file an output format."""
