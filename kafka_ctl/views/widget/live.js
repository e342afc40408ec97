// The live cluster: the player, and everything that can be done to what it shows. Follows player.js in one module.
const NAMES = { broker: "Broker", partition: "Partition", zookeeper: "ZooKeeper" };
const LOOKS = { broker: ["replica", "queue", "spacetime"], partition: ["partition", "replica", "timeline"], zookeeper: ["zookeeper"] };   // the views that show more of a thing
const NEAR = { session: ["session", "network"], token: ["requests", "network"] };   // what is done to a line: these groups come first

class Live extends Player {
  constructor(model, el, embedded = false) {
    super(model, el);
    this.root.classList.add("live");
    this.embedded = embedded;   // a future beside another one does not fork again
    this.toolbar();
    model.on("change:now", () => this.news());
    model.on("change:beside", () => this.besides());
    this.root.addEventListener("keydown", (event) => { if (event.key === "Escape") this.closeMenu(); });
    this.outside = (event) => { if (!this.popup.contains(event.target)) this.closeMenu(); };
    document.addEventListener("pointerdown", this.outside);
    this.besides();
  }
  get now() { return this.model.get("now"); }
  tabNames() { return this.film.tabs; }
  ask(message) { this.model.send(message); }
  act(thing, action, given = {}) { this.closeMenu(); this.ask({ do: "act", thing, action: action.do, given }); }

  load() { this.keeping(() => this.loadNow()); }
  loadNow() {
    this.offers = "";
    this.present = html("span", { class: "of" });   // a command acts at the end, also when another moment is shown
    this.actions = html("div", { class: "actions", role: "toolbar", "aria-label": "What can be done" });
    this.form = html("form", { class: "form menu", hidden: "" });
    this.reply = html("div", { class: "reply", role: "status", "aria-live": "assertive" });
    this.rules = html("section", { class: "rules", "aria-label": "Invariants" });
    this.script = html("section", { class: "script", "aria-label": "Script" });
    this.popup = html("div", { class: "menu", role: "menu", hidden: "" });
    super.load();
    this.root.append(this.popup, this.form);   // they lie over the picture and do not push it
    this.root.querySelector(".bar").after(this.actions, this.reply);
    this.root.append(html("div", { class: "below" }, this.rules, this.script));
    this.news();
  }
  opened() {
    super.opened();
    const open = this.open_views, shown = this.get("shown");
    if (open.join() !== shown.join()) this.set("shown", open);
  }

  // Messages from the kernel.
  received(message) {
    super.received(message);
    if (message.do === "show") message.views.forEach((view) => this.take(view));
    if (message.do === "grow") this.grow(message);
  }
  take(view) {
    const at = this.film.views.findIndex((known) => known.view === view.view);
    if (at < 0) this.film.views.push(view); else this.film.views[at] = view;
    this.place(view);
    this.opened();
  }
  grow({ from, frames, views, redrawn, now }) {
    const film = this.film, before = this.index;
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
    if (from === before) this.show(); else this.go(from);
    this.model.set("now", now);
    this.beat();
    if (from < this.last && !this.calm.matches) this.set("playing", true);
  }
  // Script, rules, and what can be done, as they are now.
  news() { this.keeping(() => this.newsNow()); }
  newsNow() {
    const { script, reply, title, violations, name } = this.now;
    this.title = title;
    this.tell();
    this.answered(reply);
    this.reply.replaceChildren(html("span", {}, reply.text ?? "Click a broker, a partition, a znode or a line: its menu has what can be done to it now."));
    if (this.now.waits) this.reply.append(" ", this.going());
    this.reply.classList.toggle("refused", !!reply.refused);
    this.reply.classList.toggle("hint", !reply.text);
    const copy = html("button", { type: "button", class: "copy" }, "Copy");
    copy.onclick = async () => { await this.copy(script.join("\n")); copy.textContent = "Copied"; };
    const code = html("pre", { tabindex: "0", "aria-label": "The story so far, as Python" }, script.join("\n"));
    this.script.replaceChildren(html("h4", {}, "The story, as Python", copy), code);
    requestAnimationFrame(() => { code.scrollTop = code.scrollHeight; });
    this.rules.hidden = !violations;
    const broken = violations ?? [];
    const list = broken.map(({ text, frame }) => {
      const jump = html("button", { type: "button", class: "line" }, `✗ ${text} (step ${frame})`);
      jump.onclick = () => this.go(frame);
      return html("li", {}, jump);
    });
    this.rules.classList.toggle("broken", broken.length > 0);
    this.rules.replaceChildren(html("h4", {}, "Invariants"), broken.length ? html("ul", {}, ...list) : html("p", {}, "✓ Every invariant has held so far."));
    if (this.compared) this.compared.textContent = this.now.compared;
    this.root.setAttribute("aria-label", `${name}: a live cluster`);
    this.toolbar();
  }
  // Says that a command only begins when it is given, and offers to let the time pass that it needs.
  going() {
    const on = html("button", { type: "button", class: "on", "data-do": "settle" }, "Go on until quiet ▸");
    on.onclick = () => this.ask({ do: "act", thing: "", action: "settle", given: {} });
    return html("span", { class: "waits" }, "Something is under way, and time stands still. ", on);
  }
  async copy(text) {
    try { await navigator.clipboard.writeText(text); } catch {
      const range = document.createRange();
      range.selectNodeContents(this.script.querySelector("pre"));
      getSelection().removeAllRanges(); getSelection().addRange(range);
      document.execCommand("copy");
    }
  }

