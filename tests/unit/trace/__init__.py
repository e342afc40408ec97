"""The trace: its record, the catalogue, details, text, timing."""
