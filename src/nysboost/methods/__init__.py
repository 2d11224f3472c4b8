"""Other published methods, which choose landmarks or fit a map on them.

Most are functions ``(gram, c, rng)`` that return c landmarks, or a feature map. `catalogue` gives
them names.
"""
