// Plays films: pictures whose parts only change looks. Plain ESM, no import, no build; the style sheet does the motion.
const NS = "http://www.w3.org/2000/svg";
const ICONS = {
  first: "M3 3h2v10H3zM13 3v10L6 8z", back: "M11 3v10L4 8z", play: "M4 2v12l9-6z", pause: "M4 3h3v10H4zM9 3h3v10H9z",
  next: "M5 3v10l7-5z", last: "M3 3v10l7-5zM11 3h2v10h-2z", loop: "M8 3a5 5 0 1 1-4.6 3H5l-2.6-3L0 6h1.8A6.5 6.5 0 1 0 8 1.5z",
  jump: "M2 4v8l5-4zM8 4v8l5-4z",
};
const SPEEDS = [0.25, 0.5, 1, 2, 4];
const KIND_NAMES = { zk: "znode", watch: "watch", event: "event", controller: "controller", partition: "partition",
  replica: "replica", election: "election", request: "request", response: "error", broker: "broker",
  fault: "fault", violation: "invariant violated", add: "task added", expire: "bucket expires", cancel: "task cancelled",
  wait: "operation waits", complete: "operation completed", purge: "watch lists purged" };
const MARKED = ["fault", "election", "controller", "violation"];
const COMPACT = 540;   // a view beside another has at least so many pixels, if there are so many
const STEP = "#step-";   // how a link in the prose names a step
const SHORT = 10, PAUSE = 100;   // milliseconds from which on time has a length, and from which on it is written
const AXIS = "Steps over time. Marks: thick red-brown a fault or violation (in the dark theme orange), yellow a controller change, blue an election; grey: time in which nothing happens.";
const LOGS = { events: "controller", log: "state-change" };   // Kafka's logs, by the names of a frame's lines of them
const STANDS = { leader: "leaders", insync: "in sync", lagging: "out of sync", offline: "offline", new: "new", deleting: "being deleted" };
const COUNT = /(?<=\S )\d+\.\d(?=(?: of [\d.]+)? s(?:,|$))/g;   // what counts seconds: `silent 3.2 of 6 s`, `orders-0 for 3.2 s, orders-1 for 0.4 s`
const RAILS = 22;   // pixels of a column that a pill leaves to the lines beside it; `travel.py` says the same
const BESIDE = 1018;   // pixels of a player from which on the log may stand beside the picture
const STUTTER = 900;   // with more parts than this nothing is animated

// Fills an element. A function among the attributes handles an event: `onclick`.
function filled(element, attributes, inside) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...inside);
  return element;
}
function html(tag, attributes = {}, ...inside) { return filled(document.createElement(tag), attributes, inside); }
function svg(tag, attributes = {}, ...inside) { return filled(document.createElementNS(NS, tag), attributes, inside); }
function icon(name) { return svg("svg", { viewBox: "0 0 16 16", "aria-hidden": "true" }, svg("path", { d: ICONS[name] })); }
function button(name, label, onclick) {
  return html("button", { type: "button", "data-do": name, "aria-label": label, title: label, onclick }, icon(name));
}
// A length of time with a unit that suits it; `duration` in captions.py says the same.
function duration(ms) {
  for (const [size, unit] of [[3600000, "h"], [60000, "min"], [1000, "s"]]) if (ms >= size) return `${+(ms / size).toPrecision(3)} ${unit}`;
  return `${ms >= 10 ? ms.toFixed(0) : +ms.toPrecision(2)} ms`;
}
function classes(styles) {
  return styles.split(" ").map((style) => "s-" + style).join(" ");
}