  // The things, and what can be done to them.
  things() { return [["", "The cluster"], ["zookeeper", "ZooKeeper"], ...Object.keys(this.now.brokers).map((b) => ["broker:" + b, "Broker " + b]),
    ...Object.keys(this.now.partitions).map((p) => ["partition:" + p, "Partition " + p])]; }
  thing() {
    const name = this.get("selected").replace(/^znode:.*/, "zookeeper").replace(/^(head|session|count|differ):(\d+).*/, "broker:$2");
    return this.things().some(([id]) => id === name) ? name : "";
  }
  // What can be done to a thing as it is now; the cluster has the tool's commands, too.
  offered(thing) {
    const [kind, name] = [thing.split(":")[0], thing.slice(thing.indexOf(":") + 1)], { brokers, states } = this.now;
    const is = kind === "broker" ? brokers[name] : states[thing] ?? "", menu = this.model.get("menu");
    const own = (menu[kind] ?? []).filter(({ when }) => !when || is.split(" ").includes(when));
    return thing ? own : [...own, ...menu.tool.map((action) => ({ ...action, group: "reassignment", thing: "tool" }))];
  }
  tell() {
    this.head.textContent = this.title;
    this.present.textContent = this.index < this.last ? `act at ${(this.now.time / 1000).toFixed(1)} s, the end` : "";
  }
  showStep() { super.showStep(); if (this.title) this.tell(); }
  toolbar() { this.keeping(() => this.toolbarNow()); }
  toolbarNow() {
    const { brokers, partitions, undo: undoable, travels, waits } = this.now, thing = this.thing();
    const key = JSON.stringify([thing, brokers, Object.keys(partitions), undoable, travels, waits, this.embedded]);
    if (key === this.offers) return;   // made anew only when something in it differs
    this.offers = key;
    const focus = document.activeElement?.closest?.(".actions") === this.actions && document.activeElement.dataset.key;
    const choose = html("select", { "aria-label": "Thing", "data-key": "thing" });
    this.things().forEach(([id, label]) => choose.append(html("option", { value: id }, label)));
    choose.value = thing;
    choose.onchange = () => this.set("selected", choose.value);
    const open = html("button", { type: "button", class: "open", "data-key": "open", "aria-haspopup": "menu" }, "Commands ▾");
    open.onclick = () => { const { left, top } = open.getBoundingClientRect(); this.openMenu(this.thing(), { clientX: left, clientY: top }); };
    const time = html("span", { class: "group time", role: "group", "aria-label": "Time" }, ...this.buttonsFor("", this.model.get("menu").time));
    time.querySelector("[data-act=settle]").classList.toggle("go", waits);
    const travel = html("span", { class: "group", role: "group", "aria-label": "Time travel" });
    if (travels) {
      const undo = html("button", { type: "button", "data-key": "undo", title: "The same story without its last command" }, "↶ Undo");
      undo.disabled = !undoable;
      undo.onclick = () => this.ask({ do: "undo" });
      travel.append(undo);
      if (!this.embedded) {
        const fork = html("button", { type: "button", "data-key": "fork", title: "Two futures side by side, from the step that is shown" }, "Fork here");
        fork.onclick = () => this.ask({ do: "fork", frame: this.index });
        travel.append(fork);
      }
    }
    this.actions.replaceChildren(html("span", { class: "group own" }, choose, open), time, travel, this.present);
    if (focus) this.actions.querySelector(`[data-key="${focus}"]`)?.focus();
  }
  buttonsFor(thing, actions, role) {
    return actions.map((action) => {
      const made = html("button", { type: "button", "data-act": action.do, "data-key": thing + action.do, title: action.hint, ...(role ? { role } : {}) }, action.label);
      made.onclick = (event) => (action.fields.length ? this.fillIn(action.thing ?? thing, action, event) : this.act(action.thing ?? thing, action));
      return made;
    });
  }
  // What a field begins with.
  suggested({ name: field, kind, default: given }, name) {
    const { partitions, brokers, plan } = this.now, first = Object.keys(partitions)[0] ?? "", up = Object.values(brokers).filter((state) => state === "up").length;
    if (field === "replication_factor") return Math.max(1, Math.min(given, up));
    if (field === "topic" && kind === "text") for (let n = 1; ; n++) {   // a name that is free
      const free = n === 1 ? given : given + n;
      if (!Object.keys(partitions).some((other) => other.replace(/-\d+$/, "") === free)) return free;
    }
    if (field === "path" && this.get("selected").startsWith("znode:/")) return this.get("selected").slice(6);
    return { replicas: partitions[name], partition: first, topic: first.replace(/-\d+$/, ""), brokers: Object.keys(brokers).join(", "), plan }[kind] ?? given;
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
        : html("input", { name: field.name, value, type: field.kind === "number" ? "number" : "text", step: "any",
          ...(field.kind === "optional" ? { placeholder: "none" } : { required: "" }) });
      inputs[field.name] = input;
      return html("label", {}, field.label + " ", input);
    });
    const cancel = html("button", { type: "button" }, "Cancel");
    cancel.onclick = () => { this.form.hidden = true; this.root.focus({ preventScroll: true }); };
    const error = html("p", { class: "error", role: "alert", hidden: "" });
    const what = (NAMES[thing.split(":")[0]] ?? "") + (thing.includes(":") ? ` ${name}: ` : " ") + action.label.replace("…", "");
    this.form.replaceChildren(html("b", { class: "of" }, what), html("p", { class: "hint" }, action.hint), ...fields, error, html("span", { class: "group" }, html("button", { type: "submit", class: "go" }, "Do it"), cancel));
    this.form.onsubmit = (event) => {   // it stays until the lab has answered: what is refused can be corrected
      event.preventDefault();
      this.asked = true;
      this.act(thing, action, Object.fromEntries(Object.entries(inputs).map(([key, input]) => [key, input.value])));
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

  answered(reply) {
    if (!this.asked || this.form.hidden) return;
    this.asked = false;
    const inside = this.form.contains(document.activeElement), error = this.form.querySelector(".error");
    error.textContent = reply.text;
    error.hidden = this.form.hidden = !reply.refused;
    if (!reply.refused && inside) this.root.focus({ preventScroll: true });
  }

  // A click on a thing selects it and shows what can be done to it, where it was clicked.
  choose(name, event) {
    const on = event?.target.closest("[data-on]")?.dataset.on;   // what travels has the menu of its broker
    super.choose(name, event);
    const thing = on ?? this.thing();
    if (event && thing && name && !this.stale) { event.preventDefault(); this.openMenu(thing, event, NEAR[on ? "token" : name.split(":")[0]]); }
  }
  chosen() { super.chosen(); if (this.actions) this.toolbar(); }
  // The usual commands, and below them the others by what they touch; `first` groups stand above.
  openMenu(thing, event, first = []) {
    const label = this.things().find(([id]) => id === thing)[1], offered = this.offered(thing), groups = new Map(first.map((name) => [name, []]));
    for (const action of offered) groups.set(action.group, [...(groups.get(action.group) ?? []), action]);
    const row = (name, inside) => html("div", { class: name ? "row" : "usual" }, ...(name ? [html("span", { class: "of" }, name)] : []), html("span", { class: "group" }, ...inside));
    const rows = [...groups].filter(([, actions]) => actions.length).sort(([a], [b]) => (first.length ? 0 : !!a - !!b)).map(([name, actions]) => row(name, this.buttonsFor(thing, actions, "menuitem")));
    const views = (LOOKS[thing.split(":")[0]] ?? []).map((view) => {
      const look = html("button", { type: "button", role: "menuitem", "data-look": view }, this.film.tabs.find(([name]) => name === view)[1]);
      look.onclick = () => { this.closeMenu(); this.open(view); };
      return look;
    });
    if (views.length) rows.push(row("look at", views));
    this.form.hidden = true;
    this.popup.replaceChildren(html("div", { class: "of head" }, label), ...rows);
    this.popup.setAttribute("aria-label", label);
    this.popup.hidden = false;
    this.stand(this.popup, event);
    const items = () => [...this.popup.querySelectorAll("button:not(:disabled)")];
    this.popup.onkeydown = (key) => {
      const by = { ArrowDown: 1, ArrowUp: -1 }[key.key];
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
    if (inside) this.root.focus({ preventScroll: true });
  }

  // Two futures side by side.
  async besides() {
    const id = this.model.get("beside");
    this.fork?.close(); this.fork = null;
    this.futures?.remove(); this.futures = null; this.compared = null;
    this.el.classList.toggle("kc-two", !!id);
    if (!id) return;
    const child = await this.model.widget_manager.get_model(id);
    if (this.model.get("beside") !== id) return;
    const shut = html("button", { type: "button", class: "shut", "aria-label": "Close this future" }, "✕");
    shut.onclick = () => this.ask({ do: "close" });
    this.compared = html("pre", { class: "compared", tabindex: "0", "aria-label": "How the two futures differ" }, this.now.compared);
    const box = html("div", { class: "kc-fork" });
    this.futures = box;
    this.el.append(box);
    this.fork = new Live(child, box, true);
    this.fork.root.append(html("h4", {}, "Differences at the same time: left is the first cluster, right is this fork"), this.compared);
    this.fork.root.prepend(shut);
  }
  close() { super.close(); this.fork?.close(); document.removeEventListener("pointerdown", this.outside); }
}

export default {
  render({ model, el }) {
    const live = new Live(model, el);
    return () => live.close();
  },
};
