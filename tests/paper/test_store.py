import json

import pytest

import nysboost as nb
from nysboost.paper.runner import Store
from nysboost.user_error import UserError


def record(replicate, reading="columns"):
    return {"replicate": replicate, "reading": reading, "values": {"URB-mean": [0.1 / 3, 1e-17]}}


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path, "two-words", {"seed": 3, "m": [1, 2.5]})


def test_records_come_back_exactly_and_tidying_gives_the_same_bytes_in_any_order(tmp_path):
    texts = []
    for name, order in (("a", (0, 1, 2)), ("b", (2, 0, 2, 1))):
        store = Store(tmp_path / name, "x", {"seed": 0})
        for i in order:
            store.append(record(i))
        assert list(store.read().values()) == [record(0), record(1), record(2)]
        store.tidy()
        texts.append(store.path.read_bytes())
    assert texts[0] == texts[1]


@pytest.mark.parametrize("cut", [5, 60, 100])
def test_a_record_cut_in_half_is_dropped_and_made_again(store, cut):
    store.append(record(0))
    store.append(record(1))
    store.path.write_bytes(store.path.read_bytes()[:-cut])
    assert list(store.read()) == [(0, "columns")]
    store.tidy()
    store.append(record(1))
    assert list(store.read().values()) == [record(0), record(1)]


def test_changed_numbers_and_bytes_that_are_no_record_are_dropped(store):
    store.append(record(0))
    store.path.write_text(store.path.read_text().replace("1e-17", "1e-16"))
    store.append(record(1))
    with store.path.open("ab") as file:
        file.write(b"\xff\xfe{\x00\n[1,2]\n3\n{}\n")
    assert list(store.read()) == [(1, "columns")]


def test_a_second_run_of_the_same_settings_is_refused(store):
    second = Store(store.path.parent, "two-words", {"m": [1, 2.5], "seed": 3})
    with store.lock(), pytest.raises(UserError, match="Another run"), second.lock():
        pass


def test_a_folder_that_is_a_file_is_a_sentence(tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="cannot be written"):
        Store(tmp_path / "taken", "x", {})


def test_a_store_is_found_again_by_its_settings_and_says_which_version_began_it(store):
    store.append(record(0))
    path = store.path.with_suffix(".settings.json")
    assert json.loads(path.read_text()) == store.settings | {"nysboost_version": nb.__version__}
    found = Store.open(path)
    assert (found.path, found.settings) == (store.path, store.settings)
    for text in ("", "{", "{}", '{"seed": 4}'):
        path.write_text(text)
        with pytest.raises(UserError, match="its name says so"):
            Store.open(path)
