"""Results as CSV say which version made them, in a way that every reader understands."""

import pandas as pd

import nysboost as nb
from nysboost.experiments.csv_table import write_table

ROWS = [["joint", 0.25], ['a "name", with a comma', None]]


def test_a_table_comes_back_with_a_column_that_names_the_version(tmp_path):
    path = tmp_path / "table.csv"
    write_table(path, ["method", "error"], ROWS)
    read = pd.read_csv(path)
    assert list(read.columns) == ["method", "error", "software"]
    assert list(read["method"]) == [row[0] for row in ROWS]
    assert read["error"][0] == 0.25
    assert read["error"].isna()[1]
    assert set(read["software"]) == {f"NysBoost {nb.__version__}"}


def test_lines_end_alike_on_every_system_and_a_table_is_replaced_whole(tmp_path):
    path = tmp_path / "table.csv"
    write_table(path, ["method", "error"], ROWS * 50)
    write_table(path, ["method", "error"], ROWS)
    assert b"\r" not in path.read_bytes()
    assert len(pd.read_csv(path)) == len(ROWS)
