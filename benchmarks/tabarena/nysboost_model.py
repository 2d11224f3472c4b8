"""NysBoost in TabArena's model form, with its search space.

In an environment with `pip install tabarena nysboost`, from this folder:

    python nysboost_model.py    # fits by AutoGluon on small tables, and the configurations
"""

from __future__ import annotations

from typing import Any

import pandas as pd
from autogluon.common.space import Categorical, Int
from autogluon.core.constants import REGRESSION
from autogluon.core.models import AbstractModel


class NysBoostModel(AbstractModel):
    """`NystroemRegressor` or `NystroemClassifier`, on the table as AutoGluon hands it over."""

    ag_key = "NYSBOOST"
    ag_name = "NysBoost"
    seed_name = "random_state"
    _supported_problem_types = ("binary", "multiclass", "regression")
    default_resources_physical_cores_only = True

    def _fit(self, X: pd.DataFrame, y: pd.Series, num_cpus: int = 1, **_: Any) -> None:
        """Fit on the training rows: held-out rows are the learner's own."""
        from threadpoolctl import threadpool_limits

        import nysboost as nb

        made = nb.NystroemRegressor if self.problem_type == REGRESSION else nb.NystroemClassifier
        self.model = made(verbose=0, **self._get_model_params())
        with threadpool_limits(num_cpus):
            self.model.fit(self.preprocess(X, is_train=True), y)

    def _get_default_auxiliary_params(self) -> dict[str, Any]:
        types = {"valid_raw_types": ["int", "float", "category", "bool"]}
        return super()._get_default_auxiliary_params() | types


SEARCH_SPACE = {
    "n_components": Int(100, 1000, default=256),
    "kernel": Categorical("auto", "gaussian", "matern"),
    "metric": Categorical("auto", "each", "full"),
    "scale": Categorical("auto", "standard", "quantile"),
    "local": Categorical("auto", False),
}
"""What TabArena draws configurations from, beside the default one."""


def generator() -> Any:
    """Return TabArena's generator of configurations."""
    from tabarena.utils.config_utils import ConfigGenerator

    return ConfigGenerator(search_space=SEARCH_SPACE, model_cls=NysBoostModel, manual_configs=[{}])


def main() -> None:
    """Fit on a small table through AutoGluon, and print TabArena's experiments."""
    import tempfile

    from autogluon.tabular import TabularPredictor
    from sklearn.datasets import load_diabetes, load_wine

    for load, column, kind in ((load_diabetes, "bmi", "regression"), (load_wine, "hue", None)):
        table = load(as_frame=True).frame
        table["text"] = pd.cut(table[column], 3, labels=["low", "mid", "high"])
        train, test = table.iloc[::2], table.iloc[1::2]
        with tempfile.TemporaryDirectory() as folder:
            predictor = TabularPredictor("target", path=folder, verbosity=1, problem_type=kind)
            predictor.fit(
                train, hyperparameters={NysBoostModel: {}}, num_bag_folds=2,
                ag_args_ensemble={"fold_fitting_strategy": "sequential_local"},
            )  # fmt: skip
            print(predictor.leaderboard(test)[["model", "score_test", "eval_metric"]])
    for experiment in generator().generate_all_bag_experiments(num_random_configs=3):
        print(experiment.name, experiment.method_kwargs)


if __name__ == "__main__":
    main()
