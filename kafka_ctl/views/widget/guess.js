// A question that is answered in the picture: the thing that is clicked, or chosen with Tab and Enter, is the guess. Follows player.js in one module.
class Guess extends Player {
  constructor(model, el) {
    super(model, el);
    this.root.classList.add("guess");
    this.root.setAttribute("aria-label", "A question: choose in the picture");
    for (const name of ["guessed", "answering", "right"]) model.on("change:" + name, () => this.guessed());
    this.root.addEventListener("keydown", (event) => this.enter(event), true);
    this.offer();
  }
  load() { super.load(); if (this.root.classList.contains("guess")) this.offer(); }
  // The id of the thing that a part stands for, if the question is about such things.
  thing(part) {
    const kind = this.model.get("kind") + ":";
    for (let at = part; at; at = at.parentElement?.closest("[data-id]")) {
      const found = [at.dataset.of, at.dataset.id, at.dataset.in].find((id) => id?.startsWith(kind));
      if (found) return found;
    }
    return "";
  }
  // Each thing is one stop of the Tab key.
  offer() {
    const svg = this.root.querySelector(".stage svg"), offered = new Set();
    svg.setAttribute("role", "group");
    for (const part of svg.querySelectorAll("[data-id]")) {
      const thing = this.thing(part), own = part.dataset.id === thing || part.dataset.id.startsWith("replica:");
      if (!thing || !own || offered.has(thing) || part.classList.contains("s-gone")) continue;
      offered.add(thing);
      for (const [name, value] of Object.entries({ tabindex: 0, role: "button", "aria-label": thing.replace(":", " "), "data-guess": thing })) part.setAttribute(name, value);
    }
    svg.addEventListener("click", (event) => this.pick(this.thing(event.target.closest("[data-id]"))), true);
    this.guessed();
  }
  enter(event) {
    const part = event.target.closest?.("[data-guess]");
    if (!part || !["Enter", " "].includes(event.key)) return;
    event.preventDefault(); event.stopPropagation();
    this.pick(part.dataset.guess);
  }
  pick(thing) {
    if (!thing || !this.model.get("answering")) return;
    const before = this.get("guessed"), many = this.model.get("many");
    const guessed = !many ? [thing] : before.includes(thing) ? before.filter((one) => one !== thing) : [...before, thing];
    this.set("guessed", guessed);
    this.model.send({ do: "guess", guessed });   // a busy kernel would get what is set after a click on Commit
  }
  guessed() {
    const guessed = this.get("guessed"), open = this.model.get("answering"), right = this.model.get("right");
    for (const part of this.root.querySelectorAll(".stage [data-id]")) {
      const chosen = guessed.includes(part.dataset.id) || guessed.includes(part.dataset.of);
      const answer = right.includes(part.dataset.id) || right.includes(part.dataset.of), own = !part.dataset.id.startsWith("head:");
      part.classList.toggle("chosen", chosen && own);
      part.classList.toggle("right", answer && own);
      part.classList.toggle("wrong", right.length > 0 && chosen && !answer && own);
      if (part.dataset.guess) {
        part.setAttribute("aria-pressed", String(guessed.includes(part.dataset.guess)));
        part.setAttribute("aria-disabled", String(!open));
      }
    }
  }
  chosen() {}
  key() {}
}

export default { render: (shown) => render(shown, Guess) };
