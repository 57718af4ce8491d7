// The review: what is shown. A slider moves all thresholds by one amount, filters choose. All names are
// set as text, never as markup; the lists are whole without this. correcting.js has the rest.
const data = JSON.parse(document.getElementById("review-data").textContent);
const controls = document.getElementById("controls");
const STEP = 120;  // images of a section that are shown before one asks for more
const items = data.rows.map((row, i) => {
  const card = document.getElementById("i" + i);
  const place = card.querySelector(".where").textContent;
  return { i, card, place, verdict: Object.fromEntries(row.map((x, j) => [data.columns[j], x])) };
});
// The most suspicious first, by margin, as thresholds that move go through them.
const ANSWERS = ["noise", "unsure", "clean"];
const doubt = (item) => ANSWERS.indexOf(item.verdict.answer);
const order = [...items].sort((a, b) =>
  b.verdict.margin - a.verdict.margin || doubt(a) - doubt(b) || a.i - b.i);
const counts = ANSWERS.map((answer) => items.filter((item) => item.verdict.answer === answer).length);
const own = counts[0] + counts[1];
const above = items.filter((item) => item.verdict.margin > 0).length;
const sections = ["borderline", ...ANSWERS].map((key) => {
  const head = document.getElementById(key);
  const more = button("", () => {
    section.limit += STEP;
    draw();
  });
  const section = { head, count: head.querySelector("small"), list: head.parentElement.querySelector("ol"), more, limit: STEP, all: [] };
  section.list.after(more);
  return section;
});
let flagged = own;
let decided = true;  // the answers are those of the file, and no threshold is moved
let current = null;

const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(2);
const images = (n) => (n === 1 ? "1 image" : `${n.toLocaleString("en")} images`);

// Controls.
const slider = make("input", { type: "range", name: "flagged", min: 0, max: items.length, value: own });
slider.addEventListener("input", () => {
  flagged = Number(slider.value);
  decided = flagged === own && !counts[1];
  draw();
});
const moved = make("p", { id: "moved" });
const asDecided = button("As decided", () => {
  slider.value = flagged = own;
  decided = true;
  draw();
});
const classes = make("select", { name: "class" }, make("option", { value: "", textContent: "all" }));
for (const name of [...new Set(items.map((item) => item.verdict.class))].sort()) {
  classes.append(make("option", { value: name, textContent: name }));
}
classes.addEventListener("change", () => draw());
const find = make("input", { type: "search", name: "find", autocomplete: "off" });
find.addEventListener("input", () => draw());
const keys = make("input", { type: "checkbox", name: "keys", checked: true });
const said = make("output");
const exporting = button("Export corrections", () => {
  download("corrections.jsonl", "application/jsonl", exported());
  isExported = true;
});
const help = make("details", {}, make("summary", { textContent: "Keys" }), make("ul", {},
  ...Object.entries({
    j: "next image", k: "image before", n: "it is noise", c: "it is clean; again: choose another class",
    u: "take the correction back", "/": "find",
  }).map(([key, words]) => make("li", {}, make("kbd", { textContent: key }), " " + words))),
make("label", { className: "check" }, keys, "Keys are on"));
controls.append(
  make("div", {}, make("label", { className: "slide" }, "How many are noise", slider), asDecided, moved),
  make("div", {}, make("label", {}, "Class", classes), make("label", {}, "Find", find), exporting, said, help),
);
controls.hidden = false;
for (const note of document.querySelectorAll(".noscript")) note.remove();

// What is shown.
function shift() {
  if (flagged === own) return 0;
  const last = order[flagged - 1] && order[flagged - 1].verdict.margin;
  const next = order[flagged] && order[flagged].verdict.margin;
  return flagged === 0 ? next : (last + (flagged < order.length ? next : last - 1)) / 2;
}

function matches({ verdict, place }) {
  const words = (place + " " + verdict.class).toLowerCase();
  return (!classes.value || verdict.class === classes.value)
    && find.value.toLowerCase().split(/\s+/).every((word) => words.includes(word));
}

function split() {
  const by = shift();
  const distance = (item) => Math.abs(item.verdict.margin - by);
  const at = decided ? above : flagged;
  const around = order.slice(Math.max(0, at - data.near), at + data.near);
  const near = around.sort((a, b) => distance(a) - distance(b) || a.i - b.i).slice(0, data.near);
  const taken = new Set(near);
  const rest = order.filter((item) => !taken.has(item));
  return [near, ...ANSWERS.map((answer) => rest.filter((item) => item.answer === answer))];
}

function draw() {
  const there = new Set();
  order.forEach((item, at) => { item.answer = decided ? item.verdict.answer : ANSWERS[at < flagged ? 0 : 2]; });
  split().forEach((all, at) => {
    const section = sections[at];
    section.all = all.filter(matches);
    const some = section.all.slice(0, section.limit);
    section.list.replaceChildren(...some.map((item) => item.card));
    for (const item of some) there.add(item);
    section.more.hidden = section.all.length <= section.limit;
    section.more.textContent = `Show ${Math.min(STEP, section.all.length - section.limit)} more`;
    const of = section.all.length < all.length ? ` of ${all.length.toLocaleString("en")}` : "";
    section.count.textContent = section.all.length.toLocaleString("en") + of;
  });
  for (const item of there) {
    dress(item);
    tell(item);
  }
  if (current && !there.has(current)) choose(null);
  slider.setAttribute("aria-valuetext", `${flagged} of ${images(items.length)}`);
  const noise = decided ? counts[0] : flagged;
  const unsure = decided && counts[1] ? `, ${counts[1].toLocaleString("en")} unsure` : "";
  const words = `${noise.toLocaleString("en")} of ${images(items.length)} are noise${unsure}`;
  if (decided) return moved.replaceChildren(words + ", as decided.");
  const typed = data.flag && flagged ? [", as with ", make("code", { textContent: `--flag ${flagged}` })] : [];
  moved.replaceChildren(`${words}; all thresholds ${signed(shift())}`, ...typed, ". Corrections are of what was decided.");
}

// The verdict with the thresholds where they are now: the margin is above 0 for noise.
function tell({ card, answer, verdict }) {
  const said = card.querySelector(".said b");
  said.textContent = answer;
  said.className = "is-" + answer;
  card.querySelector(".said span").textContent = signed(verdict.margin - shift());
}
