"""Run CPython's own asyncio tests on the stock loop and on the controlled one, on every interpreter that is found.

Run: python benchmarks/conformance.py [--json] [VERSION ...]. Minutes per interpreter. Counted are tests that make
a loop and pass on the stock selector loop in the same session. Scope ``loop``: all routes to a loop lead to the
loop under test. Scope ``clock``: the tests' own hand-driven loop is replaced too, for those not counted already.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "conformance"))

import cpython_suite  # it lives with the tests


def main(arguments: list[str]) -> int:
    """Print the table; status 1 if a test differs that is not on the list."""
    rows = []
    unknown = 0
    known = cpython_suite.known_differences()
    if "--json" not in arguments:
        print(f"{'python':8} {'scope':6} {'tests':>6} {'stock':>6} {'ours':>6} {'ran on ours':>12} {'differing':>10}")
    for version in [word for word in arguments if not word.startswith("-")] or cpython_suite.VERSIONS:
        python = cpython_suite.find_interpreter(version)
        if python is None:
            print(f"Python {version} is not installed, or without its tests", file=sys.stderr)
            continue
        result = cpython_suite.compare(cpython_suite.MODULES, python=python)
        differing = result.differing()
        unknown += sum(name not in known for name in differing)
        for scope in ("loop", "clock"):
            counted, passed = result.counted(scope), result.passed(scope)
            rows.append(
                {
                    "python": result.python,
                    "scope": scope,
                    "run": sum(name.startswith(scope) for name in result.stock),
                    "passed_stock": len(counted),
                    "passed_ours": len(passed),
                    "ran_on_ours": result.ran(scope),
                    "differing": {name: said for name, said in differing.items() if name.startswith(scope)},
                }
            )
            if "--json" not in arguments:
                row = rows[-1]
                print(
                    f"{result.python:8} {scope:6} {row['run']:6} {len(counted):6} {len(passed):6} "
                    f"{row['ran_on_ours']:12} {len(row['differing']):10}",
                    flush=True,
                )
        for name, said in differing.items():
            print(f"  {name} [{known.get(name, ('unknown', ''))[0]}] {said}", file=sys.stderr)
    if "--json" in arguments:
        print(json.dumps(rows, indent=1))
    return int(unknown > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
