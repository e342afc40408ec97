"""`python3 -m kafka_ctl ...`: set up what is missing, then do what was asked.

This file and `kafka_ctl/__init__.py` must also run on a Python that is too old, far enough to say so.
"""

import sys

if sys.version_info < (3, 11):
    sys.exit(
        "kafka_ctl needs Python 3.11 or newer and this is %d.%d; install a newer one beside it"
        " and name it in the command, for example: python3.12 -m kafka_ctl lab" % sys.version_info[:2]
    )

from kafka_ctl.setup.bootstrap import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
