"""The part of the wheel beside the packages: the copy of the course that `kafka-ctl lab` gives a learner.

It is made while the wheel is built. An editable installation has none of it, for it has the checkout; nor
has the site's wheel, for its pages have them.
"""

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CustomBuildHook(BuildHookInterface):
    """Adds the files below `kafka_ctl_course/folder`."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Add them to a wheel that is to be installed elsewhere."""
        if version != "standard" or "KAFKA_CTL_WITHOUT_COURSE" in os.environ:
            return
        sys.path.insert(0, self.root)
        from tools.editions import course

        self.made = TemporaryDirectory()
        for name, text in course().items():
            path = Path(self.made.name, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        build_data["force_include"][self.made.name] = "kafka_ctl_course/folder"

    def finalize(self, version: str, build_data: dict, artifact_path: str) -> None:
        """Remove the files, which the wheel has."""
        if hasattr(self, "made"):
            self.made.cleanup()
