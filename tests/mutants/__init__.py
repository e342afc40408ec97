"""Seeded defects: at least one for each invariant, to prove that its check can fail.

A check that was never seen failing proves nothing. Each mutant replaces one function, of a broker (`brokers.py`) or a
controller (`controllers.py`), by one that is wrong in one way; while it is switched on, somebody who watches the
invariants must notice.

    with mutant("leader-out-of-sync"):
        ...  # labs that are opened and run here have the defect

The name of a mutant is that of the function that makes it; its docstring says what is wrong.
"""

from tests.mutants import brokers, controllers
from tests.mutants.seeded import IMPOSSIBLE, MUTANTS, Mutant, mutant

__all__ = ["IMPOSSIBLE", "MUTANTS", "Mutant", "brokers", "controllers", "mutant"]
