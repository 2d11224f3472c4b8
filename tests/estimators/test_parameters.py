"""What estimators say about themselves."""

import pytest

import nysboost as nb
from nysboost.estimators.parameters import describe_parameters

ESTIMATORS = (
    nb.Nystroem,
    nb.StandardNystroem,
    nb.EnsembleNystroem,
    nb.BoostedNystroem,
    nb.NystroemRegressor,
    nb.NystroemClassifier,
    nb.KernelPCA,
    nb.SpectralClustering,
    nb.GaussianProcessClassifier,
    nb.MeanEmbedding,
)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
def test_every_parameter_is_described(kind):
    said = describe_parameters(kind)
    for name in kind().get_params():
        assert said.get(name), name
        assert not said[name].startswith("As in"), name


def test_the_html_shows_parameters_with_what_they_do():
    shown = nb.KernelPCA(n_components=3)._repr_html_()
    assert "<td>n_components</td><td>3</td><td>Number of components;" in shown
