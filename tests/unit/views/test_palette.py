"""Colours that everybody can tell apart and read, in both themes, and never alone."""

from itertools import combinations

import pytest

from kafka_ctl.views.palette import GLYPHS, STYLES, THEMES, css, inline
from kafka_ctl.views.status import GLYPHS as SIGNS

EYES = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "no red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "no green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "no blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
"""What is seen of linear red, green and blue (Machado, Oliveira and Fernandes 2009, severity 1)."""


GROUNDS = """
    leader insync lagging offline new deleting zoo down active doubtful up plate frame refused watch write
""".split()
"""The styles that words stand on."""


def linear(colour: str) -> list[float]:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(a: str, b: str) -> float:
    """As WCAG 2 counts it: 1 to 21."""
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def lab(colour: str, eye: str) -> list[float]:
    """CIE L*a*b* of a colour as such an eye sees it."""
    seen = [min(1.0, max(0.0, sum(m * c for m, c in zip(row, linear(colour), strict=True)))) for row in EYES[eye]]
    red, green, blue = seen
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.95047
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.08883
    fx, fy, fz = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return [116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)]


def distance(a: str, b: str, eye: str) -> float:
    return sum((p - q) ** 2 for p, q in zip(lab(a, eye), lab(b, eye), strict=True)) ** 0.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("style", GROUNDS)
def test_words_can_be_read_on_their_ground(style: str, theme: str) -> None:
    """4.5 to 1, for text of ordinary size."""
    colours, slots = THEMES[theme], {**STYLES["plate"], **STYLES[style]}
    ground = slots["body"]["fill"].removeprefix("$")
    ink = slots.get("label", STYLES["plate"]["label"])["fill"].removeprefix("$")
    assert contrast(colours[ink], colours[ground]) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
def test_words_can_be_read_on_the_page(theme: str) -> None:
    colours = THEMES[theme]
    for ink in ("ink", "dim", "good", "leader", "zoo_line", "off_ink", "bad"):
        assert contrast(colours[ink], colours["page"]) >= 4.5, ink


@pytest.mark.parametrize("theme", THEMES)
def test_lines_and_signs_can_be_seen(theme: str) -> None:
    """3 to 1 against the page, for what is not text."""
    colours = THEMES[theme]
    for line in ("line", "leader", "lag_line", "off_line", "good", "zoo_line", "hot", "bad"):
        assert contrast(colours[line], colours["page"]) >= 3, line


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("theme", THEMES)
def test_states_differ_for_every_eye(theme: str, eye: str) -> None:
    """The outlines of what a replica or broker can be: a distance of 10 is plain to see."""
    states = {name: THEMES[theme][name] for name in ("leader", "lag_line", "off_line", "good")}
    for (a, x), (b, y) in combinations(states.items(), 2):
        assert distance(x, y, eye) >= 10, (a, b)


def test_the_check_of_eyes_can_fail() -> None:
    """Red and green of one brightness are far apart for most eyes and close for some."""
    assert distance("#b05050", "#6b7f3f", "all") > 40
    assert distance("#b05050", "#6b7f3f", "no green") < 20


def test_no_state_is_reported_by_colour_alone() -> None:
    """Each has a sign of its own, and an outline of its own."""
    assert len(set(SIGNS.values())) == len(SIGNS)
    assert set(SIGNS.values()) <= set(GLYPHS)
    outlined = ("insync", "lagging", "offline", "new")
    dashes = [STYLES[name]["body"].get("stroke-dasharray", "solid") for name in outlined]
    assert len(set(dashes)) == len(dashes)


def test_both_themes_name_the_same_colours() -> None:
    assert THEMES["light"].keys() == THEMES["dark"].keys()
    used = {v[1:] for slots in STYLES.values() for look in slots.values() for v in look.values() if v[0] == "$"}
    assert used <= THEMES["light"].keys()
    assert THEMES["light"].keys() - used <= {"page", "ink"}, "a colour nobody uses"


def test_later_styles_win_in_the_sheet_and_inline() -> None:
    """`insync` comes after `plate` in the table, in whatever order they are asked for."""
    assert inline("insync plate", "body") == inline("plate insync", "body")
    assert THEMES["light"]["insync"] in inline("insync plate", "body")
    sheet = css()
    assert sheet.index(".s-plate>.body") < sheet.index(".s-insync>.body")
    assert f"--kc-insync:{THEMES['light']['insync']}" in sheet
