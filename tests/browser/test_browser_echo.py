"""What the kernel echoes of an earlier value while a click is not saved yet: the click stays, shown and saved.

The page of an export has a stub for the kernel's model; the echo is given in the same turn of the browser's loop as the
click, so it always comes before the save.
"""

from pathlib import Path

import browser
from filmed import failover

from kafka_ctl.views.export import page_of
from kafka_ctl.views.frames import film
from kafka_ctl.views.widget.payload import GUESS, PLAYER, payload

pytestmark = browser.needs_chromium

SHOW = "render({ model, el: "
WATCHED = f"""
window.saved = [];
model.save_changes = () => {{
  window.saved.push(structuredClone({{ index: model.get("index"), guessed: model.get("guessed") }}));
}};
window.model = model;
{SHOW}"""
"""Notes what is saved, and gives the test the model."""


def test_a_step_that_is_not_saved_outlives_an_echo(tmp_path: Path) -> None:
    """Two clicks; the echo of the first one comes after the second."""
    with browser.page() as opened:
        path = tmp_path / "film.html"
        path.write_text(page_of(payload([film(failover())])).replace(SHOW, WATCHED), encoding="utf-8")
        opened.goto(path.as_uri())
        opened.wait_for_selector(".kc[data-step='0']")
        seen = opened.evaluate(
            """() => {
              const next = document.querySelector(".kc [data-do='next']"), root = document.querySelector(".kc");
              next.click(); next.click();
              model.set("index", 1);
              return root.dataset.step;
            }"""
        )
        assert seen == "2"
        opened.wait_for_function("() => window.saved.length")
        assert opened.evaluate("() => window.saved.map((one) => one.index)") == [2]
        assert opened.get_attribute(".kc", "data-step") == "2"
        # What is saved may be changed from the kernel, as always.
        opened.evaluate("() => model.set('index', 1)")
        assert opened.get_attribute(".kc", "data-step") == "1"


def test_a_guess_that_is_not_saved_outlives_an_echo(tmp_path: Path) -> None:
    """Two partitions, and the echo of the first alone; then one is taken back, and the echo has both."""
    made = page_of(payload([film(failover(), start=len(failover()))]))
    guessing = made.replace(PLAYER, GUESS.replace("export default", "const guess =")).replace(SHOW, f"guess.{SHOW}")
    traits = 'theme: "auto", kind: "partition", many: true, guessed: [], right: [], answering: true }'
    guessing = guessing.replace('theme: "auto" }', traits).replace(
        f"guess.{SHOW}", WATCHED.replace(SHOW, f"guess.{SHOW}")
    )
    pressed = '[...document.querySelectorAll(".kc [data-guess][aria-pressed=true]")].map((part) => part.dataset.guess)'
    act = f"""([clicks, echo]) => {{
      const click = new MouseEvent("click", {{ bubbles: true }});
      for (const name of clicks) document.querySelector(`[data-guess="${{name}}"]`).dispatchEvent(click);
      model.set("guessed", echo);
      return {pressed};
    }}"""
    first, second = "partition:orders-0", "partition:orders-1"
    with browser.page() as opened:
        path = tmp_path / "guess.html"
        path.write_text(guessing, encoding="utf-8")
        opened.goto(path.as_uri())
        opened.wait_for_selector(f"[data-guess='{first}']")
        assert opened.evaluate(act, [[first, second], [first]]) == [first, second]
        opened.wait_for_function("() => window.saved.length === 1")
        assert opened.evaluate(act, [[first], [first, second]]) == [second]
        opened.wait_for_function("() => window.saved.length === 2")
        assert opened.evaluate("() => window.saved.map((one) => one.guessed)") == [[first, second], [second]]
        assert opened.evaluate(f"() => {pressed}") == [second]
