"""The peers: other ways to choose landmarks, each ending in one plain Nyström learner.

Every module has functions of one form, ``(gram, c, rng) -> Landmarks or FeatureMap``.
"""
