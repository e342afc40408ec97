"""The package's own files, and what goes across its folders: bad input, the golden prose, docstring examples,
relations, and replication invariants."""
