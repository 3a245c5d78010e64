"""`python -m partly` is `partly`."""

from partly.cli.main import main

main()
