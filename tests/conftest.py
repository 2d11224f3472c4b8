"""What all tests share: hypothesis without deadlines, and the same examples each time."""

import os

os.environ["SCIPY_ARRAY_API"] = "1"  # before SciPy is imported: scikit-learn's checks ask for it
# Small matrices are slower on several threads, and round differently from machine to machine.
os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"

from hypothesis import HealthCheck, settings

settings.register_profile(
    "nysboost",
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fuzz", parent=settings.get_profile("nysboost"), derandomize=False,
                          max_examples=int(os.environ.get("NYSBOOST_FUZZ_EXAMPLES", "10000")),
                          print_blob=True)  # fmt: skip
settings.load_profile(os.environ.get("NYSBOOST_PROFILE", "nysboost"))

if os.environ.get("NYSBOOST_MEMORY"):  # bytes, beyond which a law that takes too many fails
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (int(os.environ["NYSBOOST_MEMORY"]),) * 2)
