"""Model files: the same numbers after a round trip, and a sentence for every other file."""

from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, clone, is_regressor

import nysboost as nb
from nysboost import learn

X = np.random.default_rng(0).normal(size=(150, 4))
NEW = np.random.default_rng(1).normal(size=(70, 4))

LEARNERS = [
    getattr(learn, name)()
    for name in learn.__all__
    if isinstance(getattr(learn, name), type) and issubclass(getattr(learn, name), BaseEstimator)
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


def small(method: str) -> dict[str, Any]:
    mixture = method.startswith("ensemble") or method in nb.VARIANTS + nb.JOINT_VARIANTS
    return {"n_learners": 3, "n_columns": 8} if mixture else {"n_components": 20}


class TestTheSameNumbers:
    @pytest.mark.parametrize("method", nb.METHODS)
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

    @pytest.mark.parametrize(
        "model",
        [
            nb.StandardNystroem(n_components=12, rank=7, random_state=3),
            nb.EnsembleNystroem("ridge", n_learners=4, n_columns=8, random_state=3),
            nb.EnsembleNystroem("uniform", n_learners=4, n_columns=8, n_components=9),
            nb.BoostedNystroem("URB-mean", n_learners=3, n_columns=8, random_state=3),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_every_transformer_and_its_rotation_comes_back(self, model, path):
        restored = round_trip(model.fit(X), path)
        assert np.array_equal(restored.transform(NEW), model.transform(NEW))
        assert np.array_equal(restored.normalization_, model.normalization_)
        assert list(restored.get_feature_names_out()) == list(model.get_feature_names_out())

    @pytest.mark.parametrize("model", LEARNERS, ids=lambda model: type(model).__name__)
    def test_every_learner_answers_the_same_after_a_round_trip(self, model, path):
        y = np.where(X[:, 0] * X[:, 1] > 0, "same", "different")
        y = X[:, 0] if is_regressor(model) else y
        few = {"n_landmarks": 12} if "n_landmarks" in model.get_params() else {"n_components": 12}
        model = clone(model).set_params(random_state=0, **few).fit(X[:60], y[:60])
        restored = round_trip(model, path)
        answers = [
            name
            for name in (
                "transform",
                "predict",
                "predict_proba",
                "decision_function",
                "score_samples",
            )
            if hasattr(model, name)
        ]
        assert answers or type(model) is nb.MeanEmbedding
        for name in answers:
            assert np.array_equal(getattr(restored, name)(NEW), getattr(model, name)(NEW))

    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    def test_the_dtype_stays(self, dtype, path):
        model = nb.StandardNystroem(n_components=12).fit(X.astype(dtype))
        features = round_trip(model, path).transform(NEW.astype(dtype))
        assert features.dtype == dtype
        assert np.array_equal(features, model.transform(NEW.astype(dtype)))

    def test_sparse_landmarks_stay_sparse(self, path):
        sparse = csr_matrix(np.where(X > 0.5, X, 0))
        model = nb.StandardNystroem("linear", n_components=12).fit(sparse)
        restored = round_trip(model, path)
        assert restored.components_.format == "csr"
        assert np.array_equal(restored.transform(sparse), model.transform(sparse))

    def test_precomputed_values(self, path):
        G = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1))
        model = nb.StandardNystroem("precomputed", n_components=12).fit(G)
        restored = round_trip(model, path)
        assert np.array_equal(restored.transform(G[:9]), model.transform(G[:9]))

    def test_pytorch_arrays_are_pytorch_arrays_again(self, path):
        torch = pytest.importorskip("torch")
        for model in (nb.StandardNystroem(n_components=12), nb.BoostedNystroem(n_components=12)):
            model.fit(torch.asarray(X))
            restored = round_trip(model, path)
            new = torch.asarray(NEW)
            assert torch.equal(restored.transform(new), model.transform(new))

    def test_names_of_columns_are_checked_after_loading_too(self, path):
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(X, columns=["height", "weight", "größe", "age"])
        restored = round_trip(nb.StandardNystroem(n_components=12).fit(frame), path)
        assert list(restored.feature_names_in_) == list(frame.columns)
        with pytest.raises(ValueError, match="feature names"):
            restored.transform(frame.rename(columns={"age": "years"}))

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

    def test_settings_as_unusual_numbers(self, path):
        model = nb.StandardNystroem(gamma=np.float32(0.1), max_memory="1GB", n_columns=np.int32(7))
        restored = round_trip(model.fit(X), path)
        assert restored.gamma == model.gamma
        assert type(restored.gamma) is np.float32
        assert np.array_equal(restored.transform(NEW), model.transform(NEW))


class TestWhatAFileHolds:
    def test_the_same_model_gives_the_same_bytes(self, tmp_path):
        model = nb.StandardNystroem(n_components=12, random_state=0).fit(X)
        nb.save(model, tmp_path / "a")
        nb.save(nb.load(tmp_path / "a"), tmp_path / "b")
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()

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
        with pytest.raises(TypeError, match="store of their own"):
            nb.save(approximation, path, with_rows=True)
        nb.save(approximation, path)
        assert nb.load(path).shape == (150, 150)

    def test_an_array_that_occurs_twice_is_written_once(self, path):
        nb.save(nb.StandardNystroem(n_components=100).fit(X), path)
        landmarks = 100 * 4 * 8
        with np.load(path) as arrays:
            sizes = [arrays[name].nbytes for name in arrays.files if name != "model.json"]
        assert sizes.count(landmarks) == 1

    def test_the_description_says_what_wrote_it(self, path):
        nb.save(nb.StandardNystroem(), path)
        with zipfile.ZipFile(path) as archive:
            description = json.loads(archive.read("model.json"))
        assert description["format_version"] == 1
        assert description["library_version"] == nb.__version__


class TestWhatCannotBeSaved:
    def test_a_function_of_the_user_is_named_with_what_to_do(self, path):
        def my_kernel(A, B):
            return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1))

        for model in (
            nb.approximate(X, "uniform", my_kernel, n_components=9),
            nb.StandardNystroem(my_kernel),
        ):
            with pytest.raises(TypeError, match=r"my_kernel.*joblib"):
                nb.save(model, path)
        assert not path.exists()

    @pytest.mark.parametrize(
        "thing", [object(), {1: object()}, nb.Gaussian, np.array([None]), 1 + 2j]
    )
    def test_other_things_are_named(self, thing, path):
        with pytest.raises(TypeError, match="model file"):
            nb.save(thing, path)

    def test_a_pipeline_is_not_ours(self, path):
        from sklearn.pipeline import make_pipeline

        with pytest.raises(TypeError, match=r"Pipeline.*model file"):
            nb.save(make_pipeline(nb.StandardNystroem()), path)

    def test_subclasses_of_the_user_are_other_types(self, path):
        class Mine(nb.StandardNystroem):
            pass

        with pytest.raises(TypeError, match="Mine"):
            nb.save(Mine(), path)


