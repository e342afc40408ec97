// Lays a drawing out for the room there is: its rows of blocks wrap. What stands in a block, moves to it or runs between two comes along.
class Flow {
  constructor(svg, { rows, wires }, offset, width, height) {
    this.svg = svg; this.wires = wires; this.offset = offset; this.drawn = [width, height];
    this.rows = rows.map(({ frame, apart, blocks }) => ({ frame, apart, blocks: blocks.map(([id, x, y, w, h]) => ({ id, x, y, w, h })) }));
    this.blocks = this.rows.flatMap((row) => row.blocks);
    this.frames = this.rows.filter((row) => row.frame).map((row) => ({ ...row.frame }));
    this.moved = new Map();
    this.size = [width, height];
  }
  // Wraps what is wider than `room`; whether anything has moved since the last time.
  fit(room) {
    const [width, height] = this.drawn, before = JSON.stringify([...this.moved]);
    this.moved.clear();
    this.size = [width, height];
    if (width > room) {
      const left = 6 - this.offset[0], lines = this.rows.map((row) => this.wrap(row, room - 12));
      const wide = Math.max(...lines.map((line) => line.width));
      let more = 0;
      this.rows.forEach((row, i) => { more += this.place(row, lines[i], left, wide, more); });
      this.size = [wide + 12, height + more];
    }
    return before !== JSON.stringify([...this.moved]);
  }
  // As few lines as the room allows; of blocks that are all alike about as many in each.
  wrap({ blocks, frame }, room) {
    const rims = frame ? 20 : 0, gap = 8, widest = Math.max(...blocks.map(({ w }) => w));
    const line = (some) => some.reduce((sum, { w }) => sum + w + gap, -gap), lines = [[]];
    const fits = Math.max(1, Math.floor((room - rims + gap) / (widest + gap))), alike = blocks.every(({ w }) => Math.abs(w - widest) < 1);
    const each = Math.ceil(blocks.length / Math.ceil(blocks.length / fits));
    for (const block of blocks) {
      const last = lines.at(-1), full = alike ? last.length === each : line([...last, block]) + rims > room;
      if (last.length && full) lines.push([block]); else last.push(block);
    }
    return { lines, rims, gap, width: Math.max(...lines.map(line)) + rims };
  }
  // The room that is needed for so many blocks beside one another in each row; what is not alike wraps as it can.
  least(count) {
    return 12 + Math.max(...this.rows.map(({ blocks, frame }) => {
      const widest = Math.max(...blocks.map(({ w }) => w)), alike = blocks.every(({ w }) => Math.abs(w - widest) < 1);
      const line = alike ? Math.min(count, blocks.length) : 1;
      return line * (widest + 8) - 8 + (frame ? 20 : 0);
    }));
  }
  place(row, { lines, rims, gap, width }, left, wide, above) {
    const top = Math.min(...row.blocks.map(({ y }) => y)), bottom = Math.max(...row.blocks.map(({ y, h }) => y + h));
    let y = top + above;
    for (const line of lines) {
      let x = left + (wide - width) / 2 + rims / 2;
      for (const block of line) { this.moved.set(block.id, [x - block.x, y - block.y]); x += block.w + gap; }
      y += Math.max(...line.map(({ h }) => h)) + row.apart;
    }
    const more = y - row.apart - above - bottom;
    if (row.frame) {
      const [id, fx, fy, fw, fh] = row.frame;
      this.moved.set(id, [left - fx, above, wide / fw, (fh + more) / fh]);
    }
    return more;
  }
  shift(id) { return this.moved.get(id) ?? [0, 0]; }
  at([x, y]) {
    const block = this.blocks.find((one) => x >= one.x - 1 && x <= one.x + one.w + 1 && y >= one.y - 1 && y <= one.y + one.h + 1);
    if (block) { const [dx, dy] = this.shift(block.id); return [x + dx, y + dy]; }
    for (const { frame } of this.rows) {
      if (!frame || !this.moved.has(frame[0])) continue;
      const [id, fx, fy, fw, fh] = frame, [dx, dy, sx, sy] = this.moved.get(id);
      if (x >= fx - 1 && x <= fx + fw + 1 && y >= fy - 1 && y <= fy + fh + 1) return [fx + dx + (x - fx) * sx, fy + dy + (y - fy) * sy];
    }
    return [x, y];
  }
  // A line whose ends have moved; what bends it keeps its distance from them.
  line(path) {
    if (!this.moved.size) return path;
    const numbers = path.match(/-?\d+\.?\d*/g).map(Number), points = [];
    for (let i = 0; i < numbers.length; i += 2) points.push([numbers[i], numbers[i + 1]]);
    const first = this.at(points[0]), last = this.at(points.at(-1));
    const shifts = [[first, points[0]], [last, points.at(-1)]].map(([now, was]) => [now[0] - was[0], now[1] - was[1]]);
    const bend = ([x, y], share) => [x + shifts[0][0] * (1 - share) + shifts[1][0] * share, y + shifts[0][1] * (1 - share) + shifts[1][1] * share];
    const moved = points.map((point, i) => (i === 0 ? first : i === points.length - 1 ? last : bend(point, i / (points.length - 1))));
    let i = 0;
    return path.replace(/-?\d+\.?\d*,-?\d+\.?\d*/g, () => moved[i++].map((v) => v.toFixed(1)).join(","));
  }
  // The place of something so wide at x, y that none of it is cut off.
  inside(x, width) {
    const left = 2 - this.offset[0];
    return Math.max(left + width / 2, Math.min(x, left + this.size[0] - 4 - width / 2));
  }
  // Moves what stands still.
  apply(parts) {
    const [width, height] = this.size;
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.setAttribute("width", width); this.svg.setAttribute("height", height);
    for (const part of parts.values()) {
      if (!part.dataset.in) continue;
      const [dx, dy] = this.shift(part.dataset.in);
      part.style.transform = dx || dy ? `translate(${dx}px,${dy}px)` : "";
    }
    for (const { frame } of this.rows) if (frame) this.stretch(parts.get(frame[0]), frame);
    for (const [id, [from, to]] of Object.entries(this.wires)) this.wire(parts.get(id), from, to);
  }
  stretch(part, [id, x, y, w, h]) {
    const body = part.querySelector(".body"), label = part.querySelector(".label");
    const [dx, dy, sx, sy] = this.moved.get(id) ?? [0, 0, 1, 1];
    const [x0, y0, x1, y1] = [x + dx, y + dy, x + dx + w * sx, y + dy + h * sy];
    body.setAttribute("points", `${x0},${y0} ${x1},${y0} ${x1},${y1} ${x0},${y1}`);
    if (label) label.setAttribute("transform", `translate(${dx} ${dy})`);
  }
  // A wire from above runs straight to a block of the first line, and beside the blocks to one of the next.
  wire(part, from, to) {
    const path = part.querySelector(".body");
    const label = part.querySelector(".label"), put = (x, y) => { label?.setAttribute("x", x); label?.setAttribute("y", y); };
    path.dataset.was ??= JSON.stringify([path.getAttribute("d"), label?.getAttribute("x"), label?.getAttribute("y")]);
    const [was, ...place] = JSON.parse(path.dataset.was);
    if (!this.moved.size) { put(...place); return path.setAttribute("d", was); }
    const row = this.rows.find(({ blocks }) => blocks.some(({ id }) => id === to)), block = row.blocks.find(({ id }) => id === to);
    const [dx, dy] = this.shift(to), x = block.x + dx, y = block.y + dy, middle = x + block.w / 2;
    const { frame } = this.rows.find((one) => one.frame?.[0] === from), [, fy, , fsy] = this.moved.get(from);
    const start = frame[2] + fy + frame[4] * fsy;
    const first = Math.min(...row.blocks.map((one) => one.y + this.shift(one.id)[1]));
    put(middle, y <= first + 1 ? start + 21 : y - Math.min(40, row.apart - 14));
    path.setAttribute("d", y <= first + 1 ? `M${middle},${start}V${start + 8}M${middle},${start + 27}V${y}` : `M${x - 4},${start}V${y - 10}L${middle},${y}`);
  }
}
