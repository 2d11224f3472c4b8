"""Arrays of any namespace, cut-offs, linear algebra, clustering, descent, checks."""
