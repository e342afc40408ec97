([view, whole]) => {
  const box = document.querySelector(`.kc [data-view='${view}']`), svg = box.querySelector("svg"), found = [];
  const frame = box.getBoundingClientRect(), ground = svg.getBoundingClientRect(), near = 1.5;
  const scale = ground.width / svg.viewBox.baseVal.width, step = document.querySelector(".kc").dataset.step;
  const beside = (at) => at.left < frame.left - near || at.right > frame.right + near;
  const say = (what, text) => found.push(`step ${step}, ${view}: ${what} ${text}`);
  const seen = (part) => !part.closest(".s-gone") && getComputedStyle(part).opacity > 0;
  const [needs, has] = [box.scrollWidth, box.clientWidth];
  if (whole && needs > has + near) say("needs", `${needs} of ${has} pixels`);
  for (const hot of svg.querySelectorAll(".s-hot, .s-taken, .s-now, .s-band, .travel .pill")) {
    if (!seen(hot)) continue;
    const at = hot.getBoundingClientRect();
    const out = hot.matches(".s-band") ? at.bottom > ground.bottom + near : beside(at);
    if (out) say("cut off:", hot.dataset.id ?? hot.textContent);
  }
  const place = (pill) => [pill.textContent, pill.querySelector(".body").getBoundingClientRect()];
  const pills = [...svg.querySelectorAll(".travel .pill")].map(place);
  pills.forEach(([text, a], i) => pills.slice(0, i).forEach(([other, b]) => {
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (across > near && down > near) say("lies on", `${other}: ${text}`);
  }));
  for (const label of svg.querySelectorAll("text")) {
    const part = label.parentElement, said = label.textContent;
    if (!said || !seen(part)) continue;
    const at = label.getBoundingClientRect(), size = parseFloat(label.getAttribute("font-size")) * scale;
    if (at.bottom < ground.top || at.top > ground.bottom) continue;   // scrolled away
    if (size < 11.95 || size > 14.05) say("not of 12 to 14 pixels:", `${size.toFixed(1)} px: ${said}`);
    if (at.left < ground.left - near || at.right > ground.right + near) say("leaves the picture:", said);
    const body = part.querySelector(":scope > rect.body, :scope > polygon.body");
    if (!body || part.matches(".s-band, .s-veil, .s-wire, .s-legal, .s-taken")) continue;
    const room = body.getBoundingClientRect();
    const [left, right, high] = [at.left - room.left, room.right - at.right, at.top - room.top];
    if (Math.min(left, right) < -near || Math.min(high, room.bottom - at.bottom) < -near - 1)
      say("leaves its box:", `${said} (${part.dataset.id ?? "pill"})`);
  }
  return found;
}
