"""Bytecode for what Python in the browser imports first: without it, every start compiles these modules again.

Only the Python that loads bytecode can make it, so Pyodide runs once in Node.
"""

from __future__ import annotations

import base64
import json
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

from kafka_ctl.errors import KafkaCtlError
from tools.site.wheels import RUNTIME

STDLIB = RUNTIME[-1]
NODE = """
import { pathToFileURL } from "node:url";
const [folder, packages, source] = process.argv.slice(1);
const { loadPyodide } = await import(pathToFileURL(folder + "/pyodide.mjs").href);
const env = { PYTHONHASHSEED: "0", KAFKA_CTL_DATA: "" };
try {
  const python = await loadPyodide({ indexURL: folder, packages: JSON.parse(packages), env });
  console.log(python.runPython(source));
} catch (error) {
  console.error(error.message);   // without the minified lines of Pyodide's script
  process.exit(1);
}
"""
PYTHON = """
import base64, json, py_compile, site, sys
import ipywidgets, kafka_ctl.views.widget.live, kafka_ctl_course.widgets, piplite.piplite
from kafka_ctl.browser import EXAMPLE
from kafka_ctl.lab.lab import Lab
from kafka_ctl.views.frames import film

with Lab.replay(EXAMPLE.story) as lab:
    film(lab.trace)
import pyodide_kernel  # the last one: it takes the place of standard output
sources, found = [f"{place}/" for place in site.getsitepackages()], {}
for module in [*sys.modules.values()]:
    path, loader = getattr(module, "__file__", None) or "", getattr(module, "__loader__", None)
    root = next((place for place in (f"{getattr(loader, 'archive', None)}/", *sources) if path.startswith(place)), None)
    if path.endswith(".py") and root:
        with open("module.py", "wb") as file:
            file.write(loader.get_data(path))
        # Unpacked files have the time of their unpacking: what is loaded must not be compared with it.
        unchecked = py_compile.PycInvalidationMode.UNCHECKED_HASH
        py_compile.compile("module.py", "module.pyc", path, doraise=True, invalidation_mode=unchecked)
        with open("module.pyc", "rb") as file:
            found[path.removeprefix(root)] = base64.b64encode(file.read()).decode()
json.dumps([sys.implementation.cache_tag, found])
"""
"""The modules of the kernel, of a lab and of its widget, as `[tag, {path: bytecode}]`."""


def add(folder: Path, packages: Sequence[str], node: Sequence[str]) -> None:
    """Put bytecode into Pyodide's files and the wheels of `folder`. Raises KafkaCtlError if Pyodide fails."""
    command = [*node, "--input-type=module", "--eval", NODE, "--", str(folder), json.dumps(packages), PYTHON]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", stdin=subprocess.DEVNULL)
    if done.returncode:
        raise KafkaCtlError(f"Pyodide did not run in Node: {''.join(done.stderr.strip().splitlines()[-1:])}")
    tag, found = json.loads(done.stdout.splitlines()[-1])
    for path in (*folder.glob("*.whl"), folder / STDLIB):
        with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
            for name in packed.namelist():
                if name in found:
                    packed.writestr(_entry(name, tag, path.suffix), base64.b64decode(found[name]))


def _entry(source: str, tag: str, suffix: str) -> zipfile.ZipInfo:
    """The place of a module's bytecode: beside the source in an imported archive, else where Python looks."""
    path = Path(source)
    place = f"{source}c" if suffix == ".zip" else (path.parent / "__pycache__" / f"{path.stem}.{tag}.pyc").as_posix()
    entry = zipfile.ZipInfo(place)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry
