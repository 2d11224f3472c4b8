"""Algorithm 1 of the paper and its parts; read `algorithm` first."""
