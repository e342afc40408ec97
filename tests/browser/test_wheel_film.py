"""The timing wheel in pictures: what each step shows, and that it can be read in a browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import browser
import pytest

from kafka_ctl import BadInput
from kafka_ctl.brokers.purgatory import DelayedOperation, Purgatory
from kafka_ctl.brokers.timing_wheel import TimingWheel
from kafka_ctl.views import wheel_film
from kafka_ctl.views.animated import animated
from kafka_ctl.views.frames import Film
from kafka_ctl.views.player import Player
from kafka_ctl.views.static_svg import filmstrip, static_svg


def chapter() -> TimingWheel:
    """Tasks of 2, then 8 and 19, then 350 and 450 ms; one of 7 s is cancelled."""
    wheel = TimingWheel()
    wheel.add(2)
    wheel.advance(2)
    wheel.add(8)
    wheel.add(19)
    wheel.advance(10)
    wheel.add(340)
    wheel.add(440)
    late = wheel.add(6990, name="the session")
    wheel.advance(300)
    late.cancel()
    wheel.advance(7000)
    return wheel


class Fetch(DelayedOperation):
    """Is done when told so."""

    done = False

    def try_complete(self) -> bool:
        return self.done and self.force_complete()


def parked(keys: int = 3, operations: int = 4) -> TimingWheel:
    """Fetches of several partitions; the first of these gets records, and the purgatory is purged."""
    wheel = TimingWheel()
    purgatory = Purgatory(wheel, purge_interval=1)
    fetches = [Fetch(500, f"fetch {number}") for number in range(1, operations + 1)]
    for fetch in fetches:
        purgatory.try_complete_else_watch(fetch, [f"orders-{key}" for key in range(keys)])
    for fetch in fetches[:2]:
        fetch.done = True
    purgatory.check_and_complete("orders-0")
    purgatory.check_and_complete("orders-1")
    wheel.advance(300)
    wheel.advance(600)
    return wheel


STORY = """
Timing wheel, 14 steps
  0         0.0 ms  Before the first task.
  1         0.0 ms  The task due at 2 goes into bucket 2 of level 1, which expires at 2.
  2         2.0 ms  2 ms: bucket 2 of level 1 expires. 2 runs.
  3         2.0 ms  The task due at 10 goes into bucket 10 of level 1, which expires at 10.
  4         2.0 ms  The task due at 21 goes into bucket 1 of level 1, which expires at 21.
  5        10.0 ms  10 ms: bucket 10 of level 1 expires. 10 runs.
  6        10.0 ms  The task due at 350 goes into bucket 17 of level 2, which expires at 340.
  7        10.0 ms  The task due at 450 goes into bucket 1 of level 3, which expires at 400.
  8        10.0 ms  the session, due at 7000, goes into bucket 17 of level 3, which expires at 6800.
