"""The fewest orderings that separate failing from passing samples."""

from itertools import islice

from harness.search.separate import Sample, separations


def sample(events, *, fails):
    """Return a sample in which ``events`` happened in that order; a bar stands where the violation begins."""
    names = [f"deliver {name}" for name in events if name != "|"]
    before = {"before": events.index("|")} if "|" in events else {}
    return Sample(fails, {name: position for position, name in enumerate(names)}, **before)


def first_of(samples):
    """Return the smallest separation, in letters, or None."""
    for pairs in islice(separations(samples), 1):
        return [(one[-1], other[-1]) for one, other in pairs]
    return None


def test_one_ordering_is_enough_where_one_decides():
    """Failing: a before b. What else differs does not matter."""
    failing = [sample("acb", fails=True), sample("cab", fails=True)]
    passing = [sample("bca", fails=False), sample("bac", fails=False)]
    assert first_of(failing + passing) == [("a", "b")]


def test_two_orderings_are_combined_where_neither_is_enough():
    """Failing: a before b and c before d."""
    failing = [sample("abcd", fails=True), sample("cdab", fails=True), sample("acbd", fails=True)]
    passing = [sample("bacd", fails=False), sample("abdc", fails=False), sample("dcba", fails=False)]
    assert first_of(failing + passing) == [("a", "b"), ("c", "d")]


def test_what_does_not_happen_comes_last():
    """Failing: b never comes."""
    assert first_of([sample("ac", fails=True), sample("bac", fails=False)]) == [("a", "b")]


def test_an_effect_of_the_violation_is_no_cause():
    """What comes from the violation on decides nothing."""
    assert first_of([sample("c|ab", fails=True), sample("cb", fails=False)]) is None


def test_what_was_seen_the_other_way_round_goes_first():
    """Failing: a before b. That d, which comes with the failure only, is behind c says nothing."""
    failing = [sample("ca|bd", fails=True)]
    passing = [sample("cba", fails=False), sample("ba", fails=False)]
    assert first_of(failing + passing) == [("a", "b")]
    named = [("save.cancelled one (run 0)", 0), ("save.committed other (run 1)", 1)]
    cancelled = Sample(True, dict(named))
    committed = Sample(False, {"save.committed one (run 0)": 0})
    assert next(separations([cancelled, committed])) == (("save.cancelled one (run 0)", "save.committed one (run 0)"),)


def test_nothing_separates_what_fails_in_any_order():
    """No ordering holds in all failing samples."""
    failing = [sample("ab", fails=True), sample("ba", fails=True)]
    assert first_of([*failing, sample("abc", fails=False)]) is None
