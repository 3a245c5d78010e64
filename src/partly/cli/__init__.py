"""The command line: `cli` parses and prints, and there is a module per command that does its job."""