// One view: a drawing whose parts are set to the looks of a frame.
class Stage {
  constructor(view, glyphs, choose) {
    this.view = view; this.glyphs = glyphs; this.shown = {};
    for (const track of Object.values(view.tracks)) fill(track);
    const parsed = new DOMParser().parseFromString(view.svg, "image/svg+xml").documentElement;
    this.svg = document.importNode(parsed, true);
    this.svg.querySelectorAll("script").forEach((element) => element.remove());
    const [wide, high] = ["width", "height"].map((side) => +this.svg.getAttribute(side));
    this.flow = view.flow && new Flow(this.svg, view.flow);
    this.measure(wide, high);
    this.parts = new Map();
    this.svg.querySelectorAll("[data-id]").forEach((part) => this.parts.set(part.dataset.id, part));
    this.travel = this.svg.querySelector(".travel");
    this.svg.classList.toggle("still", this.parts.size > STUTTER);
    this.svg.addEventListener("click", (event) => {
      const part = event.target.closest("[data-id]:not([data-id=camera])");
      choose(part ? part.dataset.of || part.dataset.id : "", event);
    });
    this.svg.addEventListener("contextmenu", (event) => {
      const part = event.target.closest("[data-id]:not([data-id=camera])");
      if (part) choose(part.dataset.of || part.dataset.id, event);
      if (event.defaultPrevented) event.stopPropagation();   // we have a menu: JupyterLab's is not wanted
    });
  }
  measure(wide, high) {
    this.needs = this.flow ? this.flow.least(2) : wide;
    this.wide = wide > 2 * high;
    this.svg.style.setProperty("--wide", wide + "px");
  }
  // Lays the picture out for so many pixels.
  fit(pixels) {
    if (!this.flow || !pixels || pixels === this.pixels) return;
    this.pixels = pixels;
    if (!this.flow.fit(pixels - 2)) return;
    this.svg.classList.add("still");
    this.flow.apply(this.parts);
    this.measure(...this.flow.size);
    this.shown = {};
    if (this.index !== undefined) this.show(this.index, 0);
    requestAnimationFrame(() => requestAnimationFrame(() => this.svg.classList.toggle("still", this.parts.size > STUTTER)));
  }
  // `jumped`: what changes does so at once.
  show(index, moving, words = this.words, jumped = true) {
    this.index = index; this.words = words;
    const tokens = (this.view.tokens[index] ?? []).map((token) => this.token(token, moving, index));   // before anything changes: curves are measured
    for (const name in this.view.tracks) {   // a thousand or more: no pair is made of each
      const look = lookAt(this.view.tracks[name], index);
      if (this.shown[name] !== look) { this.dress(this.parts.get(name), look, jumped); this.shown[name] = look; }
    }
    this.svg.setAttribute("aria-label", `${this.view.title}, step ${index}. ${words ?? ""}`);
    this.travel.replaceChildren(...tokens.map(({ group }) => group));
    for (const { pill, way } of tokens) if (way) pill.animate(way, { duration: moving, easing: "ease-in-out" });
    this.mark();
  }
  dress(part, look, jumped) {
    if (!part || !look) return;
    const [, styles, texts, glyph, at] = look;
    part.setAttribute("class", `part ${jumped ? "jumped " : ""}${classes(styles)}`);
    if (at) {
      if (!part.style.transform) {   // what was nowhere does not come gliding
        part.classList.add("placed");
        requestAnimationFrame(() => requestAnimationFrame(() => part.classList.remove("placed")));
      }
      const [x, y] = this.flow ? this.flow.at(at) : at;
      part.style.transform = `translate(${x}px,${y}px)`;
    }
    const sign = part.querySelector(":scope > .glyph");
    if (sign && glyph) sign.setAttribute("d", this.glyphs[glyph]);
    if (texts) part.querySelectorAll(":scope > .label").forEach((label, i) => this.write(label, texts[i] ?? ""));
  }
  // Words, as many as there is room for; the rest is in a tooltip. One word, as a path, has narrower letters before it is cut.
  write(label, text) {
    const room = this.flow && +label.dataset.room, size = label.getAttribute("font-size"), cut = room ? shortened(text, room, size) : text;
    const narrow = cut !== text && !text.includes(" ") && widthOf(text, size) <= 1.25 * room, shown = narrow ? text : cut;
    if (narrow) { label.setAttribute("textLength", room); label.setAttribute("lengthAdjust", "spacingAndGlyphs"); } else label.removeAttribute("textLength");
    if (label.textContent === shown) return;
    label.textContent = shown;
    if (shown !== text) label.append(svg("title", {}, text));
  }
  // What travels in a step: its line, and its pill with the way to where it rests.
  token([line, label, styles, x, y, width, ends], moving, index) {
    const of = ends?.findLast((end) => end.startsWith("broker:"));   // the pill stands with it
    const group = svg("g", { class: "part " + classes(styles), "data-id": "token", "data-of": "step:" + index });
    const wire = svg("path", { class: "wire", d: this.flow && of ? this.flow.way(line, ends) : line });
    if (this.flow && of) { [x, y] = this.flow.at([x, y], of); width = Math.min(width, this.flow.blocks.get(of).place[2] - RAILS); group.dataset.on = of; }
    const rect = svg("rect", { class: "body", x: -width / 2, y: -9, width, height: 18, rx: 9 });
    const text = svg("text", { class: "label", "text-anchor": "middle", y: 4.2, "font-size": 12 }, of ? shortened(label, width - 8, 12) : label);
    const pill = svg("g", { class: "pill " + classes(styles) }, svg("title", {}, label), rect, text);
    pill.style.transform = `translate(${x}px,${y}px)`;
    group.append(wire, pill);
    return { group, pill, way: moving && !styles.includes("parked") && route(wire, x, y) };
  }
  // Whether a mark of the legend is in the picture now: lines and pills just so, anything else among other styles.
  has(styles, kind, text) {
    const own = styles.split(" ").filter((style) => !["plate", "note", "mark"].includes(style)), word = text.split(":")[0];
    if (!own.length) return kind === "words" ? [...this.svg.querySelectorAll(".label")].some((label) => label.textContent.startsWith(word)) : true;
    const exact = ["line", "pill"].includes(kind) && styles.split(" ").length;
    return [...this.svg.querySelectorAll(own.map((style) => ".s-" + style).join(""))].some((part) => !part.closest(".s-gone") && (!exact || [...part.classList].filter((name) => name.startsWith("s-") && name !== "s-parked").length === exact));
  }
  choose(name) { this.chosen = name; this.mark(); }
  // Marks what is chosen: a thing wherever it is drawn, a step and what travels in it.
  mark() {
    this.svg.querySelectorAll(".chosen").forEach((part) => part.classList.remove("chosen"));
    if (!this.chosen) return;
    const named = `[data-id="${CSS.escape(this.chosen)}"], [data-of="${CSS.escape(this.chosen)}"]`;
    this.svg.querySelectorAll(named).forEach((part) => part.classList.add("chosen"));
  }
}
// The way of a pill on its line, from corner to corner, up to the place next to where it rests. Only a curve is measured: each
// answer takes as long as the browser needs to see that no layout is due.
function route(wire, x, y) {
  const line = wire.getAttribute("d"), curved = /[A-KN-Z]/i.test(line), length = curved && wire.getTotalLength();
  const at = (_, i) => { const point = wire.getPointAtLength(length * i / 24); return [point.x, point.y]; };
  const points = curved ? Array.from({ length: 25 }, at) : line.slice(1).split("L").map((pair) => pair.split(",").map(Number));
  let nearest = Infinity, way = [];
  for (let i = 1; i < points.length; i++) {
    const [[ax, ay], [bx, by]] = [points[i - 1], points[i]], [dx, dy] = [bx - ax, by - ay];
    const part = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
    const away = (ax + part * dx - x) ** 2 + (ay + part * dy - y) ** 2;
    if (away < nearest) { nearest = away; way = points.slice(0, i); }
  }
  way.push([x, y]);
  const passed = [0];
  way.slice(1).forEach(([px, py], i) => passed.push(passed[i] + Math.hypot(px - way[i][0], py - way[i][1])));
  return way.map(([px, py], i) => ({ transform: `translate(${px}px,${py}px)`, offset: passed.at(-1) ? passed[i] / passed.at(-1) : i / (way.length - 1) }));
}
// What a change leaves out stays as it was.
function fill(track) {
  track.forEach((look, i) => {
    for (const column of [2, 3, 4]) look[column] = look[column] || (i > 0 ? track[i - 1][column] : 0);
  });
}
// JupyterLab saves the widgets that have a kernel. After a restart, and in a notebook that was opened again, this would lose the
// pictures: a widget without a kernel is saved as long as an output shows it, with what it refers to.
function keepShown(manager) {
  if (manager.keepsShown) return;
  manager.keepsShown = true;
  const saved = manager.get_state_sync.bind(manager);
  manager.get_state_sync = (options) => {
    const models = [...manager._modelsSync.values()], dead = models.filter((model) => !model.comm_live);
    let made;
    try {
      for (const model of dead) model._comm_live = true;   // nothing is notified
      made = saved(options);
    } finally {
      for (const model of dead) model._comm_live = false;
    }
    const { state } = made, kept = new Set();
    const keep = (id) => {
      if (kept.has(id) || !state[id]) return;
      kept.add(id);
      for (const [, other] of JSON.stringify(state[id].state).matchAll(/IPY_MODEL_(\w+)/g)) keep(other);
    };
    const shown = JSON.stringify(manager.context.model.sharedModel.cells.map((cell) => cell.toJSON().outputs));
    for (const model of models) if (model.comm_live || shown.includes(model.model_id)) keep(model.model_id);
    for (const id of Object.keys(state)) if (!kept.has(id)) delete state[id];
    return made;
  };
}
function lookAt(track, index) {
  let low = 0, high = track.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (track[middle][0] <= index) low = middle; else high = middle - 1;
  }
  return track[low];
}