class TestOtherFiles:
    @pytest.fixture
    def saved(self, path: Path) -> Path:
        nb.save(nb.StandardNystroem(n_components=12, random_state=0).fit(X), path)
        return path

    def test_cut_off_anywhere(self, saved):
        whole = saved.read_bytes()
        for length in range(0, len(whole) - 1, 97):
            saved.write_bytes(whole[:length])
            with pytest.raises(nb.ModelFileError, match=r"cut off|no model file"):
                nb.load(saved)

    def test_one_byte_changed(self, saved):
        whole, rng = saved.read_bytes(), np.random.default_rng(0)
        before = nb.load(saved).transform(NEW)
        for where in rng.integers(len(whole), size=200):
            changed = bytearray(whole)
            changed[where] ^= 1 << rng.integers(8)
            saved.write_bytes(changed)
            try:
                restored = nb.load(saved)
            except nb.ModelFileError:
                continue
            # a byte that means nothing, such as a date
            assert np.array_equal(restored.transform(NEW), before)

    @pytest.mark.parametrize(
        "content",
        [b"", b"hello", b"PK\x03\x04", pickle.dumps(X), b"\x00" * 1000, b"{}", b"\x93NUMPY"],
        ids=["empty", "text", "zip", "pickle", "zeros", "json", "npy"],
    )
    def test_files_of_others(self, content, path):
        path.write_bytes(content)
        with pytest.raises(nb.ModelFileError):
            nb.load(path)

    def test_an_npz_is_no_model(self, path):
        np.savez(path.with_suffix(".npz"), X=X)
        with pytest.raises(nb.ModelFileError, match="no model file"):
            nb.load(path.with_suffix(".npz"))

    def test_a_newer_format_says_upgrade(self, saved):
        rewrite(saved, lambda body: body.update(format_version=2, library_version="9.0"))
        with pytest.raises(nb.ModelFileError, match=r"9\.0.*upgrade"):
            nb.load(saved)

    def test_a_type_that_is_not_known(self, saved):
        rewrite(saved, lambda body: body["model"]["objects"][0].update(type="os.system"))
        with pytest.raises(nb.ModelFileError, match=r"os\.system.*does not know"):
            nb.load(saved)

    @pytest.mark.parametrize("name", ["transform", "__class__", "fit", "__dict__", "get_params"])
    def test_learned_attributes_do_not_replace_what_a_class_has(self, saved, name):
        def attack(body):
            learned = body["model"]["objects"][-1]["parts"]["learned"]["dict"]
            learned[name] = "text"

        rewrite(saved, attack)
        with pytest.raises(nb.ModelFileError, match="damaged"):
            nb.load(saved)

    def test_a_zip_bomb_is_refused_before_it_unfolds(self, saved):
        bomb = saved.with_name("bomb")
        with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("model.json", b" " * 50_000_000)
        with pytest.raises(nb.ModelFileError, match="damaged"):
            nb.load(bomb)

    @pytest.mark.parametrize(
        "header",
        [
            "{'descr': '<f8', 'fortran_order': False, 'shape': (10**12, 10**6), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000, 1000000), }",
            "{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }",
            "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
            "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1,), }",
            "__import__('os').system('true')",
            "[" * 20000,
            "",
        ],
    )
    def test_headers_that_lie(self, saved, header):
        text = header.encode()
        data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\x00" * 8
        rewrite(saved, lambda body: None, {"0.npy": data})
        with pytest.raises(nb.ModelFileError, match="damaged"):
            nb.load(saved)

    @pytest.mark.parametrize("text", ["[" * 100_000, "NaN", "9" * 5000, '{"format": 3}', "\xff"])
    def test_descriptions_that_are_none(self, path, text):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("model.json", text.encode("latin1"))
        with pytest.raises(nb.ModelFileError):
            nb.load(path)

    def test_paths_that_lead_nowhere(self, tmp_path):
        model = nb.StandardNystroem()
        with pytest.raises(FileNotFoundError, match="no model file"):
            nb.load(tmp_path / "missing")
        with pytest.raises(FileNotFoundError, match="no model file"):
            nb.load(tmp_path)
        with pytest.raises(FileNotFoundError, match="no folder"):
            nb.save(model, tmp_path / "missing" / "file")
        with pytest.raises(IsADirectoryError, match="folder"):
            nb.save(model, tmp_path)


