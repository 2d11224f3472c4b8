"""Arrays of any namespace, linear algebra, clustering, descent, and what a computation may use."""
