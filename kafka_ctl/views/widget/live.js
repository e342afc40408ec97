// The live cluster: the player, and everything that can be done to what it shows. Follows player.js in one module.
const NAMES = { broker: "Broker", partition: "Partition", zookeeper: "ZooKeeper" };
const LOOKS = { broker: ["replica", "queue", "spacetime"], partition: ["partition", "replica", "timeline"], zookeeper: ["zookeeper"] };   // the views that show more of a thing
const NEAR = { session: ["session", "network"], token: ["requests", "network"] };   // what is done to a line: these groups come first

const PIECE = 200, PATIENCE = 30000, PROMPT = 1000;   // milliseconds between two pieces of live time; without an answer until it stops, and until that is shown
const PLANNED = 12;   // the most partitions in a plan that is offered for editing

class Live extends Player {
  constructor(model, el, first = null) {
    super(model, el);
    this.root.classList.add("live");
    this.first = first;   // the future beside which this one is: its toolbar serves both
    this.toolbar();
    model.on("change:now", () => this.news());
    model.on("change:beside", () => this.besides());
    this.root.addEventListener("keydown", (event) => { if (event.key === "Escape") this.closeMenu(); });
    this.outside = (event) => { if (!this.popup.contains(event.target)) this.closeMenu(); };
    document.addEventListener("pointerdown", this.outside);
    this.besides();
  }
  get now() { return this.model.get("now"); }
  // The step that is shown and the time since then; null is the end, also when that moves on before Python hears of it.
  get moment() { return { frame: this.index < this.last ? this.index : null, since: Math.round(this.since_step) }; }
  tabNames() { return this.film.tabs; }
  // Sends a message; if the answer takes longer than `PROMPT`, the reply line says that Python is at work.
  ask(message) {
    this.model.send(message);
    if (message.do !== "run") { clearTimeout(this.slow); this.slow = setTimeout(() => this.reply.classList.add("busy"), PROMPT); }
  }
  done({ reply, form }) {
    clearTimeout(this.slow);
    this.reply.classList.remove("busy");
    if (form) (this.first ?? this).answered(reply, form);
  }
  // True for an action that only lets time pass.
  passes(action) { return this.model.get("menu").time.some((other) => other.do === action.do); }
  // A command acts at the moment that is shown; what runs ahead of the picture while time runs by itself is not kept.
  act(thing, action, given = {}, form = 0) {
    this.closeMenu();
    if (this.passes(action)) for (const one of this.aims) one.skip();
    for (const one of this.aims) one.ask({ do: "act", thing, action: action.do, given, form, live: !!one.living, ...one.moment });
  }

  load() { this.keeping(() => this.loadNow()); }
  loadNow() {
    const tabs = this.futures && this.tabs;
    super.load();
    tabs?.replaceWith(this.tabs);
    if (!this.actions) this.furnish();
    this.news();
  }
  // What stays while films come and go: a click on it must not be lost.
  furnish() {
    this.aims = [this];   // the futures in which a click acts
    this.form = html("form", { class: "form menu", hidden: "" });
    this.asks = 0;   // forms that were sent; `asked` is the number of the one that waits for its answer
    this.reply = html("div", { class: "reply", role: "status", "aria-live": "assertive" });
    this.answer = html("span", { class: "answered" });
    this.present = html("span", { class: "present" });
    this.rules = html("section", { class: "rules", "aria-label": "Invariants" });
    this.popup = html("div", { class: "menu", role: "menu", hidden: "" });
    this.popup.addEventListener("focusout", ({ relatedTarget }) => { if (relatedTarget && !this.popup.contains(relatedTarget)) this.closeMenu(); });
    this.code = html("pre", { tabindex: "0", "aria-label": "The story so far, as Python" });
    const copy = html("button", { type: "button", class: "copy" }, "Copy");
    copy.onclick = async () => { await this.copy(this.code.textContent); copy.textContent = "Copied"; };
    this.copying = copy;
    const script = html("section", { class: "script", "aria-label": "Script" }, html("h4", {}, "The story, as Python", copy), this.code);
    this.kept = html("section", { class: "kept", "aria-label": "Kept futures", hidden: "" });
    this.reply.append(this.answer, this.present);
    this.root.append(this.popup, this.form);   // they lie over the picture and do not push it
    this.root.querySelector(".bar").after(this.tools(), this.reply);
    this.root.append((this.below = html("div", { class: "below" }, this.rules, script, this.kept)));
  }
  opened() {
    super.opened();
    const open = this.open_views, shown = this.get("shown");
    if (open.join() !== shown.join()) this.set("shown", open);
    this.fork?.look(open);
  }
  look(views) { views.forEach((view, n) => this.open(view, n > 0)); }