class TestWholeOrNotAtAll:
    def test_a_failed_save_leaves_the_old_file_and_no_other(self, path, monkeypatch):
        model = nb.StandardNystroem(n_components=5, random_state=0).fit(X)
        nb.save(model, path)
        before = path.read_bytes()
        full = OSError(28, "No space left on device")
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(full))
        with pytest.raises(OSError, match="Make room"):
            nb.save(nb.StandardNystroem(n_components=50).fit(X), path)
        assert path.read_bytes() == before
        assert list(path.parent.iterdir()) == [path]

    def test_ctrl_c_leaves_the_old_file_and_no_other(self, path, monkeypatch):
        nb.save(nb.StandardNystroem(), path)
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            nb.save(nb.StandardNystroem(n_components=50).fit(X), path)
        assert list(path.parent.iterdir()) == [path]
        assert isinstance(nb.load(path), nb.StandardNystroem)


class TestSkops:
    @pytest.mark.parametrize(
        "model",
        [
            nb.StandardNystroem(n_components=12, random_state=0),
            nb.EnsembleNystroem(n_learners=3, n_columns=8, random_state=0),
            nb.BoostedNystroem(kernel=nb.Gaussian(sigma=2.0), n_components=12, random_state=0),
            nb.Nystroem(nb.Polynomial(degree=2), n_components=12, random_state=0),
            nb.Nystroem(method="random-fourier", n_components=12, random_state=0),
            nb.Nystroem(method="meka", n_components=12, random_state=0),
            nb.Nystroem(method="cur", n_components=12, random_state=0),
        ],
        ids=lambda model: f"{type(model).__name__} {getattr(model, 'method', '')}",
    )
    def test_skops_names_our_types_and_no_others(self, model):
        sio = pytest.importorskip("skops.io")
        data = sio.dumps(model.fit(X))
        unknown = sio.get_untrusted_types(data=data)
        assert all(name.startswith(("nysboost.", "numpy.")) for name in unknown), unknown
        restored = sio.loads(data, trusted=unknown)
        assert np.array_equal(restored.transform(NEW), model.transform(NEW))

    @pytest.mark.parametrize(
        ("model", "method"),
        [
            (nb.NystroemRegressor(6, metric="each", scale="quantile", random_state=0), "predict"),
            (nb.NystroemClassifier(6, metric="each", random_state=0), "predict_proba"),
            (nb.NystroemClassifier(6, loss="log", landmarks="kmeans", random_state=0), "predict"),
            (nb.GaussianProcessClassifier(n_landmarks=9, random_state=0), "predict_proba"),
            (nb.KernelPCA(n_components=3, n_landmarks=9, random_state=0), "transform"),
            (nb.SpectralClustering(2, n_landmarks=9, random_state=0), "predict"),
            (nb.MeanEmbedding(n_landmarks=9, random_state=0), "score_samples"),
        ],
        ids=lambda part: type(part).__name__,
    )
    def test_skops_names_the_types_of_learners_too(self, model, method):
        sio = pytest.importorskip("skops.io")
        y = X[:, 0] if is_regressor(model) else np.where(X[:, 0] > 0, "a", "b")
        data = sio.dumps(model.fit(X, y))
        unknown = sio.get_untrusted_types(data=data)
        assert all(name.startswith(("nysboost.", "numpy.")) for name in unknown), unknown
        restored = sio.loads(data, trusted=unknown)
        assert np.array_equal(getattr(restored, method)(NEW), getattr(model, method)(NEW))


def rewrite(path: Path, change: Any, arrays: dict[str, bytes] | None = None) -> None:
    """Change a model file as somebody would who knows the format, checksums and all."""
    from hashlib import sha256

    from nysboost.data.archive import _checksum

    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()} | (arrays or {})
    body = json.loads(members.pop("model.json"))
    del body["checksum"]
    change(body)
    body["arrays"] = {name: sha256(data).hexdigest() for name, data in members.items()}
    members["model.json"] = json.dumps(body | {"checksum": _checksum(body)}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)
