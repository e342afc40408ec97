"""Tools of the checkout, which no learner needs."""

import sys

# jsonschema, which nbformat imports, would take two seconds to build parsers of addresses that nobody here checks.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]
