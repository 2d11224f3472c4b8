"""One model, every door: what 0.2 got wrong without a word."""

import io
import sys

import dask
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_matrix

import nysboost as nb
from nysboost import cli
from nysboost.tables.target_means import target_means

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 3))
Y = np.sin(2 * X[:, 0]) + X[:, 1]
LABELS = (Y > 0).astype(int)


USUAL = {"n_components": 20, "landmarks": "uniform", "random_state": 0, "verbose": 0}


def regressor(**how):
    return nb.NystroemRegressor(**(USUAL | how))


# Files


def houses(n=300):
    frame = pd.DataFrame(
        {
            "size": RNG.uniform(20, 200, n).round(1),
            "town": RNG.choice(["Ulm", "Köln", "7"], n),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(RNG.integers(0, 900, n), "D"),
            "garden": RNG.random(n) < 0.5,
        }
    )
    days = (frame["day"] - frame["day"].min()).dt.days
    frame["price"] = frame["size"] / 50 + (frame["town"] == "Ulm") + days / 300 + frame["garden"]
    return frame


FIT = ("--target", "price", "--components", "40", "--out", "m", "--no-test", "--force")


def test_a_part_of_a_file_has_the_predictions_of_the_whole(tmp_path, monkeypatch, command):
    """In a few rows alone a town called 7 looks like a number, and a gap like a column of none."""
    monkeypatch.chdir(tmp_path)
    frame = houses()
    frame.loc[5, "size"] = np.nan
    frame.to_csv("t.csv", index=False)
    assert command("fit", "t.csv", *FIT)[0] == 0
    assert command("predict", "m", "t.csv", "--out", "whole.csv")[0] == 0
    whole = pd.read_csv("whole.csv")["prediction"]
    for rows in ([5], list(np.flatnonzero(frame["town"] == "7")[:3]), [1, 2, 3]):
        part = frame.iloc[rows][["garden", "town", "day", "size"]]
        for name, write in (("p.csv", part.to_csv), ("p.parquet", part.to_parquet)):
            write(name, index=False)
            assert command("predict", "m", name, "--out", "o.csv", "--force")[0] == 0
            found = pd.read_csv("o.csv")["prediction"]
            np.testing.assert_allclose(found, whole[rows], rtol=1e-9)


def test_of_many_values_one_that_is_not_known_is_neither_a_gap_nor_another():
    street = np.array([f"street {i}" for i in RNG.integers(60, size=400)], dtype=object)
    street[::4] = None
    frame, y = pd.DataFrame({"street": street}), np.where(np.arange(400) % 4 == 0, 8.0, 0.0)
    model = regressor(n_components=60).fit(frame, y)
    gap, unknown = model.predict(pd.DataFrame({"street": [None, "elsewhere"]}, dtype=object))
    assert abs(gap - 8) < 1
    assert abs(unknown - y.mean()) < 2
    both = nb.NystroemClassifier(**USUAL | {"n_components": 60})
    assert both.fit(frame, y > 4).score(frame, y > 4) == 1


def test_means_of_values_are_their_own_without_noise_and_else_drawn_towards_that_of_all():
    values, y = np.repeat(np.arange(50), 8), np.random.default_rng(0).normal(size=(400, 1))
    exact = target_means(values, 50, values[:, None] + 0.0, None)[:, 0]
    np.testing.assert_allclose(exact, [*range(50), 24.5, 24.5])
    y += values[:, None] / 50
    groups = y.reshape(50, 8)
    raw, noise = groups.mean(axis=1) - y.mean(), groups.var(axis=1).mean()
    among = raw.var() - noise * 50 / 400  # less than what noise alone gives to 50 means of eight
    shrunk = y.mean() + raw * 8 / (8 + noise / among)
    np.testing.assert_allclose(target_means(values, 50, y, None)[:50, 0], shrunk)


# Weights


@pytest.mark.parametrize("n", [200, 4000])
@pytest.mark.parametrize("scale", [1e-3, 1000.0])
def test_the_scale_of_weights_does_not_matter(scale, n):
    rows = np.random.default_rng(1).normal(size=(n, 3))
    y, weights = np.sin(rows[:, 0]), np.random.default_rng(2).integers(1, 4, n)
    plain = regressor().fit(rows, y, weights).predict(X)
    np.testing.assert_allclose(regressor().fit(rows, y, scale * weights).predict(X), plain)
    same = regressor().fit(rows, y, np.full(n, scale)).predict(X)
    np.testing.assert_allclose(same, regressor().fit(rows, y).predict(X), atol=1e-9)