  // Messages from the kernel.
  received(message) {
    super.received(message);
    if (message.do === "show") message.views.forEach((view) => this.take(view));
    if (message.do === "grow") this.grow(message);
    if (message.do === "play") this.arrive(message.from);
    if (message.do === "done") this.done(message);
    if (message.do === "ran") { this.asking = 0; if (message.refused) this.run_live(false); }
  }
  take(view) {
    const at = this.film.views.findIndex((known) => known.view === view.view);
    if (at < 0) this.film.views.push(view); else this.film.views[at] = view;
    this.place(view);
    this.opened();
  }
  grow({ from, frames, views, redrawn, now }) {
    const film = this.film, follows = this.index >= from - 1 || !now.travels;
    if (film.frames.length === from) {   // another display of this lab may have taken it already
      film.frames.push(...frames);
      for (const view of film.views) {
        const more = views[view.view];
        if (!more) continue;
        for (const [name, rows] of Object.entries(more.tracks)) { (view.tracks[name] ??= []).push(...rows); fill(view.tracks[name]); }
        for (const [broker, own] of Object.entries(more.details ?? {})) for (const [name, rows] of Object.entries(own)) ((view.details[broker] ??= {})[name] ??= []).push(...rows);
        view.tokens.push(...more.tokens);
      }
      film.views = film.views.filter((view) => views[view.view] || redrawn.some((other) => other.view === view.view));
    }
    for (const [name, stage] of this.stages) if (!film.views.some((view) => view.view === name)) { stage.box.remove(); this.stages.delete(name); }
    redrawn.forEach((view) => this.take(view));
    this.logged = undefined;
    this.measure();
    this.model.set("now", now);
    if (follows) this.arrive(from); else this.show();
  }
  // To let time pass again does not wait until what is new has been played.
  skip() {
    if (this.living || !this.get("playing") || this.index < this.arrived) return;
    this.set("playing", false);
    this.go(this.last);
  }
  // What is new is played; while time runs by itself the picture keeps up with it.
  arrive(from) {
    this.arrived = Math.min(from, this.last);
    const keepsUp = this.living && (this.pace.value || this.calm.matches);
    const to = keepsUp ? this.last : Math.min(from, this.last);
    if (to === this.index) this.show(); else this.go(to);
    this.beat();
    if (keepsUp) this.set("playing", false);
    else if (to < this.last && !this.calm.matches) this.set("playing", true);
  }
  // Script, rules, and what can be done, as they are now.
  news() { this.keeping(() => this.newsNow()); }
  newsNow() {
    const { script, reply, title, violations, name } = this.now, story = script.join("\n");
    this.title = title;
    this.tell();
    const says = reply.text ?? "Click a broker, a partition, a znode or a line for its menu.";
    if (this.answer.textContent !== says) this.answer.textContent = this.answer.title = says;
    this.reply.classList.toggle("refused", !!reply.refused);
    this.reply.classList.toggle("hint", !reply.text);
    this.reply.classList.toggle("tool", !!reply.answer);
    if (this.code.textContent !== story) {
      this.code.textContent = story;
      this.copying.textContent = "Copy";
      requestAnimationFrame(() => { this.code.scrollTop = this.code.scrollHeight; });
    }
    this.listed(this.rules, violations, "Invariants", "✓ Every invariant has held so far.", ({ text, frame }) => [`✗ ${text} (step ${frame})`, () => this.go(frame)]);
    this.rules.classList.toggle("broken", !!violations?.length);
    this.listed(this.kept, this.now.futures?.length ? this.now.futures : null, "Kept futures", "", (kept, future) => [`↩ ${kept}`, () => this.ask({ do: "return", future })]);
    if (this.first) this.first.differing(); else this.differing();
    this.root.setAttribute("aria-label", `${name}: a live cluster`);
    this.toolbar();
  }
  // A list of buttons, made anew only when something in it differs.
  listed(section, entries, title, none, button) {
    const key = JSON.stringify(entries ?? null);
    if (section.key === key) return;
    section.key = key;
    section.hidden = !entries;
    const rows = (entries ?? []).map((entry, n) => {
      const [text, onclick] = button(entry, n);
      return html("li", {}, html("button", { type: "button", class: "line", onclick }, text));
    });
    section.replaceChildren(html("h4", {}, title), rows.length ? html("ul", {}, ...rows) : html("p", {}, none));
  }
  async copy(text) {
    try { await navigator.clipboard.writeText(text); } catch {
      const range = document.createRange();
      range.selectNodeContents(this.code);
      getSelection().removeAllRanges(); getSelection().addRange(range);
      document.execCommand("copy");
    }
  }

