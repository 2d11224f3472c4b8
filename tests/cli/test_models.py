"""Models in files: what they can do, and what columns they know."""

import numpy as np
import pandas as pd
import pytest

import nysboost as nb
from nysboost.cli.errors import ModelError, NoFileError
from nysboost.cli.models import (
    known_columns,
    load_model,
    output_names,
    predictor,
    transformer,
    unmistakable,
)

X = np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture(scope="module")
def approximation():
    return nb.approximate(X, "uniform", n_components=5, random_state=0)


def test_a_model_knows_its_columns(approximation):
    names = pd.DataFrame(X, columns=["a", "b", "c"])
    transformer = nb.Nystroem(n_components=5, method="uniform", random_state=0)
    assert known_columns(transformer.fit(names)) == (["a", "b", "c"], 3)
    assert known_columns(transformer.fit(X)) == (None, 3)
    assert known_columns(approximation) == (None, 3)


def test_an_approximation_transforms_like_its_features(approximation):
    np.testing.assert_allclose(transformer(approximation)(X), approximation.features(), atol=1e-12)


def test_who_has_no_features_or_predictions_says_so(approximation):
    clusters = nb.SpectralClustering(2, n_landmarks=10, random_state=0).fit(X)
    with pytest.raises(ModelError, match="This SpectralClustering has no features"):
        transformer(clusters)
    with pytest.raises(ModelError, match="This Approximation predicts nothing: fit with"):
        predictor(approximation)
    assert predictor(clusters)(X).shape == (60, 1)


def test_what_is_no_model_is_a_sentence(tmp_path):
    with pytest.raises(NoFileError, match="There is no model"):
        load_model(tmp_path / "none.nysboost")
    (tmp_path / "text").write_text("Dear reader")
    with pytest.raises(ModelError):
        load_model(tmp_path / "text")


def test_outputs_have_names_and_labels_that_are_whole_numbers_look_so():
    assert output_names("prediction", 1) == ["prediction"]
    assert output_names("feature", 3) == ["feature_0", "feature_1", "feature_2"]
    assert unmistakable(np.array([1.0, 2.0])).dtype == np.int64
    for labels in ([1.5, 2.0], [1.0, np.nan], ["a", "b"]):
        assert unmistakable(np.array(labels)).dtype == np.array(labels).dtype
