"""Arrays of any namespace, linear algebra, clustering, optimisers, threads and progress."""
