"""Other methods of the field: each chooses landmarks, or fits a map on them, in its own way.

Most are functions ``(gram, c, rng)`` that return c landmarks, or a feature map on them, to which
`catalogue` gives names.
"""
