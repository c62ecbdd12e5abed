"""Searches whose workers all die, in a process of their own: ``python -m tests.data.without_workers proof``.

Workers are only forked, and cannot be replaced without end, where no other test has left a thread in the process.
"""

import json
import os
import signal
import sys

from harness.adapters.portfolio import PartPhases
from harness.model.errors import WorkerError
from harness.search import ahead
from harness.search.parts import Elsewhere, Part, search_parts
from harness.search.pool import Answers, Shared
from harness.search.processes import Processes
from harness.search.prove import prove
from tests.data.shared_units import Recipe


def kill_all(pool):
    """End every worker as the system would."""
    for worker in [*pool._workers, *pool._spares]:
        os.kill(worker.pid, signal.SIGKILL)


def proof():
    """Return the verdict and the reasons of a proof that loses its workers after 12 executions."""
    ahead.ALONE_S = 0.0
    recipe = Recipe("lost_update")
    with Processes(2) as pool:
        done = prove(
            recipe.target(),
            shared=Shared(pool, recipe),
            progress=lambda executions, _: kill_all(pool) if executions == 12 else None,
        )
    return done.verdict, list(done.reasons)


def search():
    """Return the verdict of a search that loses its workers at once, what broke it, and what further searches raise."""
    recipe = Recipe("clean")
    parts = [Part(PartPhases("uniform", number), 100_000) for number in range(2)]
    raised = []
    with Processes(2) as pool:
        answers = Answers(pool)
        elsewhere = Elsewhere(answers, answers.submit(recipe, parts))
        kill_all(pool)
        result = search_parts(recipe.target(), parts, elsewhere=elsewhere)
        for _ in range(3):
            try:
                answers.wait(*answers.submit(recipe, parts[:1]))
            except WorkerError as error:
                raised.append(str(error))
    return result.verdict, [result.broken], raised


if __name__ == "__main__":
    print(json.dumps({"proof": proof, "search": search}[sys.argv[1]]()))