  // The things at the moment at which a command acts: id -> state, and of a partition its replicas.
  get clickable() {
    const { film } = this, at = this.now.travels ? this.index : this.last;
    if (this.latest?.film !== film || this.latest.at !== at)
      this.latest = { film, at, things: Object.fromEntries(Object.entries(Object.assign({}, ...film.frames.slice(0, at + 1).map((frame) => frame.things))).filter(([, thing]) => thing)) };
    return this.latest.things;
  }
  named(kind) { return Object.keys(this.clickable).filter((id) => id.startsWith(kind + ":")).map((id) => id.slice(kind.length + 1)); }
  // The things, and what can be done to them.
  things() { return [["", "The cluster"], ["zookeeper", "ZooKeeper"], ...["broker", "partition"].flatMap((kind) => this.named(kind).map((name) => [`${kind}:${name}`, `${NAMES[kind]} ${name}`]))]; }
  thing() {
    const name = this.get("selected").replace(/^znode:.*/, "zookeeper").replace(/^(head|session|count|differ):(\d+).*/, "broker:$2");
    return this.things().some(([id]) => id === name) ? name : "";
  }
  // What can be done to a thing at that moment; the cluster has the tool's commands, too.
  offered(thing) {
    const is = this.clickable[thing]?.[0], menu = this.model.get("menu");
    const own = (menu[thing.split(":")[0]] ?? []).filter(({ when }) => !when || is === when);
    return thing ? own : [...own, ...menu.tool.map((action) => ({ ...action, group: "reassignment", thing: "tool" }))];
  }
  // The moment at which a command acts, where that is not plain; and that a command only begins when it is given.
  tell() {
    const { travels, waits, time, name } = this.now, behind = this.index < this.last, end = `${(time / 1000).toFixed(4)} s`;
    this.head.textContent = this.first || this.fork ? `${name}, ${this.title}` : this.title;
    const says = behind ? `A command acts ${travels ? `at ${((this.film.frames[this.index].time + this.since_step) / 1000).toFixed(4)} s, the moment shown` : `at the end, ${end}`}.`
      : waits && !this.living ? "Something is under way, and time stands still." : "";
    this.present.classList.toggle("waits", !behind && waits && !this.living);
    if (this.present.firstChild?.textContent !== says) this.present.replaceChildren(html("span", {}, says), ...(this.present.matches(".waits") ? [this.going()] : []));
    const since = time - this.film.frames[this.index].time, now = this.caption.querySelector(".now") ?? html("span", { class: "later now" });
    const counted = now.textContent && !behind;   // a film that comes before its time was counted with the time of the one before it
    now.textContent = behind || since < PAUSE ? "" : ` Now it is ${end}.`;
    this.caption.append(now);
    if (now.textContent || counted) this.count(Math.max(0, since));
  }
  going() {
    const onclick = () => { this.aims = [this]; this.act("", { do: "settle" }); };
    return html("button", { type: "button", class: "on", "data-do": "settle", onclick }, "Go on until quiet ▸");
  }
  showStep() { this.since_step = 0; super.showStep(); if (this.title) { this.tell(); this.toolbar(); } }
  count(passed) {
    super.count(passed);
    if (this.index < this.last) { this.since_step = passed; this.tell(); }
  }
  toolbar() { this.keeping(() => this.toolbarNow()); }
  tools() {
    const group = (name, ...inside) => html("span", { class: "group " + name, role: "group", "aria-label": name }, ...inside);
    const button = (key, title, text, onclick) => html("button", { type: "button", "data-key": key, title, onclick }, text);
    this.pick = html("select", { "aria-label": "Thing", onchange: () => this.set("selected", this.pick.value) });
    this.opens = button("open", "What can be done to it", "Commands ▾", () => {
      const { left, bottom } = this.opens.getBoundingClientRect();
      this.openMenu(this.thing(), { clientX: left - 6, clientY: bottom - 2 }, [], this.sides());
    });
    this.opens.classList.add("open");
    this.opens.setAttribute("aria-haspopup", "menu");
    const time = group("time", ...this.buttonsFor("", this.model.get("menu").time, "", () => this.sides()));
    this.quieten = time.querySelector("[data-act=settle]");
    this.alive = button("live", "Let time run by itself, while you click", "Live", () => { const on = !this.living; this.sides().forEach((one) => { one.pace.value = this.pace.value; one.run_live(on); }); });
    this.pace = html("select", { "aria-label": "Speed of live time", title: "Virtual seconds in a second; or from step to step" },
      ...[["1", "1×"], ["10", "10×"], ["", "skip silence"]].map(([value, text]) => html("option", { value }, text)));
    this.undo = button("undo", "The same story without its last command", "↶ Undo", () => this.sides().forEach((one) => one.ask({ do: "undo" })));
    this.forks = button("fork", "Two futures side by side, from the step that is shown", "Fork here", () => this.ask({ do: "fork", ...this.moment }));
    this.side = html("select", { "aria-label": "Future in which the toolbar acts", hidden: "" });
    this.runs = group("live", this.alive, this.pace);
    this.travel = group("travel", this.undo, this.forks);
    return (this.actions = html("div", { class: "actions", role: "toolbar", "aria-label": "What can be done" }, group("own", this.pick, this.opens), time, this.runs, this.travel));
  }
  // The futures in which the toolbar acts.
  sides() { return this.fork ? [this, this.fork].filter((one, n) => ["both", String(n)].includes(this.side.value)) : [this]; }
  toolbarNow() {
    const { undo, travels, waits } = this.now, things = this.things(), key = JSON.stringify(things);
    if (this.pick.key !== key) this.pick.replaceChildren(...things.map(([id, label]) => html("option", { value: id }, label)));
    this.pick.key = key;
    this.pick.value = this.thing();
    this.quieten.classList.toggle("go", waits && !this.living);
    this.undo.disabled = !undo;
    this.runs.hidden = this.travel.hidden = !travels;
  }
  // Time that runs by itself: Python is asked for one short piece after the other, while the page shows it.
  run_live(on) {
    clearTimeout(this.pulse);
    this.living = on;
    this.asking = 0;
    this.alive.setAttribute("aria-pressed", String(on));
    if (on) { this.set("playing", false); this.since = performance.now(); this.beats(true); }
    this.tell();
    this.toolbar();
  }
  beats(begins) {
    const now = performance.now(), behind = this.index < this.last, playing = this.get("playing"), late = this.asking && now - this.asking > PATIENCE;
    if (this.stale || late || document.hidden || !this.root.isConnected || (behind && !playing && !begins)) return this.run_live(false);
    this.pulse = setTimeout(() => this.beats(), PIECE);
    if (this.asking) return;
    if (!playing) {
      this.ask({ do: "run", passed: Math.round(now - this.since), speed: this.pace.value ? +this.pace.value : null, ...this.moment });
      this.asking = now;
    }
    this.since = now;
  }
  buttonsFor(thing, actions, role, aims) {
    return actions.map((action) => {
      const made = html("button", { type: "button", "data-act": action.do, title: action.hint, ...(role ? { role } : {}) }, action.label);
      made.onclick = (event) => {
        this.aims = aims();
        if (action.fields.length && this.popup.hidden) { this.halt(this.aims); this.opener = made; }
        if (action.fields.length) this.fillIn(action.thing ?? thing, action, event); else this.act(action.thing ?? thing, action);
      };
      return made;
    });
  }
  // What a field begins with.
  suggested({ name: field, kind, default: given }, name) {
    const partitions = this.named("partition"), brokers = this.named("broker"), first = partitions[0] ?? "", replicas = (partition) => this.clickable["partition:" + partition]?.[1];
    const up = brokers.filter((broker) => this.clickable["broker:" + broker][0] === "up").length;
    if (field === "replication_factor") return Math.max(1, Math.min(given, up));
    if (field === "topic" && kind === "text") for (let n = 1; ; n++) {   // a name that is free
      const free = n === 1 ? given : given + n;
      if (!partitions.some((other) => other.replace(/-\d+$/, "") === free)) return free;
    }
    if (field === "path" && this.get("selected").startsWith("znode:/")) return this.get("selected").slice(6);
    if (kind === "plan") return this.now.plan || JSON.stringify({ version: 1, partitions: partitions.slice(0, PLANNED).map((partition) => (
      { topic: partition.replace(/-\d+$/, ""), partition: +partition.match(/\d+$/)[0], replicas: replicas(partition).split(", ").map(Number) })) });
    if (field === "broker" && replicas(name)) return replicas(name).split(", ")[0];
    const followed = partitions.find((partition) => replicas(partition).split(", ").indexOf(name) > 0);   // the first replica leads, or soon will
    return { replicas: replicas(name), partition: followed ?? first, topic: first.replace(/-\d+$/, ""), brokers: brokers.join(", ") }[kind] ?? given;
  }
  // Asks for what an action needs, and then acts.
  fillIn(thing, action, event) {
    const at = this.popup.hidden ? event : this.stood;
    this.closeMenu();
    const name = thing.slice(thing.indexOf(":") + 1), inputs = {};
    const fields = action.fields.map((field) => {
      const value = this.suggested(field, name), long = ["plan", "lines"].includes(field.kind);
      const input = field.kind === "choice"
        ? html("select", { name: field.name }, ...value.split("|").map((option) => html("option", {}, option)))
        : long ? html("textarea", { name: field.name, rows: 4, cols: 60, required: "", spellcheck: "false" }, value)
        : html("input", { name: field.name, value, type: "text", ...(field.kind === "number" ? { inputmode: "decimal" } : {}),
          ...(field.kind === "optional" ? { placeholder: "none" } : { required: "" }) });
      inputs[field.name] = input;
      return html("label", {}, field.label + " ", input);
    });
    const cancel = html("button", { type: "button", onclick: () => { this.form.hidden = true; this.back(); } }, "Cancel");
    const error = html("p", { class: "error", role: "alert", hidden: "" });
    const kind = this.passes(action) ? "Let time pass" : NAMES[thing.split(":")[0]] ?? "The cluster";
    const what = kind + (thing.includes(":") ? ` ${name}: ` : ": ") + action.label.replace("…", "");
    const go = html("button", { type: "submit", class: "go" }, "Do it");
    this.asked = 0;
    this.form.replaceChildren(html("b", { class: "of" }, what), html("p", { class: "hint" }, action.hint), ...fields, error, html("span", { class: "group" }, go, cancel));
    this.form.onsubmit = (event) => {   // it stays until the lab has answered: what is refused can be corrected
      event.preventDefault();
      if (this.asked) return;   // the second of two clicks
      this.asked = ++this.asks;
      error.hidden = true;
      go.setAttribute("aria-disabled", "true");   // it keeps the focus
      this.act(thing, action, Object.fromEntries(Object.entries(inputs).map(([key, input]) => [key, input.value])), this.asked);
    };
    this.form.onkeydown = (event) => {   // JupyterLab keeps Enter from submitting
      if (event.key === "Escape") cancel.click();
      if (event.key !== "Enter" || event.target === cancel || event.target.matches("textarea")) return;
      event.preventDefault(); event.stopPropagation();
      this.form.requestSubmit();
    };
    this.form.hidden = false;
    this.stand(this.form, at);
    Object.values(inputs)[0].select?.();
    Object.values(inputs)[0].focus();
  }

