"""Parts of a claim make one verdict, told in few words and in full."""

from pathcast.lab.verdict import Verdict


def test_all_parts_met_is_true():
    verdict = Verdict()
    assert verdict.needs(True, "no") is True
    verdict.details.append("a: 1")
    found = verdict.finding("one of one", "never told")
    assert (found.ours, found.holds, found.reason, found.details) == ("one of one", True, None, ("a: 1",))


def test_one_missed_part_is_false_whatever_else_is_unsure():
    verdict = Verdict()
    verdict.needs(None, "b may be")
    verdict.needs(False, "a is so")
    found = verdict.finding("x", "because")
    assert (found.holds, found.reason) == (False, "a is so")
    assert found.details == ("because", "not certain: b may be")


def test_an_unsure_or_missing_part_is_undecided():
    verdict = Verdict()
    verdict.needs(None, "b may be")
    verdict.missing.append("c")
    found = verdict.finding("x", "because")
    assert (found.holds, found.reason, found.details) == (None, "not certain: b may be. not run: c", ())


def test_nothing_that_was_asked_is_undecided():
    found = Verdict().finding("0 of 0")
    assert (found.holds, found.reason) == (None, "none of its parts is there")


def test_of_many_parts_a_few_are_told_and_all_are_listed():
    verdict = Verdict()
    for n in range(5):
        verdict.needs(False, str(n))
    found = verdict.finding("x")
    assert found.reason == "0; 1; 2 and 2 more"
    assert found.details == ("missed: 0; 1; 2; 3; 4",)
