(selector) => {
  const parts = [...document.querySelectorAll(selector)], tested = document.createElement("canvas").getContext("2d");
  const bright = (colour) => {
    tested.fillStyle = colour; tested.fillRect(0, 0, 1, 1);
    const [r, g, b] = tested.getImageData(0, 0, 1, 1).data;
    return (0.299 * r + 0.587 * g + 0.114 * b) / 255;
  };
  let page = document.querySelector(selector);
  while (/, 0\)$|transparent/.test(getComputedStyle(page).backgroundColor)) page = page.parentElement;
  const colours = (name) => parts.map((part) => getComputedStyle(part)[name]);
  const seen = (name) => colours(name).filter((colour) => colour !== "none").map(bright);
  return { words: seen("fill"), lines: seen("stroke"), page: bright(getComputedStyle(page).backgroundColor) };
}
