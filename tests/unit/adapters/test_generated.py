"""Generated workflows: the grammar, the model, and the smallest counterexample."""

import itertools
import random
import re
from pathlib import Path

import hypothesis
import pytest

import harness
from harness.adapters.agent_framework.generated import (
    OPEN_BUGS,
    PLAIN,
    agrees,
    expected,
    generate,
    run_generated,
    steps_of,
)
from harness.adapters.loading import find_scenario
from harness.adapters.portfolio import make_phases
from harness.adapters.targets import scenario_target
from harness.model.scenario import Scenario
from harness.search.portfolio import search
from harness.search.readable import clause_of

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def drawn(seed, **options):
    """Return the workflow that a seed draws."""
    source = random.Random(seed)
    return generate(lambda drawn, _name: source.randrange(len(drawn)), **options)


def test_the_plainest_workflow_is_one_step():
    """All choices 0."""
    assert generate(lambda _options, _name: 0) == ["step", "s1", 0, False]


def test_every_feature_comes_up_and_steps_have_labels_of_their_own():
    """In a hundred draws."""
    specs = [drawn(seed, features=PLAIN + OPEN_BUGS) for seed in range(300)]
    text = str(specs)
    assert all(f"'{feature}'" in text for feature in PLAIN + OPEN_BUGS)
    for spec in specs:
        labels = [item[1] for item in steps_of(spec)]
        assert len(labels) == len(set(labels))


def test_the_model_knows_what_comes_out():
    """Lists for parts, one of several for a race."""
    spec = ["seq", ["step", "a", 0, False], ["race", ["step", "b", 0, False], ["step", "c", 0, False]], ["state", "d"]]
    assert expected(spec) == ["a", ("one of", ["b", "c"]), "d"]
    assert agrees(["a", "c", "d"], expected(spec))
    assert not agrees(["a", "d", "d"], expected(spec))


@hypothesis.given(harness.workflows(max_siblings=2))
@hypothesis.settings(max_examples=50, database=None)
def test_the_strategy_draws_workflows_with_their_results(flow):
    """For tests that Hypothesis drives."""
    assert agrees(flow.expected, flow.expected)
    assert all(len(spec) == 4 for spec in steps_of(flow.message))


@pytest.mark.slow
def test_what_never_fails_returns_what_the_model_says():
    """On the in-memory storage, in default order."""

    def program_of(spec):
        async def program(durable):
            await run_generated(durable, spec)

        return program

    plain = [drawn(seed) for seed in range(400)]
    harmless = [spec for spec in plain if not any(item[3] for item in steps_of(spec))]
    assert len(harmless) > 60
    for spec in itertools.islice(harmless, 60):
        scenario = Scenario("test", program_of(spec), {"memory": None}, shapes=False)
        with scenario_target(scenario, "memory").open() as runner:
            execution = runner.run(None)
        assert not execution.violations, (spec, execution.violations)


@pytest.mark.slow
def test_9615_found_in_a_generated_workflow_is_small():
    """Two sibling steps, one of which fails, and at most two deviations besides the workflow itself."""
    target = scenario_target(find_scenario("generated", folder=SCENARIOS), "remote", shapes=False)
    found = search(target, phases=make_phases(rung=target.rung), budget=400).counterexample
    assert found.violation.oracle == "completed_steps_restored"
    decisions = found.execution.schedule.decisions
    drawn = [clause_of(item) for item in decisions if item.kind == "program"]
    assert [re.sub(r"s\d", "s", clause) for clause in drawn] == [
        "the program's kind of s is gather",
        "the program's outcome of s is failure",
    ]
    assert len([item for item in decisions if item.kind != "program"]) <= 2


@pytest.mark.long
def test_no_false_alarm_in_ten_thousand_executions():
    """Without features that meet open bugs, and with the shielded save, nothing is reported."""
    target = scenario_target(find_scenario("generated", folder=SCENARIOS), "memory", fix="shielded-save")
    assert search(target, phases=make_phases(rung=target.rung), budget=10_000).verdict == "none-found"
