"""`python -m partly` is `partly`."""

from partly.cli import main

main()
