"""Alerts of lines that are down, were told before a watch began, or whose paths nobody measures any more."""

from __future__ import annotations

import pytest

from pathcast.history.records import Event
from pathcast.service.test_watching import HOUR_S, Far, Time, path, watch


@pytest.mark.parametrize("named", [(), ("cable", "dsl")])
@pytest.mark.parametrize("only", [["path2"], ["dsl"], ["cable", "path2"]])
def test_a_line_that_is_unplugged_is_told_whatever_paths_calls_it(only, named):
    time = Time()
    far = Far(time, lines={"cable": lambda _: 17e6, "dsl": lambda s: "gone" if s > HOUR_S else 9e6}, named=named)
    made, told, _ = watch(time, [far], ["dsl.down for 10m", "path2.down for 10m"], 500_000_000, only=only)
    made.run(20)
    assert [(of["state"], of["path"], "eth1 is down" in of["text"]) for of in told] == [("firing", "dsl", True)] * 2
    assert far.sessions == 1


@pytest.mark.parametrize(("only", "down"), [([], ["cable", "lte"]), (["dsl"], []), (["lte", "path1"], ["lte"])])
def test_an_alert_of_all_knows_named_lines_that_are_down_from_the_beginning(only, down):
    time = Time()
    end = Far(time, lines={"dsl": lambda _: 9e6}, named=("cable", "dsl", "lte"))
    made, told, _ = watch(time, [end], ["*.down for 10m"], only=only)
    made.run(5)
    assert sorted(of["path"] for of in told) == down
    # away from the beginning, it is all of them
    end = Far(time, away=(0, 9e9), named=("dsl", "lte"))
    made, told, _ = watch(time, [end], ["*.down for 10m"])
    made.run(5)
    assert sorted(of["path"] for of in told) == ["dsl", "lte"]


def test_a_line_whose_paths_are_steered_is_not_down():
    time = Time()
    end = Far(time, lines={"left": lambda _: 9e6, "right": lambda _: 9e6}, named=("dsl",))
    end.over = {"dsl"}
    made, told, _ = watch(time, [end], ["*.down", "dsl.down"])
    made.run(3)
    assert told == []


def test_an_alert_that_fires_goes_on_where_its_path_is_not_there_at_the_beginning():
    time = Time()
    end = Far(time, lines={"dsl": lambda _: 9e6})
    made, told, _ = watch(time, [end], ["*.down"], alerted=[fires("path2", "*.down")], every_s=HOUR_S)
    made.run(2)
    assert told == []
    assert [alarm.firing for alarm in made.known["far"]["path2"].alarms] == [True]
    made.run(7 * 24 + 2)
    assert [(of["state"], of["path"]) for of in told] == [("over", "path2")]


def test_the_history_tells_what_is_usual_and_what_was_told():
    time = Time()
    end = Far(time, lines={"cable": lambda _: 4e6})
    end.before = {"cable": [(300.0 * (20 - n), path("cable", 17e6)) for n in range(20)]}
    made, told, _ = watch(time, [end], ["cable.available < 70%"])
    made.run(1)
    assert [of["state"] for of in told] == ["firing"]
    about = told[0]
    after = [Event("e1", about["at"], 60.0, "alert", about["text"], None, "host", "far", about)]
    made, told, _ = watch(time, [end], ["cable.available < 70%"], alerted=after)
    made.run(3)
    assert told == []
    end.of = {"cable": lambda _: 17e6}
    made.run(1)
    assert [of["state"] for of in told] == ["over"]


def fires(path, alert, line_id=None):
    """An alert that was told before, and is not over."""
    about = {"state": "firing", "alert": alert, "target": "far", "path": path, "lasted_s": 60.0, "usual": None}
    return Event("e1", "2026-01-01T00:00:00Z", 60.0, "alert", f"{path}: down", line_id, "host", "far", about)


@pytest.mark.parametrize("asked", [[], ["cable.down for 5m"]])
def test_an_alert_that_is_no_longer_asked_for_ends(asked):
    time = Time()
    far = Far(time)
    made, told, _ = watch(time, [far], asked, alerted=[fires("cable", "cable.down")])
    made.run(2)
    [one] = far.kept
    assert told == [one]
    assert (one["state"], one["alert"], one["target"], one["path"]) == ("over", "cable.down", "far", "cable")
    assert one["text"] == "cable: `cable.down` ends here: it is no longer asked for"
    assert 120 <= one["lasted_s"] < 200


@pytest.mark.parametrize(
    ("before", "line_id", "renamed"),
    [("path1", None, True), ("kabel", "id-cable", True), ("kabel", "id-dsl", False)],
)
def test_an_alert_of_a_path_that_has_another_name_now_ends_and_goes_on_by_that(before, line_id, renamed):
    time = Time()
    far = Far(time, lines={"cable": lambda _: None}, named=("cable",))
    made, told, _ = watch(time, [far], ["*.down"], alerted=[fires(before, "*.down", line_id)])
    made.run(2)
    found = [(of["state"], of["path"]) for of in told]
    assert found == [("firing", "cable"), *([("over", before)] if renamed else [])]


def test_an_alert_of_a_path_that_is_not_measured_any_more_ends():
    time = Time()
    made, told, _ = watch(time, [Far(time)], ["*.down"], alerted=[fires("dsl", "*.down")], only=["cable"])
    made.run(1)
    assert [(of["state"], of["path"]) for of in told] == [("over", "dsl")]


def test_a_path_that_is_gone_for_a_week_has_no_alert_that_fires():
    time = Time()
    far = Far(time, lines={"cable": lambda _: None, "dsl": lambda _: 9e6})
    made, told, _ = watch(time, [far], ["*.down"], every_s=HOUR_S)
    made.run(2)
    del far.of["cable"]
    made.run(7 * 24 + 2)
    assert [(of["state"], of["path"]) for of in told] == [("firing", "cable"), ("over", "cable")]
    assert told[1]["text"].endswith("there is no such path any more")
    assert set(made.known["far"]) == {"dsl"}
