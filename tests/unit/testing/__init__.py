"""The cluster for tests: client faults and a kill in mid-write, its calls over HTTP."""
