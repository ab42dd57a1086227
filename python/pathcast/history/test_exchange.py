"""Out as Parquet and CSV and in again, the same to the last bit; what is no such thing is refused and named."""

from __future__ import annotations

import errno
import json
import os
from dataclasses import replace

import pytest

from pathcast.errors import Exit, PathcastError
from pathcast.history import exchange
from pathcast.history import place as places
from pathcast.history.exchange import FORMATS, export, import_
from pathcast.history.store import Store
from pathcast.history.tables import ORDER
from pathcast.history.testing import KEY1, forecast, measure, origin, transfer


def everything(store: Store) -> dict[str, list]:
    with store.reading() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(table.select().order_by(*table.primary_key.columns))]
            for table in ORDER
        }


@pytest.fixture
def filled(journal, at):
    measure(journal, 1 / 3 * 1e7, ("path1", "path2"), note='quotes ", commas, and\nlines; ünïcode')
    at.passes(5)
    forecast(journal, ("path1", "path2"))
    transfer(journal, ("path1", "path2"))
    at.passes(86_400)
    act = journal.act(origin())
    act.event("", "", KEY1, about=[1, None, {"x": ""}])
    act.event("test", "a\rb")
    journal.add(act)
    measure(journal)
    return journal


@pytest.mark.parametrize("format", FORMATS)
def test_out_and_in_is_the_same(filled, format, tmp_path, postgres):
    rows = export(filled.store, tmp_path / "out", format)
    assert rows["measurement"] == 6
    there = everything(filled.store)
    # into the other kind of database
    url = str(tmp_path / "new.db") if filled.place.file is None else postgres.database("imported")
    copy = Store(places.parse(url))
    assert import_(copy, tmp_path / "out") == rows
    assert everything(copy) == there
    assert sum(import_(copy, tmp_path / "out").values()) == 0
    copy.close()


@pytest.mark.parametrize("format", FORMATS)
def test_only_what_is_newer(filled, format, tmp_path, at):
    rows = export(filled.store, tmp_path / "out", format, at().utc_us - 1_000_000)
    assert (rows["measurement"], rows["transfer"], rows["transfer_path"], rows["forecast_path"]) == (2, 0, 0, 0)
    copy = Store(places.parse(str(tmp_path / "new.db")))
    import_(copy, tmp_path / "out")
    copy.close()


def test_other_programs_read_it(filled, tmp_path):
    import pandas

    export(filled.store, tmp_path / "p", "parquet")
    export(filled.store, tmp_path / "c", "csv")
    for frame in (
        pandas.read_parquet(tmp_path / "p/measurement.parquet"),
        pandas.read_csv(tmp_path / "c/measurement.csv"),
    ):
        assert set(frame["available_bps"]) == {1 / 3 * 1e7, 2 / 3 * 1e7, 20e6, 40e6}
        assert str(pandas.to_datetime(frame["at"]).dt.tz) == "UTC"
        assert json.loads(frame.sort_values("at")["circumstances"].iloc[0])["note"].startswith("quotes")


def refused(store: Store, directory) -> str:
    before = everything(store)
    with pytest.raises(PathcastError) as error:
        import_(store, directory)
    assert error.value.exit == Exit.USAGE
    assert everything(store) == before  # all or nothing
    return error.value.message


def replaced(file, before: str, after: str) -> None:
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))


def test_what_is_no_exported_history_is_refused_whole(filled, tmp_path):
    out = tmp_path / "out"
    export(filled.store, out, "csv")
    store = Store(places.parse(str(tmp_path / "new.db")))
    assert "no exported history" in refused(store, tmp_path / "nowhere")
    for file, before, after, words in (
        ("measurement.csv", ",2.0,", ",two,", "measurement.csv, row 1: `elapsed_s` is `two`, not float"),
        ("measurement.csv", ",2.0,", ",inf,", "`elapsed_s` is `inf`"),
        ("measurement.csv", ",2.0,", ",,", "`elapsed_s` is missing"),
        ("transfer.csv", "10000000", "1" + 30 * "0", "not int"),
        ("measurement.csv", "False", "perhaps", "not bool"),
        ("event.csv", '"[1, null', '"[1, NaN', "not json"),
        ("history.json", '"measurement": 6', '"measurement": 7', "has 6 rows"),
        ("history.json", '"version": "0001"', '"version": "0700"', "does not know"),
        ("history.json", '"csv"', '"xml"', "is not what"),
        ("history.json", "{", "[", "is not what"),
        ("transfer_path.csv", filled_id(out), "0" * 32, "cannot hold"),
    ):
        text = (out / file).read_text()
        replaced(out / file, before, after)
        assert words in refused(store, out)
        (out / file).write_text(text)
    (out / "event.csv").unlink()
    assert "event.csv" in refused(store, out)
    store.close()


