// What a lesson in JupyterLite needs besides JupyterLite.
//
// A link to a document, a file of code or a story opens its page of the site: JupyterLite would show its text.
const files = new URL("../files/", location.href).href;
addEventListener("click", (event) => {
  const link = event.target.closest?.(".jp-RenderedMarkdown a[href]");
  const found = link?.href.startsWith(files) && link.href.slice(files.length).match(/^(.+?)(\.\w+)(#.*)?$/);
  if (!found || [".ipynb", ".svg", ".png"].includes(found[2])) return;
  const [, name, suffix, heading = ""] = found;
  event.preventDefault();
  event.stopImmediatePropagation();
  open(new URL(`../${name}${suffix === ".md" ? "" : suffix}.html${heading}`, location.href), "_blank", "noopener");
}, true);

// A kernel of JupyterLite never answers `comm_info_request`, and ipywidgets restores no saved widget before that answer.
// Kernels live in this page, which sees all their messages: the page knows the open comms of each, and answers.
const opened = {};
function answering(kernel) {
  const comms = (opened[kernel.id] ??= {});
  kernel.anyMessage.connect((_, { msg: { header, content } }) => {
    if (header.msg_type === "comm_open") comms[content.comm_id] = { target_name: content.target_name };
    if (header.msg_type === "comm_close") delete comms[content.comm_id];
  });
  kernel.statusChanged.connect((_, status) => {
    if (status === "restarting") Object.keys(comms).forEach((id) => delete comms[id]);
  });
  kernel.requestCommInfo = async ({ target_name: wanted } = {}) => {
    const found = Object.entries(comms).filter(([, { target_name }]) => !wanted || target_name === wanted);
    return { content: { status: "ok", comms: Object.fromEntries(found) } };
  };
  return kernel;
}

// The address of an incident, `#on-call=14`, opens it in a notebook of its own; one that is there already is left as it is.
const [, seed, logs] = /^#on-call=(\d{1,18})(&logs)?$/.exec(location.hash) ?? [];
async function openIncident() {
  const path = `on-call-${seed}${logs ? "-logs" : ""}.ipynb`, { contents } = app.serviceManager;
  const cell = (id, text) => ({ id, cell_type: "code", source: text, metadata: {}, outputs: [], execution_count: null });
  const incident = `incident = on_call(${seed}${logs ? ", logs_only=True" : ""})\nincident`;
  const cells = [cell("open", `from kafka_ctl import on_call\n\n${incident}`), cell("look", "incident.lab.brokers")];
  const metadata = { kernelspec: { name: "python", display_name: "Python (Pyodide)", language: "python" } };
  await app.restored;
  const found = await contents.get(path, { content: false }).catch(() => null);
  if (!found) await contents.save(path, { type: "notebook", format: "json", content: { cells, metadata, nbformat: 4, nbformat_minor: 5 } });
  const panel = await app.commands.execute("docmanager:open", { path });
  await panel.context.ready;
  await panel.sessionContext.ready;
  await panel.sessionContext.session.kernel.info;
  if (!found) await app.commands.execute("notebook:run-all-cells");
}
let app;
Object.defineProperty(window, "jupyterapp", {
  get: () => app,
  set(made) {
    app = made;
    const { kernels } = app.serviceManager, connect = kernels.connectTo.bind(kernels);
    kernels.connectTo = (options) => answering(connect(options));
    if (seed) openIncident();
    // JupyterLab shows the file browser beside each lesson that an address opens; a phone has no room for both.
    app.commands.commandExecuted.connect(async (_, { id, result }) => {
      await result;
      if (id === "filebrowser:activate" && innerWidth < 700 && app.shell.currentWidget) app.shell.collapseLeft();
    });
  },
});
