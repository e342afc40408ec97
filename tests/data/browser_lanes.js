() => {
  const svg = document.querySelector(".kc [data-view='cluster'] svg"), found = new Set(), last = +document.querySelector(".kc").dataset.last;
  const seen = (one) => one.textContent && !one.closest(".s-gone");
  const name = (one) => one.parentElement.dataset.id ?? one.textContent;
  for (let step = 0; step <= last; step++) {
    model.set("index", step);
    const ground = svg.getBoundingClientRect(), box = (one) => {
      const { left, right, top, bottom } = one.getBoundingClientRect();
      return { left: left - ground.left, right: right - ground.left, top: top - ground.top, bottom: bottom - ground.top };
    };
    const pills = [...svg.querySelectorAll(".travel .pill")].map((pill) => [pill.textContent, box(pill.querySelector(".body"))]);
    const words = [...svg.querySelectorAll(".label")].filter(seen).map((label) => [`${name(label)} (${label.textContent})`, box(label)]);
    const lines = [...svg.querySelectorAll(".travel .wire, [data-id^='session:']:not(.s-gone) .body")];
    for (const line of lines) for (let at = 0, all = line.getTotalLength(); at <= all; at += 3) {
      const { x, y } = line.getPointAtLength(at);
      for (const [what, { left, right, top, bottom }] of [...words, ...pills])
        if (x > left && x < right && y > top + 1 && y < bottom - 1) found.add(`step ${step}: a line crosses ${what}`);
    }
    pills.forEach(([what, a], i) => pills.slice(0, i).forEach(([other, b]) => {
      if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.5) found.add(`step ${step}: ${what} covers ${other}`);
    }));
  }
  return [[...found], svg.querySelectorAll(".travel .wire").length];
}
