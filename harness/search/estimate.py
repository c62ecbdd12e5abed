"""How much of a choice tree is explored: random probes, weighted by the choices that they passed.

Owns the estimator and its interval; must not know how an execution is run. Source: Knuth, "Estimating the
efficiency of backtrack programs", Mathematics of Computation 29 (1975); the interval is a bootstrap.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from harness.search.certificate import Estimate
from harness.search.states import Leaf, Node, Plan, Step

MAX_DEPTH = 100_000
RESAMPLES = 400

# Runs a plan and random choices after it; returns the product of the numbers of options met after the plan.
Probe = Callable[[Plan], float]


def estimate(
    root: Node | Leaf | None, probe: Probe, *, source: random.Random, until: Callable[[int], bool]
) -> Estimate:
    """Estimate the explored fraction of all schedules below ``root``.

    Each probe walks down with equal odds; the product of the numbers of options is its weight, whose mean is the
    number of schedules. until: says after how many probes to stop.
    """
    samples: list[tuple[float, bool]] = []
    while not until(len(samples)):
        samples.append(_walk(root, probe, source))
    means = sorted(_fraction(source.choices(samples, k=len(samples))) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES)]
    # A sample without any of one kind says no more than the rule of three allows.
    slack = min(1.0, 3 / max(1, len(samples)))
    if all(explored for _, explored in samples):
        low = 1 - slack
    if not any(explored for _, explored in samples):
        high = slack
    total = sum(weight for weight, _ in samples) / max(1, len(samples))
    return Estimate(_fraction(samples), low, high, total, len(samples))


def _walk(root: Node | Leaf | None, probe: Probe, source: random.Random) -> tuple[float, bool]:
    place, weight = root, 1.0
    plan: Plan = ()
    for _ in range(MAX_DEPTH):
        if place is None:
            return weight * probe(plan), False
        if isinstance(place, Leaf):
            return weight, True
        options = len(place.children)
        different = [
            value for value, child in enumerate(place.children) if not (isinstance(child, Leaf) and child.same)
        ]
        value = source.choice(different)
        weight *= len(different)
        plan = (*place.plan, Step(value, options))
        place = place.children[value]
    return weight, True


def _fraction(samples: list[tuple[float, bool]]) -> float:
    total = sum(weight for weight, _ in samples)
    return sum(weight for weight, explored in samples if explored) / total if total else 0.0
