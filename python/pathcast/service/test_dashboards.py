"""The dashboard and the alert rules: they ask for what is served, and Prometheus understands them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

pytest.importorskip("prometheus_client", reason="missing: prometheus_client (no Python package)")
from pathcast.service.metrics import collected, forecasts, serve
from pathcast.service.test_metrics import forecast
from pathcast.service.test_watching import Far, Time, watch

HERE = Path(__file__).parents[3] / "packaging/prometheus"
RULES, TESTS, BOARD = (HERE / f"pathcast-{name}" for name in ("rules.yml", "rules-test.yml", "grafana.json"))
# Prometheus adds these itself
_ADDED = {"instance", "job"}


@pytest.fixture(scope="module")
def answer(tmp_path_factory):
    """What `/metrics` says after some rounds and a forecast."""
    time = Time()
    made, *_ = watch(time, [Far(time)], ["cable.down for 5m"])
    store = forecast(tmp_path_factory.mktemp("history") / "history.db")
    port, stop = serve("127.0.0.1", 0, lambda: [*collected(made), *forecasts(store, made.ends)])
    try:
        made.run(3)
        return build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/metrics", timeout=60).read().decode()
    finally:
        stop()


@pytest.fixture(scope="module")
def served(answer):
    """Of each series that a watch serves the names of its labels."""
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^(pathcast_\w+)(?:\{(.*)\})? ", answer, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'(\w+)="', labels))
    return found


def expressions():
    board = json.loads(BOARD.read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [of["query"]["query"] for of in board["templating"]["list"] if isinstance(of["query"], dict)]
    return asked


def test_every_series_and_label_is_one_that_is_served(served):
    texts = {RULES: RULES.read_text(), TESTS: TESTS.read_text(), BOARD: "\n".join(expressions())}
    for file, text in texts.items():
        names = set(re.findall(r"\bpathcast_\w+", text))
        assert len(names) > 7, file
        assert names <= set(served), file
        for name, labels in re.findall(r"\b(pathcast_\w+)\{([^}]*)\}", text):
            assert set(re.findall(r'(\w+)=~?"', labels)) <= served[name] | _ADDED, (file, name)
    # and the dashboard leaves nothing out
    told = set(re.findall(r"\bpathcast_\w+", texts[BOARD]))
    assert {name for name in served if not name.endswith("_created")} <= told


def test_legends_name_labels_of_their_series(served):
    count = 0
    for panel in json.loads(BOARD.read_text())["panels"]:
        for target in panel["targets"]:
            [name] = set(re.findall(r"pathcast_\w+", target["expr"]))
            named = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
            assert named <= served[name] | _ADDED, panel["title"]
            count += len(named)
    assert count > 20


def test_the_rules_words_name_labels_of_their_series(served):
    for rule in RULES.read_text().split("- alert:")[1:]:
        named = set(re.findall(r"\$labels\.(\w+)", rule))
        asked = re.findall(r"pathcast_\w+", rule.partition("annotations:")[0])
        first = served[asked[0]] if asked else set()
        assert named <= first | _ADDED, rule


def test_the_dashboard_is_whole():
    board = json.loads(BOARD.read_text())
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not cells & taken, panel["title"]
        taken |= cells
        assert panel["datasource"]["uid"] == "${datasource}"


@pytest.fixture
def promtool():
    if (found := shutil.which("promtool")) is None:
        pytest.skip("missing: promtool (Debian's prometheus)")

    def promtool(*words, text=""):
        return subprocess.run([found, *map(str, words)], input=text, capture_output=True, text=True, timeout=120)

    return promtool


def test_promtool_takes_the_rules_and_they_tell_what_is_wrong(promtool, tmp_path):
    checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # a file of them with a rule that tells nothing must fail there
    tried = promtool("test", "rules", TESTS)
    assert tried.returncode == 0, tried.stdout + tried.stderr
    for number, (was, wrong) in enumerate((("< 0.7 *", "< 0.1 *"), ("path_up == 0 and", "path_up == 2 and"))):
        other = tmp_path / str(number)
        other.mkdir()
        text = RULES.read_text()
        assert was in text
        (other / RULES.name).write_text(text.replace(was, wrong))
        shutil.copy(TESTS, other)
        assert promtool("test", "rules", other / TESTS.name).returncode != 0


def test_promtool_takes_every_expression_of_the_dashboard(promtool, tmp_path):
    rules = [
        {"record": f"panel:{number}", "expr": text.replace("$target", "x").replace("$path", "y")}
        for number, text in enumerate(expressions())
        if not text.startswith("label_values")
    ]
    file = tmp_path / "rules.json"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "dashboard", "rules": rules}]}))
    checked = promtool("check", "rules", file)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert f"{len(rules)} rules found" in checked.stdout


def test_promtool_finds_nothing_against_the_names(promtool, answer):
    """By Prometheus' own conventions, but that rates are in bits a second, as networks have them."""
    found = promtool("check", "metrics", text=answer)
    told = (found.stdout + found.stderr).splitlines()
    assert [line for line in told if not line.endswith('use base unit "bytes" instead of "bits"')] == []
    # it does look
    assert "no help text" in (of := promtool("check", "metrics", text="some_thing 1\n")).stdout + of.stderr