class Player {
  constructor(model, el) {
    this.model = model; this.el = el; this.timer = 0; this.shown = null;
    this.calm = matchMedia("(prefers-reduced-motion: reduce)");
    this.root = html("div", { class: "kc", tabindex: "0", role: "region", "aria-label": "Player of the controller's steps",
      "data-lm-suppress-shortcuts": "true" });   // keys pressed in here are ours, not JupyterLab's
    el.append(this.root);
    this.root.addEventListener("keydown", (event) => this.key(event));
    this.leading = (event) => this.lead(event);
    document.addEventListener("click", this.leading, true);
    for (const kind of ["keydown", "keyup", "keypress"]) this.root.addEventListener(kind, (event) => event.stopPropagation());
    this.watchTheme();
    this.sizes = new ResizeObserver(() => { this.spread(); this.follow(); });
    this.load();
    this.sizes.observe(this.root);
    for (const [event, action] of [["change:film", () => this.load()], ["change:index", () => this.show()],
      ["change:playing", () => this.beat()], ["change:speed", () => this.beat()], ["change:loop", () => this.bar()],
      ["change:selected", () => this.chosen()], ["change:theme", () => this.paint()],
      ["msg:custom", (message) => this.received(message)]]) model.on(event, action);
    this.attend();
    if (this.marked(location.hash) !== undefined) this.go(this.marked(location.hash));
  }
  // JupyterLab stores what its widgets show, so that a notebook shows it tomorrow, without Python, too; and tells when Python has gone.
  async attend() {
    const manager = this.model.widget_manager, own = this.model.get("own");
    if (!manager?._settings || !own) return;   // a page of its own
    manager._settings.saveState = true;
    keepShown(manager);
    const widget = await manager.get_model(own), context = manager.context?.sessionContext;
    const look = () => this.leave(!widget.comm_live || (!!context && !context.session?.kernel));   // a kernel that is shut down leaves its comms as they are
    widget.on("comm_live_update", look);
    context?.kernelChanged.connect(look);
    this.unattend = () => context?.kernelChanged.disconnect(look);
    look();
  }
  // What needs Python is taken away; what is in the page goes on playing.
  leave(stale) {
    if (stale === !!this.stale) return;
    this.stale = stale;
    this.root.classList.toggle("stale", stale);
    this.gone.hidden = !stale;
    for (const tab of this.tabs.children) tab.hidden = stale && !this.stages.has(tab.dataset.tab);
    this.show();
  }
  get film() { return this.model.get("film"); }
  get index() { return Math.max(0, Math.min(this.last, this.get("index"))); }
  get last() { return this.film.frames.length - 1; }
  // The kernel is notified after the browser has painted: a click is not to wait for that.
  // Saved together after 30 ms; what the kernel echoes of an earlier value until then is neither shown nor saved.
  set(name, value) {
    this.unsaved = { ...this.unsaved, [name]: value };
    this.model.set(name, value);
    this.saving ??= setTimeout(() => {
      const mine = this.unsaved;
      this.saving = this.unsaved = undefined;
      for (const [own, last] of Object.entries(mine)) this.model.set(own, last);
      this.model.save_changes();
    }, 30);
  }
  get(name) { return this.unsaved?.[name] ?? this.model.get(name); }
  go(index) { this.set("index", Math.max(0, Math.min(this.last, index))); }

