"""Pictures in notebooks are compared by their pixels, and a changed one fails the check."""

import base64
import io
import re
import subprocess
import sys
from pathlib import Path

import nbformat
from PIL import Image

from kafka_ctl.paths import ROOT
from tools import check
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
    cells = [
        nbformat.v4.new_code_cell(DRAWN.replace("picture.txt", name), outputs=[saved], execution_count=number)
        for number, name in enumerate(drawn, 1)
    ]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), tmp_path / "book.ipynb")
    options = [each for each in check.NOTEBOOKS if each not in ("notebooks", "-n3", "--dist=loadscope")]
    command = [sys.executable, "-m", "pytest", "-q", "-pno:cacheprovider", *options, str(tmp_path / "book.ipynb")]
    reported = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert reported.returncode == 1, reported.stdout[-2000:]
    assert re.findall(r"^FAILED .*::Cell (\d)", reported.stdout, re.MULTILINE) == ["1", "2"]
    assert reported.stdout.count("mismatch 'image/png'") == 2
