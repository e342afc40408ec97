// Graphviz as WebAssembly, run by the browser that Python runs in: bytes of the module in, a function from DOT to SVG out.
// The module asks for six functions of WASI; whatever else it asks for is answered with "bad file", as there are no files.
(bytes) => {
  const BAD_FILE = 8;
  let memory;
  const word = (at, value) => { new DataView(memory.buffer).setUint32(at, value, true); return 0; };
  const known = {
    environ_get: () => 0,
    environ_sizes_get: (count, size) => word(count, 0) || word(size, 0),
    clock_time_get: (id, precision, at) => word(at, 0) || word(at + 4, 0),
    random_get: (at, size) => { new Uint8Array(memory.buffer, at, size).fill(7); return 0; },
    proc_exit: (status) => { throw new Error("Graphviz ended with status " + status); },
    fd_write: (fd, list, many, at) => {
      const view = new DataView(memory.buffer);
      let size = 0;
      for (let i = 0; i < many; i++) size += view.getUint32(list + 8 * i + 4, true);
      return word(at, size);
    },
  };
  const imports = new Proxy({}, { get: (_, name) => known[name] ?? (() => BAD_FILE) });
  const made = new WebAssembly.Instance(new WebAssembly.Module(bytes), { wasi_snapshot_preview1: imports }).exports;
  memory = made.memory;
  const give = (text) => {
    const coded = new TextEncoder().encode(text), at = made.malloc(coded.length + 1);
    const room = new Uint8Array(memory.buffer, at, coded.length + 1);
    room.set(coded);
    room[coded.length] = 0;
    return at;
  };
  const take = (at, size) => new TextDecoder().decode(new Uint8Array(memory.buffer, at, size));
  const end = (at) => new Uint8Array(memory.buffer).indexOf(0, at);
  return (source) => {
    const given = [give(source), give("svg"), give("dot"), made.malloc(4)];
    const at = made.graphviz_render(...given);
    const size = new DataView(memory.buffer).getUint32(given[3], true);
    given.forEach((each) => made.free(each));
    if (!at) {
      const text = made.graphviz_last_error();
      throw new Error(take(text, end(text) - text));
    }
    const svg = take(at, size);
    made.free(at);
    return svg;
  };
}
