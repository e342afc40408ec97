"""Single pictures for the lessons, drawn from a lab or its records. Each also has a text that says the same."""
