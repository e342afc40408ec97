// Lays a drawing out for the room there is: its blocks stretch, shrink and wrap. Parts that stand in a block, and lines between two blocks, move with them.
const PEN = document.createElement("canvas").getContext("2d");
function widthOf(text, size) {
  PEN.font = `bold ${size}px Helvetica, Arial, sans-serif`;
  return PEN.measureText(text).width;
}
// A text that has so many pixels: without what follows its last commas and spaces, or cut.
function shortened(text, room, size) {
  const fits = (some) => widthOf(some, size) <= room;
  if (fits(text)) return text;
  for (const [sign, least] of [[", ", 3], [" ", 8]]) for (let at = text.lastIndexOf(sign); at > least; at = text.lastIndexOf(sign, at - 1)) if (fits(text.slice(0, at)) && !text.slice(0, at).endsWith(" not")) return text.slice(0, at);
  const [number] = /-\d+$/.exec(text) ?? [""];   // of a partition
  let most = text.length - number.length - 1;
  while (most > 1 && !fits(`${text.slice(0, most)}…${number}`)) most--;
  return `${text.slice(0, most)}…${number}`;
}
class Flow {
  constructor(svg, { rows, size }) {
    this.svg = svg;
    this.rows = rows.map((row) => ({ ...row, blocks: row.blocks.map(([id, x, y, w, h]) => ({ id, x, y, w, h })) }));
    this.blocks = new Map(this.rows.flatMap((row) => row.blocks.map((block) => [block.id, block])));
    this.size = size;
    this.drawn = [...size];
    this.was = new Map();
    this.fit(size[0]);
  }
  // Places each block; `at`, on which `line`, how wide.
  fit(pixels) {
    const edge = 6, gap = 8, room = Math.max(pixels, 280) - 2 * edge, lines = this.rows.map((row) => {
      const rims = row.frame ? row.blocks[0].x - row.frame[1] + gap : 0, count = row.blocks.length;
      const fits = Math.max(1, Math.floor((room - rims + gap) / (row.least + gap))), deep = Math.ceil(count / fits);
      const each = Math.ceil(count / deep), wide = Math.min(row.most, (room - rims - (each - 1) * gap) / each);
      return { rims, each, deep, wide, all: rims + each * (wide + gap) - gap };
    });
    const whole = Math.max(...lines.map(({ all }) => all));
    let more = 0;
    this.rows.forEach((row, i) => {
      const { rims, each, deep, all } = lines[i], { y, h } = row.blocks[0];
      const wide = row.frame ? (whole - rims - (each - 1) * gap) / each : lines[i].wide, left = edge + (row.frame ? rims - gap : (whole - all) / 2);
      row.blocks.forEach((block, n) => {
        block.line = Math.floor(n / each);
        block.place = [left + (n % each) * (wide + gap), y + more + block.line * (h + row.apart), wide];
        block.columns = row.columns;
      });
      const before = Math.max(...row.blocks.map((block) => block.y)) + h;   // a drawing may have several lines of its own
      const after = y + more + (deep - 1) * (h + row.apart) + h;
      if (row.frame) row.now = [edge, row.frame[2] + more, whole, row.frame[4] + after - before - more];
      more = after - before;
    });
    const size = [whole + 2 * edge, this.drawn[1] + more], moved = size.join() !== this.size.join() || !this.laid;
    this.size = size;
    this.laid = true;
    return moved;
  }
  // What stands in the left half of a column keeps its distance from the left, in the right half from the right.
  at([x, y], id) {
    const block = this.blocks.get(id) ?? this.around(x, y);
    if (!block) return [x, y];
    const [left, top, wide] = block.place, each = block.w / block.columns, now = wide / block.columns;
    const column = Math.max(0, Math.min(block.columns - 1, Math.floor((x - block.x) / each))), from = x - block.x - column * each, middle = from - each / 2;
    return [left + column * now + (Math.abs(middle) < 1.5 ? now / 2 + middle : middle < 0 ? from : from + now - each), y + top - block.y];
  }
  around(x, y) { return [...this.blocks.values()].find((one) => x >= one.x && x <= one.x + one.w && y >= one.y && y <= one.y + one.h); }
  wider(id) { const block = this.blocks.get(id); return block ? (block.place[2] - block.w) / block.columns : 0; }
  // A way along rails and lanes: its first two points belong to one end, its last two to the other; from line to line it goes past the others.
  way(path, [source, target]) {
    const points = path.slice(1).split("L").map((pair) => pair.split(",").map(Number)), both = source && target;
    const start = source ? this.end(points.slice(0, 2), source) : [], end = target ? this.end(points.slice(-2).reverse(), target).reverse() : [];
    const past = both && Math.abs(start.at(-1)[1] - end[0][1]) > 1 ? [[this.size[0] - 2, start.at(-1)[1]], [this.size[0] - 2, end[0][1]]] : [];
    return "M" + [...start, ...past, ...end].map((point) => point.map((v) => v.toFixed(1)).join(",")).join("L");
  }
  // The two end points of a line: at the part and in its lane. In a frame with several rows the line ends beside the part.
  end([touch, lane], id) {
    const block = this.blocks.get(id), row = this.rows.find(({ blocks }) => blocks.includes(block)), at = this.at(touch, id);
    if (!row.frame) return [at, this.at(lane, id)];
    const y = lane[1] + row.now[3] - row.frame[4], [left, top] = block.place, beside = left - 4, middle = top + block.h / 2;
    return block.line < row.blocks.at(-1).line ? [[left, middle], [beside, middle], [beside, y]] : [at, [at[0], y]];
  }
  // The session of a broker in a later line comes past the others.
  session(block) {
    const row = this.rows.find(({ blocks }) => blocks.includes(block)), [x, y] = block.place, rail = x + 3, top = y - row.apart, past = this.size[0] - 4;
    return block.line ? `M${past},${this.rows[0].blocks[0].y}V${top + 2}H${rail}V${y}` : `M${rail},${top}V${y}`;
  }
  // Moves and stretches what stands still.
  apply(parts) {
    const [width, height] = this.size;
    for (const [name, value] of Object.entries({ viewBox: `0 0 ${width} ${height}`, width, height })) this.svg.setAttribute(name, value);
    for (const part of parts.values()) {
      if (part.dataset.in) for (const piece of part.children) this.move(piece, part.dataset.in);
      const [, broker] = /^session:(\d+)$/.exec(part.dataset.id) ?? [], block = broker && this.blocks.get("broker:" + broker);
      if (block) part.querySelector(".body").setAttribute("d", this.session(block));
    }
    for (const { frame, now } of this.rows) if (frame) ["x", "y", "width", "height"].forEach((name, i) => parts.get(frame[0]).querySelector(".body").setAttribute(name, now[i]));
  }
  move(piece, id) {
    if (!this.was.has(piece)) this.was.set(piece, ["x", "y", "width", "transform", "data-room"].map((name) => piece.getAttribute(name)));
    const [x, y, width, transform, room] = this.was.get(piece);
    if (transform) {
      const [, sx, sy, rest] = /translate\(([-\d.]+) ([-\d.]+)\)(.*)/.exec(transform), [tx, ty] = this.at([+sx, +sy], id);
      return piece.setAttribute("transform", `translate(${tx} ${ty})${rest}`);
    }
    if (x === null) return;
    const [left, top] = this.at([+x, +y], id);
    piece.setAttribute("x", left); piece.setAttribute("y", top);
    if (width !== null) piece.setAttribute("width", Math.max(1, this.at([+x + +width, +y], id)[0] - left));
    if (room !== null) piece.dataset.room = +room + this.wider(id);
  }
  // The room that is needed for so many blocks beside one another.
  least(count) { return 12 + Math.max(...this.rows.map(({ blocks, least, frame }) => (frame ? 90 + least : Math.min(count, blocks.length) * (least + 8)))); }
}
