import json

import pytest

import nysboost as nb
from nysboost.experiments.store import Store, digest
from nysboost.experiments.user_error import UserError

KEY = ("replicate", "reading")


def record(replicate, reading="columns"):
    return {"replicate": replicate, "reading": reading, "values": {"URB-mean": [0.1 / 3, 1e-17]}}


def test_records_come_back_exactly_and_in_the_order_of_their_key(tmp_path):
    store = Store(tmp_path, "x", {"seed": 0}, KEY)
    for i in (2, 0, 1):
        store.append(record(i))
    assert store.records() == [record(0), record(1), record(2)]


@pytest.mark.parametrize("cut", [1, 5, 60, 100])
def test_a_record_cut_in_half_is_dropped_and_the_others_are_kept(tmp_path, cut):
    store = Store(tmp_path, "x", {"seed": 0}, KEY)
    store.append(record(0))
    store.append(record(1))
    store.path.write_bytes(store.path.read_bytes()[:-cut])
    kept = store.records()
    assert kept == [record(0)] if cut > 1 else kept == [record(0), record(1)]
    store.tidy()
    store.append(record(1))
    assert store.records() == [record(0), record(1)]


def test_a_record_whose_numbers_were_changed_is_dropped(tmp_path):
    store = Store(tmp_path, "x", {"seed": 0}, KEY)
    store.append(record(0))
    store.path.write_text(store.path.read_text().replace("1e-17", "1e-16"))
    assert store.records() == []


def test_bytes_that_are_no_text_do_no_harm(tmp_path):
    store = Store(tmp_path, "x", {"seed": 0}, KEY)
    store.append(record(0))
    with store.path.open("ab") as file:
        file.write(b"\xff\xfe{\x00\n[1,2]\n3\n{}\n")
    assert store.records() == [record(0)]


def test_tidying_gives_the_same_bytes_whatever_the_order_was(tmp_path):
    stores = [Store(tmp_path / name, "x", {"seed": 0}, KEY) for name in "ab"]
    for i in (0, 1, 2):
        stores[0].append(record(i))
    for i in (2, 0, 2, 1):
        stores[1].append(record(i))
    for store in stores:
        store.tidy()
    assert stores[0].path.read_bytes() == stores[1].path.read_bytes()


def test_other_settings_have_another_file(tmp_path):
    first = Store(tmp_path, "x", {"seed": 0, "m": 10}, KEY)
    second = Store(tmp_path, "x", {"seed": 0, "m": 11}, KEY)
    again = Store(tmp_path, "x", {"m": 10, "seed": 0}, KEY)
    assert first.path != second.path
    assert first.path == again.path


def test_the_settings_are_written_beside_the_records(tmp_path):
    store = Store(tmp_path, "x", {"seed": 3}, KEY)
    written = json.loads(store.path.with_suffix(".settings.json").read_text())
    assert written == {"seed": 3, "nysboost_version": nb.__version__}


def test_a_second_run_of_the_same_settings_is_refused(tmp_path):
    first, second = (Store(tmp_path, "x", {"seed": 0}, KEY) for _ in range(2))
    with first.alone(), pytest.raises(UserError, match="Another run"), second.alone():
        pass


def test_a_folder_that_is_a_file_is_a_sentence(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        Store(tmp_path / "taken", "x", {}, KEY)


def test_the_digest_does_not_depend_on_the_order_of_keys():
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})


def test_a_store_is_found_again_by_its_settings_and_keeps_who_began_it(tmp_path, monkeypatch):
    store = Store(tmp_path, "two-words", {"seed": 3, "m": [1, 2.5]}, KEY)
    store.append(record(0))
    monkeypatch.setattr("nysboost.experiments.store.__version__", "9.9")
    (path,) = tmp_path.glob("*.settings.json")
    found = Store.found(path, KEY)
    assert (found.path, found.settings) == (store.path, store.settings)
    assert found.records() == [record(0)]
    assert json.loads(path.read_text())["nysboost_version"] == nb.__version__


@pytest.mark.parametrize("text", ["", "{", "{}", '{"seed": 4}'])
def test_settings_that_were_changed_since_are_a_sentence(tmp_path, text):
    Store(tmp_path, "x", {"seed": 3}, KEY)
    (path,) = tmp_path.glob("*.settings.json")
    path.write_text(text)
    with pytest.raises(UserError, match="its name says so"):
        Store.found(path, KEY)
