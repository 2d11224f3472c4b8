"""Tables as people have them: what each column is, files of them, and their codes as numbers."""
