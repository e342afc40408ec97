// The living cluster without Jupyter: the kit's own widget on this page, its Python in a worker.
import { unpack } from "./figures.mjs";
import live from "./live.mjs";

const state = document.getElementById("state"), place = document.getElementById("at"), bar = document.getElementById("loaded");
const copy = document.getElementById("copy"), copied = document.getElementById("copied");
const models = new Map(), awaited = new Map(), waiting = [];
const linked = location.hash.includes("story=");   // the address names a run; else the page shows the run that was recorded for it
const LOADED = "Python is loaded. Commands are done at once.";
let worker, started = false, commands = 0;   // those that were given so far

// What the widget's script asks of Jupyter's models.
class Model {
  constructor(id, traits) { this.id = id; this.traits = traits; this.heard = new Map(); this.changed = {}; }
  get(name) { return this.traits[name]; }
  set(name, value) {
    const before = this.traits[name];
    this.traits[name] = this.changed[name] = value;
    if (before !== value) this.tell("change:" + name);
  }
  save_changes() { post({ do: "set", model: this.id, traits: this.changed }); this.changed = {}; }
  send(content) { post({ do: "message", model: this.id, content }); }
  on(name, listener) { this.heard.set(name, [...(this.heard.get(name) ?? []), listener]); }
  off(name, listener) { this.heard.set(name, (this.heard.get(name) ?? []).filter((each) => listener && each !== listener)); }
  tell(name, ...values) { (this.heard.get(name) ?? []).forEach((listener) => listener(...values)); }
  get widget_manager() { return { get_model: (id) => models.get(id) ?? new Promise((found) => awaited.set(id, found)) }; }
}
// Python is loaded when something is asked that the page itself cannot do; until then, and while it loads, what is asked waits.
function post(content) {
  if (content.do !== "set") commands += 1;
  if (worker) tell(content); else waiting.push(content);
  if (!worker && (content.do !== "set" || content.traits.shown)) begin();
  if (!bar.hidden) answers.progress({ loaded: bar.value });
}
const tell = (content) => worker.postMessage(JSON.stringify(content));
function begin() {
  worker = new Worker("try-worker.mjs", { type: "module" });
  worker.onmessage = ({ data }) => answer(JSON.parse(data));
  worker.onerror = (error) => answers.failed({ text: (started ? "Python failed: " : "Python did not start: ") + (error.message || "a file of this site is missing") });
  [{ do: "start", fragment: location.hash.slice(1) }, ...waiting].forEach(tell);
  answers.progress({ loaded: 0 });
}
function answer(content) {
  if (state.classList.contains("wrong")) say(LOADED);   // Python has done what was asked after that
  answers[content.do](content);
}
function say(text, wrong = false) { state.textContent = text; state.classList.toggle("wrong", wrong); }

const answers = {
  show({ model }) {
    if (worker) { say(LOADED); bar.hidden = started = true; }
    if (place.querySelector(".kc")) return;   // Python has opened the run that is shown already
    place.replaceChildren();
    live.render({ model: models.get(model), el: place });
    performance.mark("first picture");
  },
  open({ model, traits }) {
    if (models.has(model)) return;
    models.set(model, new Model(model, traits));
    awaited.get(model)?.(models.get(model));
  },
  close({ model }) { models.delete(model); },
  set({ model, traits }) {
    const known = models.get(model);
    for (const [name, value] of Object.entries(traits)) { known.traits[name] = value; known.tell("change:" + name); }
  },
  message({ model, content }) { models.get(model)?.tell("msg:custom", content, []); },
  progress({ loaded = bar.max }) {
    const megabytes = (bytes) => (bytes / 1e6).toFixed(0), done = loaded >= bar.max;
    bar.hidden = false;
    bar.value = loaded;
    const wait = commands === 1 ? " 1 command waits." : commands ? ` ${commands} commands wait.` : linked ? "" : " Commands wait.";
    say((done ? "The cluster is starting." : `Python is loading: ${megabytes(loaded)} of ${megabytes(bar.max)} MB.`) + wait);
  },
  failed({ text }) {
    say(text, true);
    bar.hidden = true;
    if (place.firstChild) return;
    copy.hidden = true;
    place.innerHTML = '<a href="try.html">Open the example cluster instead</a>';
  },
  async link({ fragment }) {
    const address = new URL("try.html#" + fragment, location.href).href;
    history.replaceState(null, "", address);
    try { await navigator.clipboard.writeText(address); copied.textContent = "The link is on the clipboard, and in the address above."; }
    catch { copied.textContent = "The link is in the address above."; }
  },
};
copy.onclick = () => post({ do: "link" });
window.addEventListener("hashchange", () => { if (linked || location.hash.includes("story=")) location.reload(); });
if (linked) place.replaceChildren(); else (await unpack(document.getElementById("opening"))).forEach(answer);
if (linked || "begins" in place.dataset) begin();
