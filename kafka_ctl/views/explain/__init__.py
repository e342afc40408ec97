"""Explanations: the rule behind a record, its inputs, and the lines of the source that ran."""