@pytest.mark.parametrize("loss", ["squared", "log", "hinge"])
def test_rows_of_weight_zero_change_nothing(loss):
    weights = np.r_[np.zeros(10), np.ones(190)]
    far = np.r_[np.full(10, 1e6), Y[10:]]
    found = regressor().fit(X, far, weights).predict(X)
    np.testing.assert_array_equal(found, regressor().fit(X[10:], Y[10:]).predict(X))
    labels = np.r_[np.full(10, 7), LABELS[10:]]
    model = nb.NystroemClassifier(loss=loss, **USUAL).fit(X, labels, weights)
    other = nb.NystroemClassifier(loss=loss, **USUAL).fit(X[10:], LABELS[10:])
    np.testing.assert_array_equal(model.predict_proba(X), other.predict_proba(X))


def test_iterators_honour_weights_and_names():
    frame, weights = pd.DataFrame(X, columns=list("abc")), RNG.random(200) + 0.1
    expected = regressor().fit(frame, Y, weights).predict(frame)
    halves = (slice(0, 100), slice(100, 200))
    beside = regressor().fit(iter([(frame[h], Y[h]) for h in halves]), sample_weight=weights)
    inside = regressor().fit(iter([(frame[h], Y[h], weights[h]) for h in halves]))
    other = (frame[100:][list("cab")], Y[100:], weights[100:])
    turned = regressor().fit(iter([(frame[:100], Y[:100], weights[:100]), other]))
    for model in (beside, inside, turned):
        np.testing.assert_allclose(model.predict(frame), expected, atol=1e-9)
        assert list(model.feature_names_in_) == list("abc")


# Stores and sparse tables after gaps and categories


@pytest.mark.parametrize("what", ["gaps", "categories"])
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_a_model_of_gaps_or_categories_serves_every_store(what, tmp_path):
    floor = RNG.integers(0, 5, 200)
    fitted = gaps = np.where(RNG.random(X.shape) < 0.1, np.nan, X)
    if what == "categories":
        fitted = pd.DataFrame({"floor": pd.Categorical(floor), "x": X[:, 0]})
    rows = gaps if what == "gaps" else fitted.astype(float).to_numpy()
    model = regressor().fit(fitted, Y + floor)
    expected, filled = model.predict(fitted), np.nan_to_num(rows)
    np.save(tmp_path / "X.npy", rows)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    with h5py.File(tmp_path / "X.h5", "w") as file:
        file["X"] = rows
        for table in (rows, mapped, file["X"], iter([rows[:50], rows[50:]]), rows.tolist()):
            np.testing.assert_allclose(model.predict(table), expected, atol=1e-9)
        for table in (mapped, file["X"]) if what == "gaps" else ():
            nb.save(regressor().fit(table, Y + floor), tmp_path / "m")
            again = nb.load(tmp_path / "m").predict(rows)
            np.testing.assert_allclose(again, expected, atol=1e-9)
    np.testing.assert_allclose(model.predict(csr_matrix(filled)), model.predict(filled), atol=1e-9)


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
def test_a_model_of_rows_without_gaps_fills_those_of_every_table(tmp_path):
    """A gap becomes the median of its column in fitting, whatever was fitted and is asked."""
    frame, gaps = pd.DataFrame(X, columns=list("abc")), X.copy()
    gaps[3, 1] = gaps[7, 0] = np.nan
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "gaps.npy", gaps)
    mapped = [np.load(tmp_path / name, mmap_mode="r") for name in ("X.npy", "gaps.npy")]
    lazy = [da.from_array(rows, chunks=(50, 3)) for rows in (X, gaps)]
    fitted = (X, frame, csr_matrix(X), mapped[0], lazy[0], dd.from_pandas(frame, npartitions=2))
    served = (gaps.tolist(), mapped[1], lazy[1], dd.from_pandas(frame + 0 * gaps, npartitions=2))
    names = pd.DataFrame(gaps, columns=list("abc"))
    expected = regressor().fit(frame, Y).predict(np.where(np.isnan(gaps), np.median(X, 0), gaps))
    for table in fitted:
        model, blocks = regressor().fit(table, Y), iter([gaps[:5], gaps[5:]])
        for rows in (names, pl.from_pandas(names), gaps, csr_matrix(gaps), *served, blocks):
            np.testing.assert_allclose(model.predict(rows), expected, atol=1e-6)
    strict = regressor(missing="raise").fit(X, Y)
    with pytest.raises(ValueError, match="X contains NaN, first at row 3"):
        strict.predict(gaps)


@pytest.mark.parametrize("verb", ["info", "predict", "transform"])
def test_a_model_that_is_not_fitted_is_a_sentence(verb, tmp_path, command):
    nb.save(nb.Nystroem() if verb == "transform" else regressor(), tmp_path / "m")
    (tmp_path / "t.csv").write_text("a,b\n1,2\n3,4\n")
    rest = [] if verb == "info" else [str(tmp_path / "t.csv"), "--out", str(tmp_path / "o.csv")]
    status, said, complained = command(verb, str(tmp_path / "m"), *rest)
    assert status == 5
    assert "not fitted yet" in said + complained


