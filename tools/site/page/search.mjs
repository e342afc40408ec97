// The search: an index of all sections, made in the page when it is opened. The field is the one in the page's head.
import MiniSearch from "./minisearch.js";

const SHOWN = 30, AROUND = 135;   // results; characters on each side of a match
const asked = document.querySelector("header input"), count = document.getElementById("count"), found = document.getElementById("found");
const index = new MiniSearch({ fields: ["heading", "page", "text"], storeFields: ["address", "heading", "page", "text"],
  searchOptions: { boost: { heading: 4, page: 2 }, prefix: true, combineWith: "AND" } });

function show() {
  if (!index.documentCount) return void (count.textContent = "The index is loading.");
  const whole = asked.value.trim().toLowerCase(), has = (text) => text.toLowerCase().includes(whole);
  const boostDocument = (id, term, { heading, text }) => has(heading) ? 100 : has(text) ? 10 : 1;
  const results = index.search(whole, { boostDocument });
  const sections = new Map((results[0]?.queryTerms ?? []).map((term) => [term, index.search(term).length]));
  const wanted = [whole, ...[...sections.keys()].sort((one, other) => sections.get(one) - sections.get(other))];   // the rarest first
  count.textContent = whole && counted(results.length);
  found.replaceChildren(...results.slice(0, SHOWN).map(({ address, page, heading, text }) => {
    const row = document.createElement("li"), link = document.createElement("a"), more = document.createElement("p");
    link.href = address;
    link.textContent = page.endsWith(heading) ? page : `${page}: ${heading}`;
    more.textContent = excerpt(text, wanted.map((term) => text.toLowerCase().indexOf(term)).find((at) => at >= 0) ?? 0);
    row.append(link, more);
    return row;
  }));
}
function counted(results) {
  if (!results) return "No section has all of these words.";
  return results === 1 ? "1 section" : `${results} sections` + (results > SHOWN ? `; the first ${SHOWN}:` : "");
}
// The text around a place, cut between words.
function excerpt(text, at) {
  const start = text.lastIndexOf(" ", at - AROUND) + 1, end = text.indexOf(" ", start + 2 * AROUND);
  return (start ? "… " : "") + (end < 0 ? text.slice(start) : text.slice(start, end) + " …");
}
// What is typed before the index is there is searched when it is.
asked.value ||= new URLSearchParams(location.search).get("q") ?? "";
asked.oninput = () => {
  history.replaceState(null, "", "?q=" + encodeURIComponent(asked.value));
  show();
};
asked.focus();
show();
const rows = await (await fetch("search.json")).json();
index.addAll(rows.map(([address, page, heading, text], id) => ({ id, address, page, heading, text })));
show();
