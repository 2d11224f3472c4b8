"""Arrays of any namespace, linear algebra, clustering, threads and progress."""
