// A lesson's link to a document, a file of code or a story opens its page of the site: JupyterLite would show its text.
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