  // The answer to a form, which is none of ours if another form has been opened or sent since.
  answered(reply, form) {
    if (this.asked !== form || this.form.hidden) return;
    this.asked = 0;
    const inside = this.form.contains(document.activeElement), error = this.form.querySelector(".error");
    this.form.querySelector(".go").removeAttribute("aria-disabled");
    error.textContent = reply.text;
    error.hidden = this.form.hidden = !reply.refused;
    if (!reply.refused && inside) this.back();
  }

  // A click on a thing selects it and shows what can be done to it, where it was clicked.
  choose(name, event) {
    if (event?.detail > 1) return;   // the second click of two: the first may have closed a menu that lay here
    const on = event?.target.closest("[data-on]")?.dataset.on;   // what travels has the menu of its broker
    super.choose(name, event);
    const thing = on ?? this.thing();
    if (event && thing && name && !this.stale) { event.preventDefault(); this.openMenu(thing, event, NEAR[on ? "token" : name.split(":")[0]]); }
  }
  chosen() { super.chosen(); if (this.actions) this.toolbar(); }
  // A film stands still while its reader chooses: the command acts at the moment at which it was asked for. Live time goes on.
  halt(aims) { for (const one of aims) if (!one.living) one.set("playing", false); }
  // The usual commands, and below them the others by what they touch; `first` groups stand above.
  openMenu(thing, event, first = [], aims = [this]) {
    this.halt(aims);
    this.opener = document.activeElement.closest(".kc button, .kc select");
    const label = this.things().find(([id]) => id === thing)[1], offered = this.offered(thing), groups = new Map(first.map((name) => [name, []]));
    for (const action of offered) groups.set(action.group, [...(groups.get(action.group) ?? []), action]);
    const row = (name, inside) => html("div", { class: name ? "row" : "usual" }, ...(name ? [html("span", { class: "of" }, name)] : []), html("span", { class: "group" }, ...inside));
    const rows = [...groups].filter(([, actions]) => actions.length).sort(([a], [b]) => (first.length ? 0 : !!a - !!b)).map(([name, actions]) => row(name, this.buttonsFor(thing, actions, "menuitem", () => aims)));
    const views = (LOOKS[thing.split(":")[0]] ?? []).map((view) => {
      const onclick = () => { this.closeMenu(); this.open(view); };
      return html("button", { type: "button", role: "menuitem", "data-look": view, onclick }, this.film.tabs.find(([name]) => name === view)[1]);
    });
    if (views.length) rows.push(row("look at", views));
    this.form.hidden = true;
    this.popup.replaceChildren(html("div", { class: "of head" }, label), ...rows);
    this.popup.setAttribute("aria-label", label);
    this.popup.hidden = false;
    this.stand(this.popup, event);
    const items = () => [...this.popup.querySelectorAll("button:not(:disabled)")];
    this.popup.onkeydown = (key) => {
      if (key.key === "Escape") { key.stopPropagation(); return this.closeMenu(); }   // the thing stays chosen
      const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key.key];
      if (!by) return;
      key.preventDefault(); key.stopPropagation();
      items().at((items().indexOf(document.activeElement) + by) % items().length).focus();
    };
    items()[0]?.focus();
  }
  // A menu or a form stands where it was asked for, as far as all of it is then in sight.
  stand(popup, { clientX, clientY }) {
    const room = this.root.getBoundingClientRect(), seen = this.inSight(), around = popup.offsetParent.getBoundingClientRect();
    const most = Math.min(seen.bottom, room.bottom) - Math.max(seen.top, room.top) - 12;
    this.stood = { clientX, clientY };
    popup.style.maxHeight = most + "px";
    const wide = popup.offsetWidth, high = popup.offsetHeight;
    const x = Math.max(room.left + 4, Math.min(clientX + 6, room.right - wide - 8));
    const y = Math.max(Math.max(seen.top, room.top) + 4, Math.min(clientY + 6, Math.min(seen.bottom, room.bottom) - high - 8));
    popup.style.left = x - around.left + "px";
    popup.style.top = y - around.top + "px";
  }
  // What of the page can be seen where this player is: the window, and whatever scrolls in it.
  inSight() {
    let top = 0, bottom = innerHeight;
    for (let one = this.root.parentElement; one && one !== document.body; one = one.parentElement) {
      if (!/auto|scroll|hidden/.test(getComputedStyle(one).overflowY) || one.clientHeight >= one.scrollHeight) continue;
      const at = one.getBoundingClientRect();
      [top, bottom] = [Math.max(top, at.top), Math.min(bottom, at.bottom)];
    }
    return { top, bottom };
  }
  closeMenu() {
    if (this.popup.hidden) return;
    const inside = this.popup.contains(document.activeElement);
    this.popup.hidden = true;
    if (inside) this.back();
  }
  // The focus goes back to what had it when a menu or a form was opened.
  back() { (this.opener?.isConnected ? this.opener : this.root).focus({ preventScroll: true }); }

  // Two futures side by side, with one toolbar above them and what differs below them.
  async besides() {
    const id = this.model.get("beside"), top = this.head.parentElement;
    this.fork?.close(); this.fork = null;
    this.futures?.forEach((box) => box.remove()); this.futures = null;
    this.el.classList.toggle("kc-two", !!id);
    if (this.actions.parentElement !== this.root) { this.reply.before(this.actions); top.prepend(this.tabs); }
    const child = id && await this.model.widget_manager.get_model(id);
    this.side.hidden = !child;
    if (child && this.model.get("beside") === id) this.pair(child);
    this.tell(); this.toolbar();
  }
  pair(child) {
    const shut = html("button", { type: "button", class: "shut", "aria-label": "Close this future", onclick: () => this.ask({ do: "close" }) }, "✕");
    const names = [this.now.name, child.get("now").name];
    this.side.replaceChildren(...[["both", "In both"], ["0", `In ${names[0]}`], ["1", `In ${names[1]}`]].map(([value, text]) => html("option", { value }, text)));
    const shared = (name) => html("div", { class: "kc shared " + name, "data-lm-suppress-shortcuts": "true" });
    const above = shared("above"), box = html("div", { class: "kc-fork" });
    this.compared = shared("compared");
    for (const one of [above, this.compared]) for (const kind of ["keydown", "keyup", "keypress"]) one.addEventListener(kind, (event) => event.stopPropagation());
    above.append(html("div", { class: "top" }, this.tabs, this.side), this.actions);
    this.root.before(above);
    this.root.after(box, this.compared);
    this.futures = [above, box, this.compared];
    this.paint();
    this.fork = new Live(child, box, this);
    this.fork.root.prepend(shut);
    this.fork.look(this.open_views);
    this.differing();
  }
  // One table: the first fact in which they part, and what differs at the same time.
  differing() {
    const { compared } = this.now;
    if (!this.fork || !compared?.rows) return;
    const row = (cells, kind = "td") => html("tr", {}, ...cells.map((cell, n) => html(n ? kind : "th", {}, cell)));
    this.compared.replaceChildren(html("h4", {}, compared.title));
    if (compared.rows.length) this.compared.append(html("table", { tabindex: "0", "aria-label": "How the two futures differ" }, row(["", this.now.name, this.fork.now.name], "th"), ...compared.rows.map((cells) => row(cells))));
  }
  paint() { super.paint(); this.futures?.forEach((box) => { box.dataset.theme = this.root.dataset.theme; }); }
  leave(stale) { super.leave(stale); this.futures?.forEach((box) => box.classList.toggle("stale", stale)); }
  close() {
    super.close();
    clearTimeout(this.pulse);
    this.fork?.close();
    document.removeEventListener("pointerdown", this.outside);
  }
}

export default { render: (shown) => render(shown, Live) };
