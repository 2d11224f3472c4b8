"""The Gram matrix G: n×n, never formed, evaluated block by block and counted."""

from nysboost.gram.gram import Gram as Gram
from nysboost.gram.gram import KernelGram as KernelGram
from nysboost.gram.gram import PrecomputedGram as PrecomputedGram
from nysboost.gram.landmarks import Landmarks as Landmarks
from nysboost.gram.landmarks import Sample as Sample
from nysboost.gram.landmarks import given_landmarks as given_landmarks
from nysboost.gram.landmarks import pool as pool
from nysboost.gram.landmarks import take_sample as take_sample
from nysboost.gram.make import ALL_ZERO as ALL_ZERO
from nysboost.gram.make import NOT_FINITE as NOT_FINITE
from nysboost.gram.make import make_gram as make_gram
from nysboost.gram.make import on_other_rows as on_other_rows
from nysboost.gram.make import refuse_indefinite as refuse_indefinite
