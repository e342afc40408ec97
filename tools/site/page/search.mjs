// The search: an index of all sections, made in the page when it is opened.
import MiniSearch from "./minisearch.js";

const SHOWN = 30, AROUND = 90;
const asked = document.getElementById("asked"), count = document.getElementById("count"), found = document.getElementById("found");
const index = new MiniSearch({ fields: ["heading", "page", "text"], storeFields: ["address", "heading", "page", "text"],
  searchOptions: { boost: { heading: 4, page: 2 }, prefix: true, combineWith: "AND" } });
const rows = await (await fetch("search.json")).json();
index.addAll(rows.map(([address, page, heading, text], id) => ({ id, address, page, heading, text })));

function show() {
  const results = index.search(asked.value);
  count.textContent = asked.value.trim() ? `${results.length} sections` : "";
  found.replaceChildren(...results.slice(0, SHOWN).map(({ address, page, heading, text, terms }) => {
    const row = document.createElement("li"), link = document.createElement("a"), more = document.createElement("p");
    link.href = address;
    link.textContent = page === heading ? page : `${page}: ${heading}`;
    const at = Math.max(0, text.toLowerCase().indexOf(terms[0]) - AROUND);
    more.textContent = (at ? "… " : "") + text.slice(at, at + 3 * AROUND);
    row.append(link, more);
    return row;
  }));
}
asked.value = new URLSearchParams(location.search).get("q") ?? "";
asked.oninput = () => {
  history.replaceState(null, "", "?q=" + encodeURIComponent(asked.value));
  show();
};
show();
