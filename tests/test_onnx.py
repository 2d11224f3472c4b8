"""ONNX files give the predictions of their models, in ONNX Runtime and without NysBoost."""

import subprocess
import sys
from decimal import Decimal

import numpy as np
import onnxruntime
import pandas as pd
import pytest
from market import points

import nysboost as nb

SETTINGS = {"kernel": "matern", "metric": "each", "random_state": 0, "verbose": 0}


def table(n=240):
    """Numbers with gaps, truth values, a category, one with many values, and a date."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.normal(size=n),
            "age": np.where(rng.uniform(size=n) < 0.1, np.nan, rng.uniform(20, 80, size=n)),
            "member": rng.uniform(size=n) < 0.5,
            "colour": rng.choice(["red", "green", None], size=n),
            "street": [f"street {i}" for i in rng.integers(60, size=n)],
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(900, size=n), "D"),
        }
    )
    y = frame["size"] ** 2 + (frame["colour"] == "red") + rng.normal(size=n) / 10
    return frame, y.to_numpy()


def feeds(X):
    """Return the inputs of a session: one array, or a column each."""
    if isinstance(X, np.ndarray):
        return {"X": X.astype(np.float64)}
    made = {}
    for name in X.columns:
        column = X[name]
        if str(column.dtype).startswith("datetime"):
            values = (column - pd.Timestamp("1970-01-01")).dt.total_seconds()
        else:
            numeric = pd.api.types.is_numeric_dtype(column)
            values = column if numeric else column.astype(object).where(column.notna(), "")
        kind = object if values.dtype == object else np.float64
        made[name] = values.to_numpy(kind)[:, None]
    return made


def run(model, X, path):
    nb.to_onnx(model, path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    wanted = {one.name for one in session.get_inputs()}
    inputs = {name: values for name, values in feeds(X).items() if name in wanted}
    assert set(inputs) == wanted
    outputs = [one.name for one in session.get_outputs()]
    return dict(zip(outputs, session.run(None, inputs), strict=True))


def assert_same(found, expected):
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-5 * np.ptp(expected)


KERNELS = [
    "rbf", "laplacian", "poly", "linear", nb.Matern(nu=0.5, sigma=2.0), nb.Matern(nu=1.5),
    nb.Matern(nu=2.5, metric=nb.Metric([1.0, 2.0, 0.5])),
    nb.Gaussian(metric=nb.Metric(np.ones((3, 2)))), nb.Laplacian(metric=nb.Metric(0.5)),
    nb.Polynomial(degree=2, gamma=1, coef0=1),
]  # fmt: skip
TRANSFORMERS = [
    nb.KernelPCA(2, n_landmarks=20, random_state=0),
    *(
        nb.Nystroem(kernel, method=method, n_components=20, random_state=0)
        for kernel in KERNELS
        for method in ("joint", "ensemble-ridge")
    ),
]


@pytest.mark.parametrize("model", TRANSFORMERS, ids=str)
def test_transformers(model, tmp_path):
    found = run(model.fit(points()), points(9, seed=1), tmp_path / "m")["features"]
    assert_same(found, model.transform(points(9, seed=1)))


@pytest.mark.filterwarnings("ignore:In a kernel dates are seconds")
@pytest.mark.parametrize("kernel", [nb.Gaussian(sigma=0.7), nb.Matern(nu=0.5)], ids=str)
def test_dates_in_seconds_keep_their_digits(kernel, tmp_path):
    """Seconds over thirty years, with others a few seconds later, in which the kernel differs."""
    rng = np.random.default_rng(0)
    seconds = rng.integers(0, 10, 200) * 10**8 + rng.integers(0, 5, 200)
    X = pd.DataFrame({"at": pd.to_datetime(seconds, unit="s"), "x": rng.normal(size=200)})
    for table in (X, X[["at"]]):
        model = nb.Nystroem(kernel, n_components=20, random_state=0).fit(table)
        found = run(model, table, tmp_path / "m")["features"]
        np.testing.assert_allclose(found, model.transform(table), atol=1e-10)


@pytest.mark.parametrize(
    "change",
    [{"local": False}, {"local": True}, {"local": 40}, {"scale": "quantile"}, {"loss": "hinge"}],
    ids=str,
)
def test_learners_on_numbers(change, tmp_path):
    X, new = points(), points(50, seed=1)
    y = np.sin(2 * X[:, 0]) + X[:, 1]
    settings, few = SETTINGS | {"n_components": 8} | change, change != {"local": False}
    targets = [] if "loss" in change else [y, np.stack([y, X[:, 2]], axis=1)][few:]
    for target in targets:
        model = nb.NystroemRegressor(**settings).fit(X, target)
        assert_same(run(model, new, tmp_path / "m")["prediction"], model.predict(new))
    words = np.array(["no", "yes"])[(y > 0).astype(int)]
    for labels in [y > 0, words, 2.0 * (y > 0), np.digitize(y, [-1, 1])][3 * few :]:
        model = nb.NystroemClassifier(**settings).fit(X, labels)
        found = run(model, new, tmp_path / "m")
        assert_same(found["probabilities"], model.predict_proba(new))
        expected = model.predict(new)
        assert (found["label"] == expected).all()


@pytest.mark.parametrize("local", [False, 100])
def test_learners_on_tables_with_gaps_and_new_categories(local, tmp_path):
    X, y = table()
    new = X.iloc[:60].copy()
    new.loc[3, "colour"], new.loc[4, "street"], new.loc[5, "age"] = "blue", None, np.nan
    model = nb.NystroemRegressor(16, local=local, **SETTINGS).fit(X, y)
    assert_same(run(model, new, tmp_path / "m")["prediction"], model.predict(new))
    model = nb.NystroemClassifier(16, local=local, **SETTINGS).fit(X, y > 1)
    assert_same(run(model, new, tmp_path / "m")["probabilities"], model.predict_proba(new))


def test_gaps_in_an_array(tmp_path):
    X = points()
    X[::7, 1] = np.nan
    for fitted in (X, np.nan_to_num(X)):
        model = nb.NystroemRegressor(8, **SETTINGS).fit(fitted, X[:, 0])
        assert_same(run(model, X[:30], tmp_path / "m")["prediction"], model.predict(X[:30]))


def test_a_file_is_opened_without_nysboost(tmp_path):
    nb.to_onnx(nb.Nystroem(n_components=5, random_state=0).fit(points()), tmp_path / "m.onnx")
    program = f"""
