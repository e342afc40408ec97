// The living cluster without Jupyter: the kit's own widget on this page, its Python in a worker.
const state = document.getElementById("state"), place = document.getElementById("at");
const copy = document.getElementById("copy"), copied = document.getElementById("copied");
const worker = new Worker("try-worker.mjs", { type: "module" });
const models = new Map(), awaited = new Map();

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
const post = (content) => worker.postMessage(JSON.stringify(content));

const answers = {
  async show({ model, script, style }) {
    document.head.append(Object.assign(document.createElement("style"), { textContent: style }));
    const made = await import(URL.createObjectURL(new Blob([script], { type: "text/javascript" })));
    place.replaceChildren();
    made.default.render({ model: models.get(model), el: place });
    state.textContent = "";
    copy.disabled = false;
    performance.mark("first picture");
  },
  open({ model, traits }) {
    models.set(model, new Model(model, traits));
    awaited.get(model)?.(models.get(model));
  },
  close({ model }) { models.delete(model); },
  set({ model, traits }) {
    const known = models.get(model);
    for (const [name, value] of Object.entries(traits)) { known.traits[name] = value; known.tell("change:" + name); }
  },
  message({ model, content }) { models.get(model)?.tell("msg:custom", content, []); },
  progress({ text }) { state.textContent = text; },
  failed({ text }) { state.textContent = text; state.classList.add("wrong"); },
  async link({ fragment }) {
    const address = new URL("#" + fragment, location.href).href;
    history.replaceState(null, "", address);
    try { await navigator.clipboard.writeText(address); copied.textContent = "The link is on the clipboard, and in the address above."; }
    catch { copied.textContent = "The link is in the address above."; }
  },
};
worker.onmessage = ({ data }) => { const content = JSON.parse(data); answers[content.do](content); };
worker.onerror = (error) => answers.failed({ text: "Python did not start: " + (error.message || "a file of this site is missing") });
copy.onclick = () => post({ do: "link" });
window.addEventListener("hashchange", () => location.reload());
post({ do: "start", fragment: location.hash.slice(1) });
