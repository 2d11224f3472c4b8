"""Model files: the same numbers after a round trip, and a sentence for every other file."""

from __future__ import annotations

import io
import json
import os
import pickle
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from archives import repacked
from market import LEADING
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone, is_regressor

import nysboost as nb
from nysboost import estimators, learn

X = np.random.default_rng(0).normal(size=(150, 4))
NEW = np.random.default_rng(1).normal(size=(70, 4))

LEARNERS = [
    kind()
    for kind in (*vars(learn).values(), *vars(estimators).values())
    if isinstance(kind, type)
    and issubclass(kind, BaseEstimator)
    and not kind.__name__.endswith("Nystroem")
]

KERNELS = {
    "gaussian": nb.Gaussian(sigma=1.5),
    "laplacian": nb.Laplacian(gamma=0.2),
    "matern": nb.Matern(nu=2.5, sigma="median"),
    "linear": nb.Linear(),
    "polynomial": nb.Polynomial(degree=2),
    "cosine": nb.Cosine(),
    "anova": nb.Anova(gamma=0.5),
    "rbf": "rbf",
    "chi2": "chi2",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.nysboost"


def round_trip(model: Any, path: Path, **how: Any) -> Any:
    nb.save(model, path, **how)
    return nb.load(path)


def assert_same_answers(restored: Any, model: Any) -> None:
    known = "transform predict predict_proba decision_function score_samples"
    answers = [name for name in known.split() if hasattr(model, name)]
    assert answers
    for name in answers:
        assert np.array_equal(getattr(restored, name)(NEW), getattr(model, name)(NEW))


def small(method: str) -> dict[str, Any]:
    mixture = method.startswith("ensemble") or method in nb.VARIANTS + nb.JOINT_VARIANTS
    return {"n_learners": 3, "n_columns": 8} if mixture else {"n_components": 20}


class TestTheSameNumbers:
    @pytest.mark.parametrize("method", LEADING)
    def test_approximations_of_every_method_come_back_with_all_they_know(self, method, path):
        approximation = nb.approximate(X, method, random_state=0, **small(method))
        restored = round_trip(approximation, path, with_rows=True)
        assert np.array_equal(restored.to_dense(), approximation.to_dense())
        if approximation.has_features:
            assert np.array_equal(restored.features(), approximation.features())
        assert restored.relative_error() == approximation.relative_error()
        assert restored.entries_evaluated == approximation.entries_evaluated

    @pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
    def test_transformers_with_every_kernel_map_new_rows_to_the_same_bits(self, kernel, path):
        model = nb.BoostedNystroem(kernel=kernel, n_components=15, random_state=0)
        model.fit(np.abs(X))
        restored = round_trip(model, path)
        assert type(restored) is nb.BoostedNystroem
        assert np.array_equal(restored.transform(np.abs(NEW)), model.transform(np.abs(NEW)))
        assert np.array_equal(restored.components_, model.components_)
        assert repr(restored) == repr(model)

    @pytest.mark.parametrize("model", LEARNERS, ids=lambda model: type(model).__name__)
    def test_every_learner_answers_the_same_after_a_round_trip(self, model, path):
        y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
        y = X[:, 0] if is_regressor(model) else y
        few = {"n_landmarks": 12}
        if "n_landmarks" not in model.get_params():
            few = {"n_components": 12, "kernel": "gaussian", "metric": "each"}
        model = clone(model).set_params(random_state=0, **few).fit(X[:60], y[:60])
        assert_same_answers(round_trip(model, path), model)

    def test_sparse_landmarks_stay_sparse_and_precomputed_values_have_none(self, path):
        sparse = csr_matrix(np.where(X > 0.5, X, 0))
        G = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
        for kernel, rows in (("linear", sparse), ("precomputed", G)):
            model = nb.StandardNystroem(kernel, n_components=12).fit(rows)
            restored = round_trip(model, path)
            assert getattr(restored.components_, "format", None) == getattr(rows, "format", None)
            assert np.array_equal(restored.transform(rows[:9]), model.transform(rows[:9]))

    def test_pytorch_arrays_are_pytorch_arrays_again(self, path):
        torch = pytest.importorskip("torch")
        model, new = nb.BoostedNystroem(n_components=12).fit(torch.asarray(X)), torch.asarray(NEW)
        assert torch.equal(round_trip(model, path).transform(new), model.transform(new))

    @pytest.mark.parametrize(
        "seed", [5, None, np.int64(5), np.random.default_rng(5), np.random.RandomState(5)]
    )
    def test_estimators_that_are_not_fitted_keep_their_parameters(self, seed, path):
        model = nb.StandardNystroem(
            nb.Gaussian("median"), kernel_params=None, n_components=9, random_state=seed
        )
        restored = round_trip(model, path)
        assert restored.kernel == model.kernel
        if seed is not None:
            assert np.array_equal(restored.fit(X).transform(X), model.fit(X).transform(X))


class TestWhatAFileHolds:
    def test_the_same_model_gives_the_same_bytes_which_say_what_wrote_them(self, tmp_path):
        model = nb.StandardNystroem(n_components=12, random_state=0).fit(X)
        nb.save(model, tmp_path / "a")
        nb.save(nb.load(tmp_path / "a"), tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        with zipfile.ZipFile(tmp_path / "a") as archive:
            description = json.loads(archive.read("model.json"))
        assert description["format_version"] == 2
        assert description["library_version"] == nb.__version__

    def test_training_rows_are_left_out_unless_asked_for(self, path):
        rows = np.random.default_rng(0).normal(size=(3000, 20))
        approximation = nb.approximate(rows, "uniform", n_components=10)
        nb.save(approximation, path)
        assert path.stat().st_size < rows.nbytes / 20
        restored = nb.load(path)
        with pytest.raises(RuntimeError, match="3000 training rows"):
            restored.relative_error()
        nb.save(approximation, path, with_rows=True)
        assert path.stat().st_size > rows.nbytes

    def test_rows_in_a_store_are_not_copied(self, path):
        zarr = pytest.importorskip("zarr")
        approximation = nb.approximate(zarr.array(X), "uniform", n_components=10)
        with pytest.raises(TypeError, match="in a separate store"):
            nb.save(approximation, path, with_rows=True)
        nb.save(approximation, path)
        assert nb.load(path).shape == (150, 150)


class TestWhatCannotBeSaved:
    def test_a_function_of_the_user_is_named_with_what_to_do(self, path):
        def my_kernel(A, B):
            return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1))

        approximation = nb.approximate(X, "uniform", my_kernel, n_components=9)
        for model in (approximation, nb.StandardNystroem(my_kernel)):
            with pytest.raises(TypeError, match=r"my_kernel.*joblib"):
                nb.save(model, path)
        assert not path.exists()

    @pytest.mark.parametrize(
        ("own", "cure"),
        [
            ({"callback": print}, r"set_params\(callback=None\)"),
            ({"rule": lambda _V1, _V2, p: np.ones(p) / p}, "register_rule"),
            ({"selector": lambda _residual, m, _rng: np.arange(m)}, "register_selector"),
            ({"sampling": lambda _gram, m, _rng: np.arange(m)}, "one of NysBoost's samplings"),
            ({"settings": nb.Settings(callback=print)}, "in settings"),
        ],
    )
    def test_a_function_that_is_no_kernel_has_a_cure_of_its_own(self, own, cure, path):
        model = nb.BoostedNystroem(kernel=nb.Gaussian(sigma=1.0), **own)
        with pytest.raises(TypeError, match=cure) as refused:
            nb.save(model, path)
        assert "kernel" not in str(refused.value)
        assert "joblib" in str(refused.value)

    @pytest.mark.parametrize(
        "thing", [object(), {1: object()}, nb.Gaussian, np.array([None]), 1 + 2j]
    )
    def test_other_things_are_named(self, thing, path):
        with pytest.raises(TypeError, match="an estimator of NysBoost"):
            nb.save(thing, path)