def test_sparse_tables_of_three_axes_and_closed_stores_are_sentences(tmp_path):
    with pytest.raises(ValueError, match="a table of shape"):
        regressor().fit(coo_array(np.ones((200, 3, 2))), Y)
    with h5py.File(tmp_path / "X.h5", "w") as file:
        closed = file.create_dataset("X", data=X)
    for call in (lambda: regressor().fit(closed, Y), lambda: regressor().fit(X, Y).predict(closed)):
        with pytest.raises(ValueError, match="whose file is closed"):
            call()


# Numbers out of the usual range


@pytest.mark.parametrize("scale", [1e-300, 1e200, np.array([1e-300, 1.0, 1e150])])
def test_the_scale_of_columns_does_not_matter(scale):
    found = regressor().fit(X * scale, Y).predict(X * scale)
    np.testing.assert_allclose(found, regressor().fit(X, Y).predict(X), atol=1e-6)


# Sentences


def test_what_a_method_cannot_use_is_a_sentence():
    with pytest.raises(ValueError, match="'joint' does not use y"):
        nb.approximate(X, "joint", y=Y, n_components=5)
    with pytest.raises(ValueError, match="is for a matrix of kernel values"):
        regressor(kernel="precomputed").fit(X, Y)
    with pytest.raises(TypeError, match="None was given"):
        nb.save(None, "nowhere.nysboost")


def test_a_metric_is_given_as_the_docs_write_it():
    A = RNG.normal(size=(3, 2))
    given, made = nb.Matern(nu=1.5, metric=A), nb.Matern(nu=1.5, metric=nb.Metric(A))
    np.testing.assert_array_equal(given(X[:5], X), made(X[:5], X))


def test_two_samples_are_matched_by_names():
    frame = pd.DataFrame(X, columns=list("abc")).assign(c=lambda f: 10 * f["c"])
    turned = frame[100:][list("cba")]
    found = nb.mmd_test(frame[:100], turned, random_state=0)
    assert found == nb.mmd_test(frame[:100], frame[100:], random_state=0)
    assert found.pvalue > 0.01


def test_a_terminal_that_knows_ascii_alone_gets_its_table(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written := io.BytesIO(), "ascii"))
    cli.main(["list"])
    sys.stdout.flush()
    assert b"matern" in written.getvalue()


# The property


CELLS = {
    "number": st.one_of(st.none(), st.floats(-1e6, 1e6, width=32)),
    "whole": st.integers(-1000, 1000),
    "text": st.one_of(st.none(), st.sampled_from(["a", "b c", "Ü", "x,y", 'q"q'])),
    "truth": st.booleans(),
    "day": st.one_of(st.none(), st.dates(pd.Timestamp("1990-01-01").date())),
}


@st.composite
def frames(draw):
    n = draw(st.integers(12, 30))
    chosen = draw(st.permutations(sorted(CELLS)))[: draw(st.integers(1, 5))]
    return {name: draw(st.lists(CELLS[name], min_size=n, max_size=n)) for name in chosen}


TYPES = {"number": pa.float64(), "whole": pa.int64(), "text": pa.string(), "truth": pa.bool_()}


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(columns=frames(), seed=st.integers(0, 99))
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_frame_has_the_same_predictions_by_every_door(columns, seed, tmp_path_factory):
    table = pa.table({k: pa.array(v, TYPES.get(k, pa.date32())) for k, v in columns.items()})
    assume(any(column.null_count < len(column) for column in table.columns))
    n, rng, folder = table.num_rows, np.random.default_rng(seed), tmp_path_factory.mktemp("doors")
    model = regressor(n_components=6).fit(table, rng.normal(size=n))
    expected = model.predict(table)
    frame, turned = table.to_pandas(), list(rng.permutation(table.column_names))
    doors = {
        "pandas": frame[turned],
        "nullable": frame[turned].convert_dtypes(),
        "on Arrow": table.to_pandas(types_mapper=pd.ArrowDtype)[turned],
        "polars": pl.from_arrow(table).select(turned),
        "lazy": pl.from_arrow(table).lazy().select(turned),
        "Arrow": table.select(turned),
        "parts": iter([frame[turned][:5], frame[5:]]),
    }
    for name, door in doors.items():
        np.testing.assert_allclose(model.predict(door), expected, atol=1e-8, err_msg=name)
    with dask.config.set(scheduler="synchronous"):
        lazy = model.predict(dd.from_pandas(frame[turned], npartitions=2)).compute()
    np.testing.assert_allclose(lazy, expected, atol=1e-8)
    from nysboost.tables.files import join_tables, open_table

    for rows in (range(n), sorted(rng.permutation(n)[:3])):
        part = frame[turned].iloc[list(rows)]
        part.to_csv(folder / "t.csv", index=False)
        part.to_parquet(folder / "t.parquet", index=False)
        for name in ("t.csv", "t.parquet"):
            file = open_table(folder / name, schema=model.schema_)
            found = model.predict(join_tables(list(file.batches())))
            np.testing.assert_allclose(found, expected[list(rows)], atol=1e-8, err_msg=name)
