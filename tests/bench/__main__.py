"""``python -m tests.bench [NAME ...] [--full]``: measure, print one line per figure, write build/bench."""

from __future__ import annotations

import argparse
import sys
import time
from importlib import import_module

from tests.bench.report import FOLDER, Report
from tests.bench.workbench import Workbench

MEASURES = {
    "start": "start",
    "search": "search_calls",
    "index": "search_index",
    "freshness": "freshness",
    "prepare": "prepare",
    "pure": "pure",
    "memory": "flat",
}


def main() -> int:
    """Run what was asked for; 1 when a figure falls short."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"what to measure (default: all): {', '.join(MEASURES)}")
    parser.add_argument("--full", action="store_true", help="5 GiB of logs instead of 1")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - set(MEASURES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}")
    begun, report = time.perf_counter(), Report()
    bench = Workbench(report=report, full=arguments.full)
    try:
        for name in arguments.names or MEASURES:
            print(f"\n## {name}", flush=True)
            import_module(f"tests.bench.{MEASURES[name]}").measure(bench)
            report.save(whole=not arguments.names)
    finally:
        bench.close()
    missed, seconds = report.missed(), time.perf_counter() - begun
    print(f"\n{len(report.figures)} figures in {seconds:.0f} s, {len(missed)} short of their target; see {FOLDER}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