def learned(body: dict[str, Any]) -> dict[str, Any]:
    return body["model"]["objects"][-1]["parts"]["learned"]["dict"]


def npy(header: str) -> bytes:
    text = header.encode()
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\x00" * 8


FLOATS = "{'descr': '<f8', 'fortran_order': False, 'shape': "
HEADERS = {
    "a power as a shape": FLOATS + "(10**12, 10**6), }",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "records": "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
    "code": "__import__('os').system('true')",
    "brackets": "[" * 20000,
    "nothing": "",
}
CHANGES: dict[str, tuple[Callable[[dict, dict], object], str]] = {
    "a newer format": (
        lambda body, _: body.update(format_version=3, library_version="9.0"), r"9\.0.*upgrade"),
    "an older format": (
        lambda body, _: body.update(format_version=1, library_version="0.2"), r"0\.2.*fit again"),
    "an unknown type": (
        lambda body, _: body["model"]["objects"][0].update(type="os.system"),
        r"os\.system.*does not know"),
    **{
        f"{name} among what was learned": (
            lambda body, _, name=name: learned(body).update({name: "text"}), "damaged")
        for name in ("transform", "__class__", "fit", "__dict__", "get_params")
    },
    **{
        f"a header of {what}": (
            lambda _, arrays, header=header: arrays.update({"0.npy": npy(header)}), "damaged")
        for what, header in HEADERS.items()
    },
}  # fmt: skip


