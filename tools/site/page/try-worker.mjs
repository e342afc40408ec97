// Python with the kit, in a worker: what a page needs of a kernel, without Jupyter.
import { loadPyodide } from "./static/pyodide/pyodide.mjs";

const PART = 200_000;   // bytes from one report of progress to the next
const post = (content) => postMessage(JSON.stringify(content));
const waiting = [], download = fetch;
let receive = (text) => waiting.push(text), loaded = 0, reported = 0;
onmessage = ({ data }) => receive(data);

function counted(part, controller) {
  loaded += part.length;
  controller.enqueue(part);
  if (loaded - reported < PART) return;
  reported = loaded;
  post({ do: "progress", loaded });
}
self.fetch = async (...asked) => {
  const answer = await download(...asked);
  return new Response(answer.body.pipeThrough(new TransformStream({ transform: counted })), answer);
};

try {
  const python = await loadPyodide({ packages: $packages, env: { KAFKA_CTL_DATA: "" } });
  post({ do: "progress" });
  const page = python.pyimport("kafka_ctl.browser");
  receive = page.connect((text) => postMessage(text));
  waiting.forEach((text) => receive(text));
} catch (error) {
  post({ do: "failed", text: "Python did not start: " + error.message });
  close();   // downloads that still run would report progress
}