"""


def test_a_film_tells_the_chapters_example() -> None:
    """Every task, and every bucket that expires, is a step."""
    film = wheel_film.film(chapter())
    told = film.text().splitlines()
    assert told[1:10] == STORY.splitlines()[2:]
    assert [line.partition(" ms  ")[2] for line in told[10:]] == [
        "21 ms: bucket 1 of level 1 expires. 21 runs.",
        "the session is cancelled: it leaves its bucket, which stays in the delay queue.",
        "340 ms: bucket 17 of level 2 expires. 350 moves down into bucket 10 of level 1.",
        "350 ms: bucket 10 of level 1 expires. 350 runs.",
        "400 ms: bucket 1 of level 3 expires. 450 moves down into bucket 2 of level 2.",
        "440 ms: bucket 2 of level 2 expires. 450 moves down into bucket 10 of level 1.",
        "450 ms: bucket 10 of level 1 expires. 450 runs.",
        "6800 ms: bucket 17 of level 3 expires. No task is left in it.",
    ]
    assert [frame.kind for frame in film.frames][:3] == ["start", "add", "expire"]


def ring_of(film: Film, index: int, task: str) -> float:
    """How far a task is from the centre, in a frame in which it is seen."""
    look = film.looks(index)[task]
    assert look.at is not None and "gone" not in look.styles
    x, y = film.scene.parts["core"].box.middle
    return ((look.at[0] - x) ** 2 + (look.at[1] - y) ** 2) ** 0.5


def test_a_task_goes_inwards() -> None:
    """From ring to ring, and runs in the middle."""
    film = wheel_film.film(chapter())
    frames = {frame.caption: frame.index for frame in film.frames}
    steps = [index for caption, index in frames.items() if "450" in caption]
    distances = [ring_of(film, index, "task:4") for index in steps]
    assert distances == sorted(distances, reverse=True)
    assert (len(distances), distances[-1]) == (4, 0)


def test_coarse_rings_are_seen_when_they_are_made() -> None:
    """And hands stand where Kafka's `currentTime` is."""
    film = wheel_film.film(chapter())
    seen = [sum("gone" not in film.looks(i)[f"bucket:{n}:0"].styles for n in (1, 2, 3)) for i in (0, 5, 6, 7)]
    assert seen == [1, 1, 2, 3]
    last = film.looks(-1)
    hands = [[n for n in range(20) if "gone" not in last[f"hand:{level}:{n}"].styles] for level in (1, 2, 3)]
    assert hands == [[6800 % 20], [6800 // 20 % 20], [17]]


def test_watch_lists_and_two_counters() -> None:
    """The same operation once for each key; grey where it is completed; gone after the purge."""
    film = wheel_film.film(parked())
    captions = [frame.caption for frame in film.frames]
    assert captions[1] == "fetch 1 waits for an event of orders-0, orders-1 and orders-2, until 500 at most."
    completed = "fetch 1 is completed by an event: the timer forgets it at once; it leaves the list of orders-0 only."
    assert captions[5] == completed
    assert captions[-2] == "500 ms: bucket 5 of level 2 expires. The time of fetch 3 and fetch 4 is up."
    purge = captions.index("The reaper purges the watch lists: 2 completed entries go.")
    assert [film.looks(i)["count:watched"].texts for i in (4, 6, purge)] == [
        ("watched 12",), ("watched 8",), ("watched 6",)
    ]  # fmt: skip
    assert [film.looks(i)["count:delayed"].texts for i in (4, 6, purge)] == [
        ("delayed 4",), ("delayed 2",), ("delayed 2",)
    ]  # fmt: skip
    entries = [[film.looks(6)[f"entry:{row}:{slot}"].styles for slot in (0, 3)] for row in (0, 2)]
    assert entries == [["plate gone", "plate insync"], ["plate deleting", "plate insync"]]
    assert film.frames[4].alt.endswith("Watched 12, delayed 4.")


def crowd() -> TimingWheel:
    """More tasks, levels, keys and operations than there is room for."""
    return parked(keys=12, operations=30)


def sixty() -> TimingWheel:
    wheel = TimingWheel(n=60)
    for delay in range(1, 4000, 50):
        wheel.add(delay)
    wheel.advance(5000)
    return wheel


def narrow() -> TimingWheel:
    wheel = TimingWheel(n=2)
    wheel.add(300)
    wheel.advance(300)
    return wheel


@pytest.mark.parametrize("make", [chapter, parked, crowd, sixty, narrow])
def test_everything_is_drawn_within_the_picture(make: Callable[[], TimingWheel]) -> None:
    """Nothing is clipped, and no words are wider than what they stand on."""
    film = wheel_film.film(make())
    scene = film.scene
    assert min(text.size for part in scene.parts.values() for text in part.texts) >= 11.5
    for part in scene.parts.values():
        if not part.id.startswith("task:"):
            box = part.box
            assert 0 <= box.x <= box.x + box.width <= scene.width + 1, part.id
            assert 0 <= box.y <= box.y + box.height <= scene.height + 1, part.id
    for index in range(len(film)):
        for name, look in film.looks(index).items():
            part = scene.parts[name]
            if look.at is not None:
                assert 0 < look.at[0] < scene.width
                assert 0 < look.at[1] < scene.height
            if part.shapes and look.texts and "gone" not in look.styles:
                assert sum(len(words) * 6.0 for words in look.texts) <= part.box.width + 6, (name, look.texts)


def test_many_steps_share_frames() -> None:
    film = wheel_film.film(sixty(), limit=10)
    assert len(film) <= 11
    assert re.fullmatch(r"Until [\d]+ ms: \d+ buckets? expires?; tasks .*\.", film.frames[-1].caption)
    assert film.looks(-1) == wheel_film.film(sixty()).looks(-1) | {
        name: look for name, look in film.looks(-1).items() if name.startswith(("queued", "bucket", "task", "more"))
    }


def test_it_is_a_film_like_the_others(tmp_path: Path) -> None:
    """A player, a picture that plays by itself, a page, a filmstrip; the same every time."""
    film = wheel_film.film(parked())
    player = wheel_film.player(parked(), index=3)
    assert isinstance(player, Player)
    assert (len(player), player.index, repr(player)) == (len(film), 3, film.text())
    assert animated(film) == animated(wheel_film.film(parked()))
    assert "fetch 1" in static_svg(film, 3) and filmstrip(film).startswith("<svg")
    assert wheel_film.export(parked(), tmp_path / "wheel.svg").read_text().startswith("<svg")
    assert "fetch 1" in wheel_film.export(parked(), tmp_path / "wheel.html").read_text()


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="keeps no journal"):
        wheel_film.film(TimingWheel(journal=False))
    with pytest.raises(BadInput, match="nothing has been added"):
        wheel_film.film(TimingWheel())
    with pytest.raises(BadInput, match="limit cannot be 0; it is a number of frames"):
        wheel_film.film(chapter(), limit=0)
    with pytest.raises(BadInput, match="speed cannot be"):
        wheel_film.player(chapter(), speed=-1)
    with pytest.raises(BadInput, match=r"the ending '\.txt' is not one of"):
        wheel_film.export(chapter(), tmp_path / "wheel.txt")
    wheel = TimingWheel(n=61)
    wheel.add(1)
    with pytest.raises(BadInput, match="a ring of 61 buckets cannot be drawn; 60 at most"):
        wheel_film.film(wheel)


@browser.needs_chromium
@pytest.mark.parametrize("width", [1280, 811, 560])
def test_it_can_be_read_in_a_browser(tmp_path: Path, width: int) -> None:
    """At any width: the whole picture without scrolling, no text below 11 pixels, none across an edge."""
    path = wheel_film.export(parked(), tmp_path / "wheel.html")
    with browser.page(viewport={"width": width, "height": 860}) as page:
        page.goto(path.as_uri())
        page.wait_for_selector(".kc[data-step='0']")
        for _ in range(4):
            page.click(".kc [data-do='next']")
        page.wait_for_selector(".kc[data-step='4']")
        found = page.evaluate(
            """() => {
                const view = document.querySelector('.view'), svg = view.querySelector('svg');
                const whole = svg.getBoundingClientRect(), scale = whole.width / svg.getAttribute('width');
                const shown = [...svg.querySelectorAll('.part:not(.s-gone) > text')];
                const sizes = shown.map((text) => text.getAttribute('font-size') * scale);
                const out = shown.filter((text) => {
                    const box = text.getBoundingClientRect();
                    return box.left < whole.left || box.right > whole.right || box.bottom > whole.bottom;
                });
                return [view.scrollWidth <= view.clientWidth, Math.min(...sizes), out.map((text) => text.textContent)];
            }"""
        )
    assert found[0]
    assert found[1] >= 11
    assert found[2] == []