class TestOtherFiles:
    @pytest.fixture
    def saved(self, path: Path) -> Path:
        nb.save(nb.StandardNystroem(n_components=12, random_state=0).fit(X), path)
        return path

    def test_cut_off_anywhere(self, saved):
        whole = saved.read_bytes()
        for length in range(0, len(whole) - 1, 97):
            saved.write_bytes(whole[:length])
            with pytest.raises(nb.ModelFileError, match=r"cut off|not a model file"):
                nb.load(saved)

    @pytest.mark.parametrize(
        "content",
        [b"", b"hello", b"PK\x03\x04", pickle.dumps(X), b"\x00" * 1000, b"{}", b"\x93NUMPY"],
        ids=["empty", "text", "zip", "pickle", "zeros", "json", "npy"],
    )
    def test_files_of_others(self, content, path):
        path.write_bytes(content)
        with pytest.raises(nb.ModelFileError):
            nb.load(path)

    @pytest.mark.parametrize("what", CHANGES)
    def test_what_somebody_changed_who_knows_the_format(self, saved, what):
        change, says = CHANGES[what]
        saved.write_bytes(repacked(saved.read_bytes(), change))
        with pytest.raises(nb.ModelFileError, match=says):
            nb.load(saved)

    def test_arrays_whose_library_or_device_is_not_here(self, path, monkeypatch):
        torch = pytest.importorskip("torch")
        nb.save(nb.StandardNystroem(n_components=5).fit(torch.asarray(X)), path)

        def move(body, _):
            body["model"] = json.loads(json.dumps(body["model"]).replace('"cpu"', '"cuda:7"'))

        path.write_bytes(repacked(path.read_bytes(), move))
        with pytest.raises(RuntimeError, match=r"load\(path, device='cpu'\)"):
            nb.load(path)
        assert str(nb.load(path, device="cpu").components_.device) == "cpu"
        monkeypatch.setitem(sys.modules, "array_api_compat.torch", None)
        with pytest.raises(RuntimeError, match="install torch to load it"):
            nb.load(path)

    def test_a_zip_bomb_is_refused_before_it_unfolds(self, saved):
        bomb = saved.with_name("bomb")
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("model.json", b" " * 50_000_000)
        with pytest.raises(nb.ModelFileError, match="damaged"):
            nb.load(bomb)

    def test_paths_that_lead_nowhere(self, tmp_path):
        model = nb.StandardNystroem()
        for nowhere in (tmp_path / "missing", tmp_path):
            with pytest.raises(FileNotFoundError, match="no model file"):
                nb.load(nowhere)
        with pytest.raises(FileNotFoundError, match="no folder"):
            nb.save(model, tmp_path / "missing" / "file")
        with pytest.raises(IsADirectoryError, match="folder"):
            nb.save(model, tmp_path)


def array_of(body: dict[str, Any], kind: str, part: str) -> str:
    """Return the name of an array of the first object of a type."""
    parts = next(one["parts"] for one in body["model"]["objects"] if one["type"] == kind)
    return parts[part]["array"]


def changed_array(members: dict[str, bytes], name: str, change: Callable[[Any], Any]) -> None:
    """Change an array of a file."""
    array = np.load(io.BytesIO(members[name]))
    packed = io.BytesIO()
    np.lib.format.write_array(packed, np.asarray(change(array)), version=(1, 0))
    members[name] = packed.getvalue()