def filled_id(out) -> str:
    return (out / "transfer_path.csv").read_text().splitlines()[1].split(",")[0]


def test_a_broken_parquet_file_is_refused(filled, tmp_path):
    export(filled.store, tmp_path / "out", "parquet")
    (tmp_path / "out/event.parquet").write_bytes(b"PAR1 no")
    store = Store(places.parse(str(tmp_path / "new.db")))
    assert "cannot be read" in refused(store, tmp_path / "out")
    store.close()


def test_lines_of_json_are_whole_documents(filled, tmp_path):
    out = tmp_path / "out"
    export(filled.store, out, "jsonl")
    [event] = [row for line in (out / "event.jsonl").read_text().splitlines() if (row := json.loads(line))["path"]]
    assert (event["about"], event["text"], event["at"][-1]) == ([1, None, {"x": ""}], "", "Z")
    measured = [json.loads(line) for line in (out / "measurement.jsonl").read_text().splitlines()]
    assert {row["knowledge"]["available_bps"]["value"] - row["available_bps"] for row in measured} == {0}
    store = Store(places.parse(str(tmp_path / "new.db")))
    for before, after, words in (
        ('"about": [1, ', '"about": [1 ', "event.jsonl` cannot be read"),
        ('"about": [1, ', '"about": [NaN, ', "not json"),
        (f'"at_us": {event["at_us"]}', '"at_us": "soon"', "event.jsonl, row 1: `at_us` is `soon`, not int"),
        (json.dumps(event), "[]", "a line is no JSON object"),
    ):
        text = (out / "event.jsonl").read_text()
        replaced(out / "event.jsonl", before, after)
        assert words in refused(store, out)
        (out / "event.jsonl").write_text(text)
    store.close()


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_an_empty_text_is_not_none(journal, format, tmp_path):
    act = journal.act(replace(origin(), target="", command=None))
    act.event("test", "")
    journal.add(act)
    export(journal.store, tmp_path / "out", format)
    copy = Store(places.parse(str(tmp_path / "new.db")))
    import_(copy, tmp_path / "out")
    assert everything(copy) == everything(journal.store)
    copy.close()


def test_the_lines_of_csv_end_as_lines_do(filled, tmp_path):
    export(filled.store, tmp_path / "out", "csv")
    first = (tmp_path / "out/measurement.csv").read_bytes().partition(b"\n")[0]
    assert first.endswith(b",at")


def test_nothing_is_written_over(filled, tmp_path):
    (tmp_path / "mine").write_text("dear")
    with pytest.raises(PathcastError, match="not empty"):
        export(filled.store, tmp_path, "csv")
    with pytest.raises(PathcastError, match="xml"):
        export(filled.store, tmp_path / "out", "xml")
    with pytest.raises(PathcastError, match="cannot write to"):
        export(filled.store, tmp_path / "mine/out", "csv")


@pytest.mark.parametrize(("number", "exit"), [(errno.ENOSPC, Exit.RUNTIME), (errno.EROFS, Exit.USAGE)])
def test_a_directory_that_takes_nothing_is_named_and_not_the_history(filled, tmp_path, monkeypatch, number, exit):
    def fails(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(exchange, "_line", fails)
    with pytest.raises(PathcastError) as error:
        export(filled.store, tmp_path / "out", "jsonl")
    assert error.value.message == f"cannot write to `{tmp_path}/out`: {os.strerror(number)}"
    assert "prune" not in (error.value.hint or "")
    assert error.value.exit == exit
