"""`python -m partly` is `partly`."""

from partly.commands.cli import main

main()