def swap_leaves(children: np.ndarray) -> np.ndarray:
    children[children == -1] = -2
    return children


def swap_starts(starts: np.ndarray) -> np.ndarray:
    """Let a leaf end before it starts, in numbers whose differences are never negative."""
    starts[[1, 2]] = starts[[2, 1]]
    return starts.astype(np.uint64)


CRAFTED = {
    "children that are all the root": ("Tree", "children", lambda a: 0 * a),
    "children that are not there": ("Tree", "children", lambda a: a + 50),
    "a leaf twice": ("Tree", "children", swap_leaves),
    "too few thresholds": ("Tree", "thresholds", lambda a: a[:-1]),
    "directions of other rows": ("Tree", "directions", lambda a: a[:, :-1]),
    "leaves with rows that are not there": ("Leaves", "starts", lambda a: a + 3),
    "leaves whose rows fall": ("Leaves", "starts", lambda a: a[::-1].copy()),
    "a leaf that ends before it starts": ("Leaves", "starts", swap_starts),
    "rows without coefficients": ("Leaves", "w", lambda a: a[:-1]),
    "coefficients without an axis": ("Leaves", "w", lambda a: a[:, 0]),
    "landmarks without columns": ("Landmarks", "points", lambda a: a[:, 0]),
    "too few landmarks": ("Landmarks", "points", lambda a: a[:-1]),
    "too narrow landmarks": ("Landmarks", "points", lambda a: a[:, :-1]),
    "weights of other features": ("LinearModel", "w", lambda a: a[:-1]),
    "means of other targets": ("LinearModel", "mean", lambda a: np.append(a, a)),
    "moments of other features": ("Moments", "FF", lambda a: a[:-1]),
}


@pytest.fixture(scope="module")
def learner(tmp_path_factory: Any) -> bytes:
    """Return the file of a model with leaves."""
    X = np.random.default_rng(0).normal(size=(500, 6))
    y = np.sin(6 * X[:, 0]) + X[:, 1]
    settings = {"kernel": "matern", "metric": "each", "scale": "standard", "random_state": 0}
    path = tmp_path_factory.mktemp("learner") / "model.nysboost"
    nb.save(nb.NystroemRegressor(6, local=64, **settings).fit(X, y), path)
    return path.read_bytes()


@pytest.mark.parametrize("what", CRAFTED)
def test_parts_that_do_not_fit_together_are_refused_when_they_are_read(learner, what, path):
    kind, part, change = CRAFTED[what]

    def craft(body, members):
        changed_array(members, array_of(body, kind, part), change)

    path.write_bytes(repacked(learner, craft))
    with pytest.raises(nb.ModelFileError, match="damaged"):
        nb.load(path)


