"""Pictures in notebooks are compared by their pixels, and a changed one fails the check."""

import base64
import io
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
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


def compared(folder: Path, book: nbformat.NotebookNode) -> subprocess.CompletedProcess[str]:
    """How nbval judges a notebook in a folder, with the very options of the check."""
    nbformat.write(book, folder / "book.ipynb")
    options = [each for each in check.NOTEBOOKS if each not in ("notebooks", "-n3", "--dist=loadscope")]
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", *options, str(folder / "book.ipynb")]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_pictures_are_equal_by_their_pixels() -> None:
    """However they are packed; rounding apart."""
    assert png(level=0) != png(level=9)
    assert Picture(png(level=0)) == Picture(png(level=9)) == Picture(png(202))
    assert Picture(png()) != Picture(png(210)) and Picture(png()) != Picture(png(width=41))


@pytest.mark.parametrize(("drawn", "fails"), [(png(level=9), False), (png(120), True), (png(width=39), True)])
def test_a_notebook_with_another_picture_fails(tmp_path: Path, drawn: str, fails: bool) -> None:
    """It is compared like a text."""
    saved = nbformat.v4.new_output("display_data", {"image/png": png()})
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(DRAWN, outputs=[saved], execution_count=1)])
    (tmp_path / "picture.txt").write_text(drawn)
    reported = compared(tmp_path, book)
    assert reported.returncode == fails, reported.stdout[-2000:]
    assert ("mismatch 'image/png'" in reported.stdout) == fails


def test_the_progress_of_a_slow_check_is_not_compared(tmp_path: Path) -> None:
    """Neither where it was saved nor where it is printed now; what a check finds is compared."""
    source = "print('(still running: random walk 6 of 10)\\nRight. Behind.')"
    for saved, fails in (
        ("Right. Behind.\n", False),
        ("(still running: a story)\nRight. Behind.\n", False),
        ("Wrong.\n", True),
    ):
        output = nbformat.v4.new_output("stream", text=saved)
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source, outputs=[output], execution_count=1)])
        assert compared(tmp_path, book).returncode == fails
        assert "still" not in clean(book).cells[0].outputs[0].text
