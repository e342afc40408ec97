// The figures of a page: each becomes a player when it is nearly in sight. Until then it is a picture.
const figures = document.querySelectorAll("figure.run");
const near = new IntersectionObserver((entries) => {
  for (const { isIntersecting, target } of entries) if (isIntersecting) { near.unobserve(target); play(target); }
}, { rootMargin: "300px" });
figures.forEach((figure) => near.observe(figure));

async function play(figure) {
  const { default: player, recorded } = await import("./player.mjs"), place = figure.firstElementChild;
  const film = await unpack(figure.querySelector("script"));
  place.replaceChildren();
  player.render({ model: recorded(film, +figure.dataset.index), el: place });
}
export async function unpack(packed) {
  const { body } = await fetch("data:;base64," + packed.textContent);
  return new Response(body.pipeThrough(new DecompressionStream("deflate"))).json();
}