CRAFTED_PARTS = {
    "a column of no known kind": ("Column", "kind", "colour"),
    "cycles that are not there": ("Column", "cycles", {"tuple": ["century"]}),
    "values without counts": ("Column", "counts", {"tuple": []}),
    "no counts at all": ("Column", "counts", None),
    "gaps that no code is for": ("Column", "gaps", 7),
    "columns that are text": ("Schema", "columns", {"tuple": ["size", "colour"]}),
    "too few columns": ("Schema", "width", 5),
    "means that are none": ("Codes", "means", {"tuple": [None, {"tuple": []}]}),
    "a projection that is text": ("FeatureMap", "projection", "N"),
    "a weight that is text": ("Member", "weight", "much"),
    "leaves that are a kernel": ("Member", "leaves", {"object": 0}),
    "learned attributes of another kind": (
        "NystroemRegressor", "learned", {"dict": {"schema_": 1.5}},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def table_learner(tmp_path_factory: Any) -> bytes:
    """Return the file of a model of a table with a category."""
    frame = pd.DataFrame({"colour": ["red", "green", "blue"] * 20, "size": X[:60, 0]})
    path = tmp_path_factory.mktemp("table") / "model.nysboost"
    settings = {"kernel": "matern", "metric": "each", "random_state": 0, "verbose": 0}
    nb.save(nb.NystroemRegressor(6, **settings).fit(frame, X[:60, 0]), path)
    return path.read_bytes()


@pytest.mark.parametrize("what", CRAFTED_PARTS)
def test_parts_of_other_types_are_refused_when_they_are_read(table_learner, what, path):
    kind, part, value = CRAFTED_PARTS[what]

    def craft(body, _):
        first = next(one for one in body["model"]["objects"] if one["type"] == kind)
        assert part in first["parts"]
        first["parts"][part] = value

    path.write_bytes(repacked(table_learner, craft))
    with pytest.raises(nb.ModelFileError, match="damaged"):
        nb.load(path)


def test_labels_that_are_dates_come_back(path):
    days = np.array(["2026-01-01", "2026-01-02"], dtype="M8[D]")
    labels = days[(X[:, 0] > 0).astype(int)]
    model = nb.NystroemClassifier(4, local=False, random_state=0).fit(X, labels)
    nb.save(model, path)
    found = nb.load(path).predict(X)
    np.testing.assert_array_equal(found, model.predict(X), strict=True)


def test_labels_and_names_of_columns_may_be_text_of_numpy(path):
    names = np.array(["no", "yes", "third", "fourth"])
    frame = pd.DataFrame(X, columns=pd.Index(list(names), dtype=object))
    labels = pd.Series([names[int(value)] for value in X[:, 0] > 0], dtype=object)
    model = nb.NystroemClassifier(4, local=False, random_state=0).fit(frame, labels)
    restored = round_trip(model, path)
    np.testing.assert_array_equal(restored.predict(frame), model.predict(frame), strict=True)


def test_a_file_whose_root_is_no_model_is_refused(learner, path):
    path.write_bytes(repacked(learner, lambda body, _: body["model"].update(root={"object": 0})))
    with pytest.raises(nb.ModelFileError, match="damaged"):
        nb.load(path)


@pytest.mark.parametrize(
    ("fault", "says"),
    [(OSError(28, "No space left on device"), "Make room"), (KeyboardInterrupt(), "^$")],
)
def test_a_failed_save_leaves_the_old_file_and_no_other(path, fault, says, monkeypatch):
    nb.save(nb.StandardNystroem(n_components=5, random_state=0).fit(X), path)
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(fault))
    with pytest.raises(type(fault), match=says):
        nb.save(nb.StandardNystroem(n_components=50).fit(X), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize(
    "model",
    [
        nb.StandardNystroem(n_components=12),
        nb.EnsembleNystroem(n_learners=3, n_columns=8),
        nb.BoostedNystroem(kernel=nb.Gaussian(2.0), n_components=12),
        nb.Nystroem(nb.Polynomial(degree=2), n_components=12),
        *(nb.Nystroem(method=m, n_components=12) for m in ("random-fourier", "meka", "cur")),
        nb.NystroemRegressor(6, scale="quantile", kernel="gaussian", metric="each"),
        nb.NystroemClassifier(6, kernel="gaussian", metric="each"),
        nb.NystroemClassifier(6, loss="log", landmarks="kmeans"),
        nb.GaussianProcessClassifier(n_landmarks=9),
        nb.KernelPCA(n_components=3, n_landmarks=9),
        nb.SpectralClustering(2, n_landmarks=9),
        nb.MeanEmbedding(n_landmarks=9),
    ],
    ids=str,
)
def test_skops_names_our_types_and_no_others(model):
    sio = pytest.importorskip("skops.io")
    y = X[:, 0] if is_regressor(model) else np.where(X[:, 0] > 0, "a", "b")
    data = sio.dumps(model.set_params(random_state=0).fit(X, y))
    unknown = sio.get_untrusted_types(data=data)
    assert all(name.startswith(("nysboost.", "numpy.")) for name in unknown), unknown
    assert_same_answers(sio.loads(data, trusted=unknown), model)


@pytest.mark.parametrize("local", [False, True])
def test_a_file_holds_training_rows_only_where_leaves_need_them(path, local):
    X = np.random.default_rng(0).normal(size=(600, 12))
    y = np.sin(3 * X[:, 0]) + X[:, 1]
    settings = {"kernel": "matern", "metric": "each", "scale": "standard", "random_state": 0}
    model = nb.NystroemRegressor(4, local=local, **settings).fit(X, y)
    restored = round_trip(model, path)
    assert (path.stat().st_size > X.nbytes / 2) == (model.n_local_rows_ > 0) == local
    np.testing.assert_array_equal(restored.predict(X[:9]), model.predict(X[:9]))