import sys, numpy, onnxruntime
session = onnxruntime.InferenceSession({str(tmp_path / "m.onnx")!r})
print(session.run(None, {{"X": numpy.zeros((2, 3))}})[0].shape, "nysboost" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert told.stdout.strip() == "(2, 5) False"


@pytest.mark.parametrize(
    ("model", "X", "sentence"),
    [
        (nb.Nystroem(nb.Anova(), n_components=5), points(30), "cannot be exported to ONNX"),
        (nb.Nystroem("chi2", n_components=5), abs(points(30)), "cannot be exported to ONNX"),
        (
            nb.Nystroem(method="random-fourier", n_components=6),
            points(30),
            "needs features that are kernel values",
        ),
        (
            nb.Nystroem("precomputed", n_components=5),
            np.eye(30),
            "needs features that are kernel values",
        ),
        (nb.SpectralClustering(2, n_landmarks=10), points(30), "not SpectralClustering"),
    ],
    ids=lambda part: getattr(part, "kernel", ""),
)
def test_what_has_no_form_in_onnx_gets_a_sentence(model, X, sentence, tmp_path):
    fitted = model.set_params(random_state=0).fit(X)
    with pytest.raises(TypeError, match=sentence):
        nb.to_onnx(fitted, tmp_path / "m.onnx")
    assert not (tmp_path / "m.onnx").exists()


def test_labels_of_64_bits_keep_their_value(tmp_path):
    X = points()
    for big in (np.uint64(2**63), np.uint64(2**62), np.int64(2**62)):
        labels = big + (X[:, 0] > 0).astype(big.dtype)
        model = nb.NystroemClassifier(8, **SETTINGS).fit(X, labels)
        np.testing.assert_array_equal(run(model, X, tmp_path / "m")["label"], model.predict(X))


NAMES = ["a", "constant_12", "Gather_3", "prediction", "features", "", "nysboost/Add_1"]


@pytest.mark.filterwarnings("ignore:Column [0-9] is called")
def test_columns_may_have_any_name(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(120, len(NAMES))), columns=NAMES)
    y = X.to_numpy()[:, 1] + X.to_numpy()[:, 3]
    model = nb.NystroemRegressor(8, **SETTINGS).fit(X, y)
    nb.to_onnx(model, tmp_path / "m")
    session = onnxruntime.InferenceSession(tmp_path / "m", providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    assert names == ["a", "constant_12", "Gather_3", "column_3", "column_4", "column_5", NAMES[-1]]
    inputs = {name: X.to_numpy()[:, [j]] for j, name in enumerate(names)}
    assert_same(session.run(["prediction"], inputs)[0], model.predict(X))


def test_categories_are_known_as_they_were_padded(tmp_path):
    rng = np.random.default_rng(0)
    colours = np.array(["red  ", "green", "blue "], dtype=object)
    X = pd.DataFrame({"colour": rng.choice(colours, 200), "size": rng.normal(size=200)})
    y = 3.0 * (X["colour"] == "red  ") + X["size"]
    model = nb.NystroemRegressor(16, **SETTINGS).fit(X, y)
    for table in (X, X.assign(colour=X["colour"].str.strip())):
        found = run(model, table, tmp_path / "m")["prediction"]
        assert_same(found, model.predict(X))


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (pd.date_range("2020-01-01", periods=2), ["2020-01-01", "2020-01-02"]),
        ([Decimal("1.0"), Decimal("1.50")], ["1.0", "1.5"]),
        ([b"red", b"blue"], ["red", "blue"]),
    ],
)
def test_categories_are_known_by_the_text_of_their_value_in_the_schema(values, texts, tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(2, size=100)
    X = pd.DataFrame(
        {"size": rng.normal(size=100), "kind": pd.Categorical.from_codes(codes, list(values))}
    )
    model = nb.NystroemRegressor(16, **SETTINGS).fit(X, X["size"] + 5 * codes)
    assert sorted(map(str, model.schema_.columns[1].values)) == sorted(texts)
    written = X.assign(kind=np.array(texts, dtype=object)[codes])
    assert_same(run(model, written, tmp_path / "m")["prediction"], model.predict(X))


@pytest.mark.parametrize("far", [1e8, 1e12, 1e20])
def test_rows_far_from_all_others_have_their_prediction(far, tmp_path):
    X, y = points(160, 3), np.random.default_rng(1).normal(size=160)
    X[3] = far
    model = nb.NystroemRegressor(12, kernel="gaussian", random_state=0).fit(X, y)
    new = np.vstack([X, -X, 2 * X])
    assert_same(run(model, new, tmp_path / "m")["prediction"], model.predict(new))


@pytest.mark.parametrize("nu", [1.5, 2.5])
def test_features_of_rows_out_of_range_are_zero(nu, tmp_path):
    X = points(60, 3)
    kernel = nb.Matern(nu=nu, sigma=1.0)
    model = nb.Nystroem(kernel, method="uniform", n_components=8, random_state=0).fit(X)
    found = run(model, 1e160 * X, tmp_path / "m")["features"]
    np.testing.assert_allclose(found, np.zeros((60, 8)), atol=1e-300)


def test_inputs_say_what_they_take(tmp_path):
    onnx = pytest.importorskip("onnx")
    X, y = table()
    nb.to_onnx(nb.NystroemRegressor(8, **SETTINGS).fit(X, y), tmp_path / "m")
    inputs = {one.name: one.doc_string for one in onnx.load(tmp_path / "m").graph.input}
    assert (
        inputs["since"]
        == "seconds since 1970-01-01 00:00, without a time zone; NaN where it is missing"
    )
    assert "empty where it is missing" in inputs["colour"]


def test_columns_with_numbers_as_names_have_inputs_of_their_own_beside_a_category(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    rng = np.random.default_rng(0)
    colours = rng.choice(["red", "green", "blue"], 100)
    table = pd.DataFrame({0: rng.normal(size=100), 1: colours})
    model = nb.NystroemRegressor(10, local=False, random_state=0).fit(table, table[0])
    nb.to_onnx(model, tmp_path / "model.onnx")

    session = runtime.InferenceSession(tmp_path / "model.onnx")
    inputs = {
        "column_0": table[[0]].to_numpy(float),
        "column_1": table[[1]].to_numpy(object),
    }
    (found,) = session.run(None, inputs)
    np.testing.assert_allclose(found.ravel(), model.predict(table), atol=1e-8)
