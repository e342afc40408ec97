"""Pictures in notebooks are compared by their pixels, and a changed one fails the check."""

import base64
import io
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import nbformat
from PIL import Image

from kafka_ctl.paths import ROOT
from tools import check
from tools.notebooks import clean
from tools.pictures import Picture

DRAWN = """\
import base64
from IPython.display import display
display({"image/png": open("picture.txt").read()}, raw=True)"""


def png(red: int = 200, level: int = 6, width: int = 40) -> str:
    """A picture with one red pixel, packed more or less."""
    image = Image.new("RGB", (width, 30), (10, 20, 30))
    image.putpixel((5, 5), (red, 0, 0))
    out = io.BytesIO()
    image.save(out, "PNG", compress_level=level)
    return base64.b64encode(out.getvalue()).decode()


def compared(folder: Path, cells: Iterable[tuple[str, nbformat.NotebookNode]]) -> str:
    """What nbval prints of a notebook of these sources and saved outputs, some of which differ."""
    made = [
        nbformat.v4.new_code_cell(source, outputs=[saved], execution_count=number)
        for number, (source, saved) in enumerate(cells, 1)
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=made), folder / "book.ipynb")
    options = [each for each in check.NOTEBOOKS if each not in ("-n3", "--dist=loadscope")]
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", *options, str(folder / "book.ipynb")]
    reported = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert reported.returncode == 1, reported.stdout[-2000:]
    return reported.stdout


def test_pictures_are_equal_by_their_pixels() -> None:
    """However they are packed; rounding apart."""
    assert png(level=0) != png(level=9)
    assert Picture(png(level=0)) == Picture(png(level=9)) == Picture(png(202))
    assert Picture(png()) != Picture(png(210)) and Picture(png()) != Picture(png(width=41))


def test_a_notebook_with_another_picture_fails(tmp_path: Path) -> None:
    """With the very options of the check: the same pixels pass, another colour or another width fails."""
    saved = nbformat.v4.new_output("display_data", {"image/png": png()})
    drawn = {"same.txt": png(level=9), "colour.txt": png(120), "width.txt": png(width=39)}
    for name, picture in drawn.items():
        (tmp_path / name).write_text(picture)
    printed = compared(tmp_path, [(DRAWN.replace("picture.txt", name), saved) for name in drawn])
    assert re.findall(r"^FAILED .*::Cell (\d)", printed, re.MULTILINE) == ["1", "2"]
    assert "mismatch 'image/png'" in printed


def test_the_progress_of_a_slow_check_is_not_compared(tmp_path: Path) -> None:
    """Neither where it was saved nor where it is printed now; what a check finds is compared."""
    source = "print('(still running: random walk 6 of 10)\\nRight. Behind.')"
    saved = ("Right. Behind.\n", "(still running: a story)\nRight. Behind.\n", "Wrong.\n")
    printed = compared(tmp_path, [(source, nbformat.v4.new_output("stream", text=text)) for text in saved])
    assert re.findall(r"^FAILED .*::Cell (\d)", printed, re.MULTILINE) == ["2"]
    book = clean(nbformat.read(tmp_path / "book.ipynb", as_version=4))
    assert [cell.outputs[0].text for cell in book.cells] == [saved[0], saved[0], saved[2]]
