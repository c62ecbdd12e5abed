"""How much sooner several processes are done: a proof and a search of #9615 with one job and with more, in turns.

Run as ``python benchmarks/jobs.py [JOBS...]``. Each row is the best of two rounds; the ratio is the time of one job
over the time of N, the processor time is that of all processes together. Only ratios compare between machines.
"""

import logging
import resource
import sys
import time
from collections.abc import Callable

from harness.adapters.portfolio import make_parts
from harness.adapters.recipes import ScenarioRecipe
from harness.search.parts import Elsewhere, search_parts
from harness.search.pool import Answers, Shared
from harness.search.processes import Processes
from harness.search.prove import prove

ROUNDS = 2
BUDGET = 1_500
SCENARIO = "scenarios/issue_9615.py"


def proof(jobs: int) -> str:
    """Execute 1,500 prefixes of #9615 with its fix, in each await shape, cancelled anywhere; return what was found."""
    recipe = ScenarioRecipe(SCENARIO, "issue_9615", "memory", fix="shielded-save", faults=("cancel",))
    if jobs == 1:
        found = prove(recipe.target(), budget=BUDGET)
    else:
        with Processes(jobs) as pool:
            found = prove(recipe.target(), shared=Shared(pool, recipe), budget=BUDGET)
    return f"{found.verdict}, {found.executions} executions, {found.states} states"


def search(jobs: int) -> str:
    """Search #9615 on memory, where nothing is found; return what was."""
    recipe = ScenarioRecipe(SCENARIO, "issue_9615", "memory", shapes=False)
    parts = make_parts(budget=2 * BUDGET)
    if jobs == 1:
        found = search_parts(recipe.target(), parts)
    else:
        with Processes(jobs) as pool:
            answers = Answers(pool)
            elsewhere = Elsewhere(answers, answers.submit(recipe, parts))
            found = search_parts(recipe.target(), parts, elsewhere=elsewhere)
    return f"{found.verdict}, {found.executions} executions"


def measure(run: Callable[[int], str], jobs: int) -> tuple[float, float, str]:
    """Return seconds of real time, of processor time, and what was found."""

    def used_s() -> float:
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(usage.ru_utime + usage.ru_stime for usage in usages)

    began, used = time.monotonic(), used_s()
    found = run(jobs)
    return time.monotonic() - began, used_s() - used, found


def main() -> None:
    """Print a table."""
    logging.getLogger().addHandler(logging.NullHandler())
    counts = [1, *(int(text) for text in sys.argv[1:] or ["2"])]
    print("what    jobs  seconds  processor  ratio  found")
    for run in (proof, search):
        rounds = {jobs: [] for jobs in counts}
        for _ in range(ROUNDS):
            for jobs in counts:
                rounds[jobs].append(measure(run, jobs))
        alone_s = min(rounds[1])[0]
        for jobs in counts:
            seconds, used, found = min(rounds[jobs])
            row = f"{run.__name__:<7} {jobs:>4}  {seconds:7.1f}  {used:9.1f}  {alone_s / seconds:5.2f}  {found}"
            print(row, flush=True)


if __name__ == "__main__":
    main()