  load() {
    this.shown = null;
    this.stages = new Map();
    this.tabs = html("div", { class: "tabs", role: "tablist" });
    this.stage = html("div", { class: "stage" });
    this.caption = html("div", { class: "caption", role: "status", "aria-live": "polite" });
    this.differs = html("div", { class: "differs" });   // who has something else than ZooKeeper
    this.gauges = html("div", { class: "gauges", role: "group", "aria-label": "Gauges" });
    this.marks_ = html("div", { class: "entries" });
    this.legend = html("details", { class: "legend", ontoggle: () => this.explainMarks() }, html("summary", {}, "Legend"), this.marks_);
    this.log = html("div", { class: "log", role: "log", "aria-live": "off" });
    this.which = html("div", { class: "which", role: "group", "aria-label": "Kafka's log" }, ...Object.entries(LOGS).map(([key, name]) => {
      const title = `Always show ${name}.log; press again: the log of this step`;
      const onclick = () => {
        this.pinned = this.pinned === key ? "" : key;
        this.showLog(this.index);
      };
      return html("button", { type: "button", "data-log": key, title, onclick }, name + ".log");
    }));
    this.log.addEventListener("keydown", (event) => this.browse(event));
    this.why = html("div", { class: "why", role: "region", "aria-label": "Why", hidden: "" });
    for (const [name, title] of this.tabNames()) {
      const onclick = (event) => this.open(name, event.shiftKey || event.ctrlKey || event.metaKey);
      this.tabs.append(html("button", { type: "button", role: "tab", "data-tab": name, title: "Shift: beside the others", onclick }, title));
    }
    clearInterval(this.clock);
    this.tabs.hidden = this.tabs.children.length < 2;
    this.film.views.forEach((view) => this.place(view));
    this.logs?.remove();
    this.logs = html("div", { class: "logs" }, this.which, this.log);
    this.scene = html("div", { class: "scene" }, this.stage, this.logs);
    this.detail = html("section", { class: "detail", "aria-label": "What is counted", hidden: "" });
    this.head = html("span", { class: "title" });
    this.gone = html("div", { class: "gone", role: "alert", hidden: "" }, "Python does not know this picture any more: it was restarted, or is not running. Choose Run, Run All Above Selected Cell, and then run this cell to go on.");
    const top = html("div", { class: "top" }, this.tabs, this.head), say = html("div", { class: "say" }, this.caption, this.differs);
    const own = [top, this.gone, say, html("div", { class: "strip" }, this.gauges, this.legend), this.scene, this.controls(), this.detail, this.why];
    if (this.own) own.forEach((part, n) => this.own[n].replaceWith(part)); else this.root.append(...own);
    this.own = own;
    this.open(this.film.views[0].view);
    for (const name of (this.film.beside ?? []).slice(1)) this.open(name, true);   // two runs: both at once
    this.show(); this.beat(); this.chosen();
  }
  tabNames() { return this.film.views.map((view) => [view.view, view.title]); }
  // Puts a drawing on the stage, in the place of an older one of the same view.
  place(view) {
    const stage = new Stage(view, this.film.glyphs, (name, event) => this.choose(name, event));
    const box = html("div", { class: stage.flow ? "view flows" : "view", "data-view": view.view });
    // Two runs are named, and stand below one another where they have no room.
    if (this.film.beside) box.append(html("h4", { class: "run" }, view.title));
    box.append(stage.svg);
    const compact = this.film.beside && stage.flow ? Math.min(COMPACT, stage.flow.least(2)) : COMPACT;
    box.style.flexBasis = `min(100%, ${Math.ceil(Math.min(stage.needs, compact))}px)`;
    stage.box = box;
    const old = this.stages.get(view.view);
    if (old) { box.hidden = old.box.hidden; old.box.replaceWith(box); } else this.stage.append(box);
    this.stages.set(view.view, stage);
    stage.show(this.index, 0, this.film.frames[this.index].summary);
    stage.choose(this.get("selected"));
  }
  open(name, also) {
    for (const tab of this.tabs.children) {
      const was = tab.getAttribute("aria-selected") === "true", mine = tab.dataset.tab === name;
      tab.setAttribute("aria-selected", String(also ? was !== mine : mine));
    }
    if (!this.tabs.querySelector("[aria-selected=true]")) return this.open(name);
    this.opened();
  }
  get open_views() { return [...this.tabs.children].filter((tab) => tab.getAttribute("aria-selected") === "true").map((tab) => tab.dataset.tab); }
  opened() {
    const open = this.open_views;
    for (const [name, stage] of this.stages) stage.box.hidden = !open.includes(name);
    this.spread();
    this.follow();
  }
  // The log stands below where a picture is flat, or would be too small beside it.
  spread() {
    this.tighten();
    const seen = [...this.stages.values()].filter((stage) => !stage.box.hidden), room = this.root.clientWidth;
    const beside = room > BESIDE && !seen.some((stage) => stage.wide || stage.needs > room * 0.7);
    if (beside !== this.scene.contains(this.logs)) { if (beside) this.scene.append(this.logs); else this.root.insertBefore(this.logs, this.below ?? null); }
    for (const stage of seen) stage.fit(stage.box.clientWidth);
  }
  controls() {
    const bar = html("div", { class: "bar" });
    const all = { first: ["First step (Home)", () => this.go(0)], back: ["Previous step (left arrow)", () => this.go(this.index - 1)],
      play: ["Play (space)", () => this.play()], next: ["Next step (right arrow)", () => this.go(this.index + 1)],
      last: ["Last step (End)", () => this.go(this.last)] };
    this.buttons = Object.fromEntries(Object.entries(all).map(([name, [label, action]]) => [name, button(name, label, action)]));
    bar.append(...Object.values(this.buttons));
    this.slide = html("input", { type: "range", min: 0, step: "any", "aria-label": "Step", class: "scrub",
      oninput: () => this.go(this.nearest(+this.slide.value)), onkeydown: (event) => this.slid(event) });
    this.pauses = html("div", { class: "pauses", "aria-hidden": "true" });
    const track = html("div", { class: "track", title: AXIS }, svg("svg"), this.pauses, this.slide);
    this.number = html("input", { type: "text", inputmode: "numeric", "aria-label": "Step: a number and Enter jump there", class: "number", onkeydown: (event) => this.typed(event) });
    this.number.onfocus = this.number.onclick = () => this.number.select();   // what is typed replaces the number
    this.number.onblur = () => { this.number.value = this.index; };   // what was not sent off is forgotten
    this.of = html("span", { class: "of" });
    bar.append(track, html("span", {}, this.number, this.of), this.speed(), this.loop(), this.jump(), ...this.parting());
    this.measure();
    return bar;
  }
  // How many steps there are, and which: again whenever some are added.
  measure() {
    this.axis = this.places();
    this.root.dataset.last = this.last;
    this.slide.max = this.axis.at(-1) || 1;
    this.of.textContent = `of ${this.last}`;
    this.slide.parentElement.firstChild.replaceWith(this.marks());
    this.pause();
    const known = [...this.kinds.options].map((option) => option.value);
    const kinds = [...new Set(this.film.frames.map((frame) => frame.kind))].filter((kind) => kind in KIND_NAMES && !known.includes(kind));
    const rank = (kind) => (MARKED.indexOf(kind) + 1 || 9);
    kinds.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
    kinds.forEach((kind) => this.kinds.append(html("option", { value: kind }, KIND_NAMES[kind])));
    if (!known.length) for (const mark of Object.keys(this.film.marks ?? {})) this.kinds.append(html("option", { value: "mark:" + mark }, "▸ " + mark));
  }
  // The scrubber is an axis of time: a step of its own width each, and the logarithm of the time that passes between two.
  gap(i) { return i > 0 ? this.film.frames[i].time - this.film.frames[i - 1].time : 0; }
  places() {
    const long = Math.max(0.6, this.last * 0.03);
    let at = 0;
    return this.film.frames.map((_, i) => (at += i === 0 ? 0 : 1 + (this.gap(i) > SHORT ? long * Math.log10(this.gap(i) / SHORT) : 0)));
  }
  nearest(place) {
    let found = 0;
    this.axis.forEach((at, i) => { if (Math.abs(at - place) < Math.abs(this.axis[found] - place)) found = i; });
    return found;
  }
  slid(event) {
    const to = { ArrowLeft: this.index - 1, ArrowDown: this.index - 1, ArrowRight: this.index + 1, ArrowUp: this.index + 1, Home: 0, End: this.last,
      PageUp: this.index + 10, PageDown: this.index - 10 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.go(to);
  }
  tighten() { for (const pause of this.pauses?.children ?? []) pause.classList.toggle("tight", pause.scrollWidth > pause.clientWidth); }
  // Long times without a step, with their length, where there is room for it.
  pause() {
    const whole = this.axis.at(-1) || 1;
    this.pauses.replaceChildren(...this.film.frames.flatMap((_, i) => {
      if (this.gap(i) < PAUSE) return [];
      const from = this.axis[i - 1], wide = this.axis[i] - from, text = duration(this.gap(i));
      return [html("span", { style: `left:${100 * from / whole}%;width:${100 * wide / whole}%`, title: `${text} between steps ${i - 1} and ${i}` }, text)];
    }));
    requestAnimationFrame(() => this.tighten());
  }
  marks() {
    const marks = svg("svg", { class: "marks", "aria-hidden": "true", preserveAspectRatio: "none", viewBox: `0 0 ${this.axis.at(-1) || 1} 10` });
    this.film.frames.forEach((frame, i) => {
      const kind = MARKED.indexOf(frame.kind);
      if (i === this.film.parted) marks.append(svg("path", { class: "mark m-parted", d: `M${this.axis[i]} 0V10` }));
      if (kind >= 0) marks.append(svg("path", { class: "mark m-" + frame.kind, d: `M${this.axis[i]} ${[0, 4, 2, 0][kind]}V10` }));
    });
    return marks;
  }
  speed() {
    const onchange = () => this.set("speed", +this.speeds.value);
    const options = SPEEDS.map((speed) => html("option", { value: speed }, `${speed}×`));
    return (this.speeds = html("select", { "aria-label": "Speed", class: "speed", title: "Speed (+ and -)", onchange }, ...options));
  }
  loop() {
    return (this.looping = button("loop", "Start again at the end (l)", () => this.set("loop", !this.get("loop"))));
  }
  jump() {
    this.kinds = html("select", { "aria-label": "Kind of step to jump to", class: "kinds" });
    return html("span", { class: "leap" }, this.kinds, button("jump", "Jump to the next step of this kind (j; J goes back)", () => this.leap(1)));
  }
  marked(href) { return href?.startsWith(STEP) ? this.film.marks?.[href.slice(STEP.length)] : undefined; }
  // The prose: a link leads to the step that it names, and is marked while that is shown.
  links() {
    if (!this.film.marks) return [];
    const near = this.root.closest(".jp-NotebookPanel") ?? document;
    return [...near.querySelectorAll(`a[href^="${STEP}"]`)].filter((link) => this.marked(link.getAttribute("href")) !== undefined);
  }
  lead(event) {
    const link = event.target.closest?.("a");
    if (!link || !this.links().includes(link)) return;
    event.preventDefault();
    this.set("playing", false);
    this.go(this.marked(link.getAttribute("href")));
    this.root.scrollIntoView({ block: "nearest" });
  }
  highlightLinks() {
    for (const link of this.links()) {
      const here = this.marked(link.getAttribute("href")) === this.index;
      link.classList.toggle("kc-here", here);
      if (here) link.setAttribute("aria-current", "step"); else link.removeAttribute("aria-current");
    }
  }
  // Leads to the first step in which two runs differ.
  parting() {
    if (this.film.parted == null) return [];
    return [html("button", { type: "button", class: "parted", "data-do": "parted", onclick: () => this.go(this.film.parted) }, `First difference: step ${this.film.parted}`)];
  }
  leap(direction) {
    if (this.kinds.value.startsWith("mark:")) return this.go(this.film.marks[this.kinds.value.slice(5)]);
    for (let n = 1, count = this.last + 1; n < count; n++) {   // from the end it goes on at the beginning
      const i = (this.index + direction * n + count) % count;
      if (this.film.frames[i].kind === this.kinds.value) return this.go(i);
    }
  }
  play() {
    const playing = !this.get("playing");
    if (playing && this.index >= this.last) this.go(0);
    this.set("playing", playing);
  }
  typed(event) {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (event.key !== "Enter" && !by) return;
    event.preventDefault();
    const number = parseInt(this.number.value, 10);
    this.go(by ? this.index + by : Number.isNaN(number) ? this.index : number);
    this.number.value = this.index;
    this.number.select();
  }
  // The lines of the log are one stop of the Tab key; arrows go from line to line.
  browse(event) {
    const lines = [...this.log.querySelectorAll(".line")], at = lines.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1 }[event.key];
    if (at < 0 || to === undefined) return;
    event.preventDefault(); event.stopPropagation();
    const next = lines[Math.max(0, Math.min(lines.length - 1, to))];
    event.target.tabIndex = -1; next.tabIndex = 0;
    next.focus();
  }
  // Does what may take away, replace or switch off what has the focus: then it stays in the player, or JupyterLab gets the next key.
  keeping(change) {
    const had = document.activeElement, inside = this.root.contains(had);
    change();
    if (inside && (document.activeElement.disabled || !this.root.contains(document.activeElement))) this.root.focus({ preventScroll: true });
  }
  key(event) {
    if (event.target.matches("input, select, textarea") || event.altKey || event.ctrlKey || event.metaKey) return;
    const faster = (by) => this.set("speed", SPEEDS[Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(this.get("speed")) + by))]);
    const keys = { ArrowLeft: () => this.go(this.index - 1), ArrowRight: () => this.go(this.index + 1), Home: () => this.go(0),
      End: () => this.go(this.last), "+": () => faster(1), "-": () => faster(-1), l: () => this.looping.click(),
      j: () => this.leap(1), J: () => this.leap(-1), Escape: () => { if (this.why.hidden) this.set("selected", ""); else this.closeWhy(); } };
    if (event.key === " " && !event.target.matches("button")) keys[" "] = () => this.play();
    if (!(event.key in keys)) return;
    event.preventDefault(); event.stopPropagation();
    keys[event.key]();
  }
  // The buttons for "why?": one, or of two runs one for each that has an answer.
  askable(frame) {
    if (!this.film.asks || frame.why === false || this.stale) return [];
    if (!Array.isArray(frame.why)) return frame.seqs.length ? [["why?", {}]] : [];
    return frame.why.map((side) => [side, this.film.views[side].title]).map(([side, title]) => [frame.why.length > 1 ? `why? ${title}` : "why?", { title, of: { side } }]);
  }
  show() { this.keeping(() => this.showStep()); }
  showStep() {
    const index = this.index, frame = this.film.frames[index];
    const forward = this.shown !== null && index === this.shown + 1;
    const near = this.shown !== null && Math.abs(index - this.shown) <= 1;
    for (const stage of this.stages.values()) stage.show(index, forward && !this.calm.matches ? 650 / this.get("speed") : 0, frame.summary, !near || this.calm.matches);
    if (this.shown !== index) this.shut = null;
    this.shown = index;
    this.root.dataset.step = index;
    const links = html("span", { class: "links" });
    if (frame.cause != null) {
      const title = this.film.frames[frame.cause].caption, onclick = () => this.go(frame.cause);
      links.append(html("button", { type: "button", class: "cause", title, onclick }, `because of step ${frame.cause}`));
    }
    for (const [label, side] of this.askable(frame)) {
      const onclick = () => { this.shut = null; this.model.send({ do: "why", frame: index, ...side.of }); };
      links.append(html("button", { type: "button", class: "cause", "data-do": "why", "aria-label": `Why this step? ${side.title ?? ""}`.trim(), onclick }, label));
    }
    this.caption.replaceChildren(links, html("span", { class: "time" }, this.time(frame.time)), " ", frame.caption);
    const later = index < this.last ? this.gap(index + 1) : 0;
    if (later >= PAUSE) this.caption.append(" ", html("span", { class: "later" }, `The next step is ${duration(later)} later.`));
    this.differs.textContent = this.differs.title = frame.differs ?? "";
    const gauges = this.gauges.cloneNode();
    gauges.append(...(this.gauged(index).length ? this.gauged(index).map(([name, value, level]) => html("span", { class: "gauge " + level, title: `${value} ${name}` }, html("b", {}, value), " " + name)) : [html("span", { class: "summary", title: frame.summary }, frame.summary)]));
    if (!gauges.isEqualNode(this.gauges)) this.gauges.replaceChildren(...gauges.childNodes);   // what stays is not laid out again
    this.explainMarks();
    this.highlightLinks();
    this.open_up();
    this.showLog(index);
    this.explain(null);
    this.bar();
  }
  // A frame leaves its gauges out where they are as before.
  gauged(index) { return this.film.frames[index].gauges ?? (index ? this.gauged(index - 1) : []); }
  // The legend: what this picture has, of what its view may have.
  explainMarks() {
    if (!this.legend.open) return;
    const open = [...this.stages.values()].filter((stage) => !stage.box.hidden), shown = new Map();
    for (const stage of open) for (const [styles, kind, text, picture] of stage.view.legend ?? []) if (stage.has(styles, kind, text)) shown.set(text, picture);
    this.marks_.innerHTML = [...shown.values()].join("");
  }
  // The log with lines for this step or the last one before it; "Received response" lines do not count.
  telling(index) {
    for (let i = index; i >= 0; i--) {
      const { log = [], events = [] } = this.film.frames[i];
      if (log.some((text) => !text.includes("Received response"))) return "log";
      if (events.length) return "events";
    }
    return "events";
  }
  // The log lines up to this step; each leads to its step.
  showLog(index) {
    const key = this.pinned || this.telling(index);
    const logOf = (i) => (this.film.frames[i][key] ?? []).map((text, n) => [i, text, `${i} ${n} ${text}`]);
    for (const pick of this.which.children) pick.setAttribute("aria-pressed", String(pick.dataset.log === key));
    this.log.setAttribute("aria-label", `Kafka's ${LOGS[key]}.log`);
    const focused = this.log.contains(document.activeElement), shown = new Map([...this.log.children].map((line) => [line.key, line]));
    let before = [];
    for (let i = index - 1; i >= 0 && before.length < 24; i--) before = [...logOf(i), ...before];
    const lines = [...before.slice(-36), ...logOf(index)].map(([i, text, key]) => {
      const line = shown.get(key) ?? html("button", { type: "button", title: `step ${i}` }, text);
      line.key = key;
      line.tabIndex = -1;
      line.className = i === index ? "line here" : "line";
      line.ariaCurrent = i === index ? "step" : null;
      line.onclick = () => this.choose("step:" + i);
      shown.delete(key);
      return line;
    });
    for (const line of shown.values()) line.remove();
    lines.forEach((line, n) => { if (this.log.children[n] !== line) this.log.insertBefore(line, this.log.children[n]); });
    this.logs.hidden = !(this.logged ??= this.film.frames.some((frame) => Object.keys(LOGS).some((name) => frame[name]?.length)));
    this.here = this.log.querySelector(".here") ?? lines.findLast((line) => +line.title.slice(5) < index);
    const stop = this.here ?? lines.at(-1);
    if (stop) stop.tabIndex = 0;
    if (focused) stop?.focus({ preventScroll: true });
    this.follow();
  }
  // Keeps the step's lines in sight; measured when the browser lays the page out anyway.
  follow() {
    requestAnimationFrame(() => { if (this.here) this.log.scrollTop = this.here.offsetTop - 24; });
  }
  // The answer comes twice, the second time with the lines that ran; who has shut it by then is left in peace.
  received(message) { if (message.do === "why" && message.frame === this.index && this.shut !== this.index) this.explain(message.why); }
  // What `views/explain/why.py` found out: rule, inputs, alternatives, causes and source.
  explain(why) {
    this.why.hidden = !why;
    if (!why) return this.why.replaceChildren();
    const row = (name, text) => html("div", { class: "fact" }, html("dt", {}, name), html("dd", {}, text));
    const list = html("dl", {});
    list.append(row("Rule", why.rule), ...why.inputs.map(([name, text]) => row(name, text)), row("Decided", why.decided));
    if (why.kafka) list.append(row("In Kafka", why.kafka));
    const parts = [list];
    if (why.otherwise.length) {
      parts.push(html("h5", {}, "What would have changed it"), html("ul", {}, ...why.otherwise.map(([what, then]) => html("li", {}, html("b", {}, what + ": "), then))));
    }
    if (why.causes.length) parts.push(html("h5", {}, "What led to it"), html("ol", { class: "chain" }, ...why.causes.map((text) => html("li", {}, text))));
    const beside = [html("div", { class: "facts" }, ...parts)];
    const codes = why.sources.flatMap(({ name, lines }) => {
      const code = html("pre", { class: "source", tabindex: "0", "aria-label": "Source of " + name });
      lines.forEach(([number, text, ran]) => code.append(html("span", { class: ran ? "ran" : "" }, `${ran ? "▸" : " "}${String(number).padStart(4)}  ${text}`)));
      return [html("h5", {}, name), code];
    });
    if (codes.length) {
      const known = why.lines || (why.sources.some(({ lines }) => lines.some(([, , ran]) => ran)) ? "▸ marks the lines that ran." : "");
      beside.push(html("div", { class: "code" }, ...codes, html("p", { class: "known" }, known)));
    }
    const shut = html("button", { type: "button", class: "shut", "aria-label": "Close the explanation", onclick: () => this.closeWhy() }, "✕");
    this.why.replaceChildren(shut, html("h4", {}, why.title), html("div", { class: "answer" }, ...beside));
    this.why.scrollIntoView({ block: "nearest" });
  }
  closeWhy() {
    this.shut = this.index;
    this.explain(null);
    this.root.focus({ preventScroll: true });
    this.caption.scrollIntoView({ block: "nearest" });
  }
  bar() { this.keeping(() => this.buttonsNow()); }
  buttonsNow() {
    const { first, back, play, next, last } = this.buttons, playing = this.get("playing");
    first.disabled = back.disabled = this.index <= 0;
    next.disabled = last.disabled = this.index >= this.last;
    const label = playing ? "Pause (space)" : "Play (space)";
    if (play.title !== label) play.replaceChildren(icon(playing ? "pause" : "play"));
    play.ariaLabel = play.title = label;
    this.slide.value = this.axis[this.index];
    if (document.activeElement !== this.number) this.number.value = this.index;
    this.slide.setAttribute("aria-valuetext", `step ${this.index} of ${this.last}`);
    this.speeds.value = this.get("speed");
    this.looping.setAttribute("aria-pressed", String(this.get("loop")));
  }
  beat() {
    clearTimeout(this.timer);
    this.bar();
    if (!this.get("playing")) return;
    const pause = this.index < this.last ? this.gap(this.index + 1) : 0;
    const read = 700 + Math.min(2600, this.film.frames[this.index].caption.length * 18) + (pause > PAUSE ? 900 * Math.log10(pause / PAUSE) : 0);
    const wait = read / this.get("speed");
    if (pause > PAUSE) this.run(this.index, wait, pause);
    this.timer = setTimeout(() => {
      if (this.index < this.last) this.go(this.index + 1);
      else if (this.get("loop")) this.go(0);
      else return this.set("playing", false);
      this.beat();
    }, wait);
  }
  // Seconds since the beginning; of records that were read from logs, the moment as these have it.
  time(ms) { return this.film.began == null ? `${(ms / 1000).toFixed(4)} s` : new Date(this.film.began + ms).toISOString().slice(0, 23).replace("T", " "); }
  // The clock runs from a step to a later one, and with it what counts seconds: silent sessions, requests, lag.
  run(index, wait, pause) {
    clearInterval(this.clock);
    const begin = performance.now(), time = this.film.frames[index].time;
    this.clock = setInterval(() => {
      const passed = Math.min(1, (performance.now() - begin) / wait) * pause;
      if (this.index !== index || !this.get("playing") || passed >= pause) return clearInterval(this.clock);
      this.caption.querySelector(".time").textContent = this.time(time + passed);
      this.count(passed);
    }, 100);
  }
  count(passed) {
    const { index, labels: counted = [] } = this.counting ?? {};
    if (index !== this.index || counted.some(([label]) => !label.isConnected)) {
      const before = new Map(index === this.index ? counted : []);   // texts as they were at the step
      const labels = [...this.stages.values()].flatMap((stage) => [...stage.svg.querySelectorAll(".label")]).map((label) => label.firstChild);
      const texts = [...labels, ...[...this.gauges.children].map((gauge) => gauge.lastChild)].filter(Boolean).map((text) => [text, before.get(text) ?? text.data]);
      this.counting = { index: this.index, labels: texts.filter(([, text]) => text.search(COUNT) >= 0) };
    }
    for (const [label, text] of this.counting.labels) label.textContent = text.replace(COUNT, (since) => (+since + passed / 1000).toFixed(1));
  }
  choose(name, event) {
    if (name.startsWith("step:")) this.go(+name.slice(5));
    this.set("selected", name);
  }
  chosen() { for (const stage of this.stages.values()) stage.choose(this.get("selected")); this.open_up(); }
  // What a large cluster's picture only counts, replica by replica, of the broker that is chosen.
  open_up() {
    const [, broker, only] = /^(?:broker|head|session|count):(\d+)(?::(\w+))?$/.exec(this.get("selected")) ?? [];
    const own = this.film.views.find((view) => view.details)?.details[broker];
    this.detail.hidden = !own;
    if (!own) return this.detail.replaceChildren();
    const now = Object.entries(own).map(([name, track]) => [name, track[0][0] <= this.index ? lookAt(track, this.index)[1] : ""]);
    const shown = now.filter(([, style]) => style && (!only || style === only)).sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
    const chips = shown.map(([name, style]) => {
      const title = `${name}: ${STANDS[style] ?? style}`, onclick = (event) => this.choose("partition:" + name, event);
      return html("button", { type: "button", tabindex: "-1", class: "chip " + style, title, onclick }, name);
    });
    const shut = html("button", { type: "button", class: "shut", "aria-label": "Close", onclick: () => this.set("selected", "") }, "✕");
    const what = only ? STANDS[only] ?? only : "replicas";
    this.detail.replaceChildren(html("h4", {}, `Broker ${broker}: ${shown.length} ${what}`), shut, html("div", { class: "chips" }, ...chips));
  }
  watchTheme() {
    this.watcher = new MutationObserver(() => this.paint());
    this.watcher.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light"] });
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.dark.onchange = () => this.paint();
    this.paint();
  }
  paint() {
    const asked = this.model.get("theme"), lab = document.body.dataset.jpThemeLight;
    this.root.dataset.theme = asked !== "auto" ? asked : lab ? (lab === "false" ? "dark" : "light") : this.dark.matches ? "dark" : "light";
  }
  close() { this.unattend?.(); clearTimeout(this.timer); clearInterval(this.clock); this.sizes.disconnect(); this.watcher.disconnect(); this.dark.onchange = null; document.removeEventListener("click", this.leading, true); }
}

function render({ model, el }, Kind = Player) {
  const player = new Kind(model, el);
  return () => player.close();
}
export default { render };
