"""Command line of the evidence: `python -m evidence {run,pages,claims}`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import evidence
from evidence import claims, pages, run
from evidence.claims import wording
from partly.errors import PartlyError

HERE = Path(__file__).resolve().parent


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m evidence", description=evidence.__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    run.add_options(commands.add_parser("run", help="Run the experiments."))
    pages_options = commands.add_parser("pages", help="Write the pages of results and claims.")
    pages_options.add_argument("--check", action="store_true", help="Only list stale pages; exit status 1 if any.")
    claims_options = commands.add_parser("claims", help="Print the verdict on every claim.")
    claims_options.add_argument("results", nargs="?", type=Path, default=HERE / "results", help="Folder of results.")
    claims_options.add_argument("--paper", default="", help="Part of a paper's authors, title or year.")
    claims_options.add_argument("--json", action="store_true", help="Print JSON.")
    options = parser.parse_args(arguments)
    try:
        if options.command == "run":
            os.chdir(HERE)  # settings name files relative to this folder
            return run.main(options)
        if options.command == "pages":
            return pages.main(check=options.check)
        decided = claims.decide(options.results, options.paper)
        plain = [wording.plain(one) for one in decided]
        print(json.dumps(plain) if options.json else wording.render_terminal(decided))
        return 0
    except PartlyError as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
