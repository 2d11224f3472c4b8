"""Learners of other libraries behind one interface."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from nysboost.experiments.peers import BANDWIDTHS, KERNELS, XRFM


class Nearest:
    """Predicts the nearest row's target, but for a mistake that depends on the setting."""

    made = ()

    def __init__(self, params, device, random_state, verbose):
        assert (device, verbose) == ("cpu", False)
        self.setting = params["model"]["kernel"], params["model"]["bandwidth"]
        Nearest.made = (*Nearest.made, self)

    def fit(self, X, y, held, truth):
        self.X, self.y, self.rows = X, y, len(held)
        assert X.dtype == np.float32
        assert abs(np.concatenate([X, held]).mean()) < 1e-6

    def predict(self, X):
        nearest = ((X[:, None, :] - self.X) ** 2).sum(axis=2).argmin(axis=1)
        if self.setting == (KERNELS[1], BANDWIDTHS[0]):
            return self.y[nearest][:, None]
        return np.roll(self.y[nearest], 1)[:, None]

    def predict_proba(self, X):
        return np.eye(len(np.unique(self.y)))[self.predict(X)[:, 0]]


@pytest.fixture
def xrfm(monkeypatch):
    Nearest.made = ()
    monkeypatch.setitem(sys.modules, "xrfm", SimpleNamespace(xRFM=Nearest))


def table(n=80):
    X = 50 + 9 * np.random.default_rng(0).normal(size=(n, 2))
    return X, X[:, 0] > 50


def test_the_best_setting_on_held_out_rows_is_kept(xrfm):
    X, _ = table()
    model = XRFM().fit(X, X[:, 0])
    settings = {made.setting for made in Nearest.made}
    assert settings == {(kernel, width) for kernel in KERNELS for width in BANDWIDTHS}
    assert all(made.rows == 16 for made in Nearest.made)
    assert model._model.setting == (KERNELS[1], BANDWIDTHS[0])
    assert np.corrcoef(model.predict(X), X[:, 0])[0, 1] > 0.95


def test_labels_come_back_as_they_were(xrfm):
    X, y = table()
    labels = np.where(y, "high", "low")
    model = XRFM(classify=True).fit(X, labels)
    assert list(model.classes_) == ["high", "low"]
    assert np.mean(model.predict(X) == labels) > 0.9
    assert model.predict_proba(X).shape == (80, 2)


def test_xrfm_itself_fits_in():
    pytest.importorskip("xrfm")
    X, y = table(60)
    assert np.corrcoef(XRFM().fit(X, X[:, 0]).predict(X), X[:, 0])[0, 1] > 0.9
    assert np.mean(XRFM(classify=True).fit(X, y).predict(X) == y) > 0.9
