"""The timing wheel in pictures: what each step shows, and that it can be read in a browser."""

from collections.abc import Callable
from pathlib import Path

import browser
import pytest
from prose import Prose

from kafka_ctl import BadInput
from kafka_ctl.brokers.purgatory import DelayedOperation, Purgatory
from kafka_ctl.brokers.timing_wheel import TimingWheel
from kafka_ctl.views.frames import Film
from kafka_ctl.views.svg import animated, filmstrip, static_svg
from kafka_ctl.views.widget.player import Player
from kafka_ctl_course import wheel_film


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


def test_a_film_tells_the_chapters_example(prose: Prose) -> None:
    """Every task, and every bucket that expires, is a step."""
    film = wheel_film.film(chapter())
    prose(film.text())
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


def test_watch_lists_and_two_counters(prose: Prose) -> None:
    """The same operation once for each key; grey where it is completed; gone after the purge."""
    film = wheel_film.film(parked())
    captions = [frame.caption for frame in film.frames]
    prose(captions[1], captions[5], captions[-2])
    purge = next(n for n, caption in enumerate(captions) if "reaper purges" in caption)
    assert [film.looks(i)["count:watched"].texts for i in (4, 6, purge)] == [
        ("watched 12",),
        ("watched 8",),
        ("watched 6",),
    ]
    assert [film.looks(i)["count:delayed"].texts for i in (4, 6, purge)] == [
        ("delayed 4",),
        ("delayed 2",),
        ("delayed 2",),
    ]
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


def clock() -> TimingWheel:
    wheel = TimingWheel(1000, (60, 60, 12))
    for seconds in (5, 700, 7_300, 40_000):
        wheel.add(1000 * seconds)
    wheel.advance(41_000_000)
    return wheel


@pytest.mark.parametrize("make", [chapter, parked, crowd, sixty, narrow, clock])
def test_everything_is_drawn_within_the_picture(make: Callable[[], TimingWheel]) -> None:
    """Nothing is clipped, and no words are wider than what they stand on."""
    film = wheel_film.film(make())
    scene = film.scene
    assert {text.size for part in scene.parts.values() for text in part.texts} <= {12, 13, 14}
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


def test_many_steps_share_frames(prose: Prose) -> None:
    film = wheel_film.film(sixty(), limit=10)
    assert len(film) <= 11
    prose(film.frames[-1].caption)
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


def test_bad_input(prose: Prose, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="keeps no journal"):
        wheel_film.film(TimingWheel(journal=False))
    prose.refuses(BadInput, wheel_film.film, TimingWheel())
    prose.refuses(BadInput, wheel_film.film, chapter(), limit=0)
    with pytest.raises(BadInput, match="speed cannot be"):
        wheel_film.player(chapter(), speed=-1)
    prose.refuses(BadInput, wheel_film.export, chapter(), tmp_path / "wheel.txt")
    wheel = TimingWheel(n=61)
    wheel.add(1)
    prose.refuses(BadInput, wheel_film.film, wheel)


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
