// The review: what is shown. A slider moves all thresholds by one amount, filters choose. All names are
// set as text, never as markup. Cards are made when they are first shown: there may be 100,000 images.
const data = JSON.parse(document.getElementById("review-data").textContent);
const controls = document.getElementById("controls");
const template = document.getElementById("card").content.firstElementChild;
// The most suspicious first, by margin, as thresholds that move go through them.
const ANSWERS = Object.keys(data.answers);
const shownName = (name) => data.shown[name] ?? name;
const items = data.rows.map((row, i) => {
  const verdict = Object.fromEntries(row.map((x, j) => [data.columns[j], x]));
  return { i, verdict, place: data.places[i] ?? verdict.source, file: data.files[i], card: null };
});
const doubt = (item) => ANSWERS.indexOf(item.verdict.answer);
const order = [...items].sort((a, b) =>
  b.verdict.margin - a.verdict.margin || doubt(a) - doubt(b) || a.i - b.i);
const counts = ANSWERS.map((answer) => items.filter((item) => item.verdict.answer === answer).length);
const own = counts[0] + counts[1];
const above = items.filter((item) => item.verdict.margin > 0).length;
const sections = ["borderline", ...ANSWERS].map((key) => {
  const head = document.getElementById(key);
  const more = button("", () => {
    section.limit += data.step;
    draw();
  });
  const section = { head, name: head.firstChild.textContent.trim(), count: head.querySelector("small"), list: head.parentElement.querySelector("ol"), more, limit: data.step, all: [], revealed: new Set() };
  section.list.after(more);
  return section;
});
let flagged = own;
let decided = true;  // the answers are those of the file, and no threshold is moved
let current = null;

const number = (n) => n.toLocaleString("en");
const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(2);
const images = (n) => (n === 1 ? "1 image" : `${number(n)} images`);

// Cards: those of the file, and of the same form those that are asked for. A picture that is not
// where it was, as in a page that was sent, gives way to words.
for (const card of document.querySelectorAll("main ol > li")) items[Number(card.id.slice(1))].card = card;
const noPicture = () => make("span", { className: "none", textContent: "no picture" });
const asPicture = (src) => make("img", { alt: "", src, loading: "lazy", decoding: "async" });
const isMissing = (target) => target instanceof HTMLImageElement && target.complete && !target.naturalWidth;
addEventListener("error", ({ target }) => {
  if (isMissing(target)) target.replaceWith(noPicture());
}, true);

function cardOf(item) {
  if (item.card) return item.card;
  const card = template.cloneNode(true);
  card.id = "i" + item.i;
  if (item.file) card.querySelector(".of").replaceChildren(asPicture(item.file));
  card.querySelector(".said i").textContent = shownName(item.verdict.class);
  card.querySelector(".where").textContent = item.place;
  return item.card = card;
}

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
for (const note of document.querySelectorAll(".noscript, noscript")) note.remove();

// What is shown.
function shift() {
  if (flagged === own) return 0;
  const last = order[flagged - 1] && order[flagged - 1].verdict.margin;
  const next = order[flagged] && order[flagged].verdict.margin;
  return flagged === 0 ? next : (last + (flagged < order.length ? next : last - 1)) / 2;
}

function filter() {
  const words = find.value.toLowerCase().split(/\s+/);
  return ({ verdict, place }) => {
    if (classes.value && verdict.class !== classes.value) return false;
    const text = find.value ? (place + " " + verdict.class).toLowerCase() : "";
    return words.every((word) => text.includes(word));
  };
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

// The first images of a section, and those that a link led to.
function listedIn({ all, limit, revealed }) {
  const further = revealed.size ? all.slice(limit).filter((item) => revealed.has(item)) : [];
  return [...all.slice(0, limit), ...further];
}

function draw() {
  const there = new Set();
  order.forEach((item, at) => { item.answer = decided ? item.verdict.answer : ANSWERS[at < flagged ? 0 : 2]; });
  const matches = filter();
  split().forEach((all, at) => {
    const section = sections[at];
    section.all = all.filter(matches);
    const listed = listedIn(section);
    section.list.replaceChildren(...listed.map(cardOf));
    for (const item of listed) there.add(item);
    section.more.hidden = section.all.length <= section.limit;
    section.more.textContent = `Show ${Math.min(data.step, section.all.length - section.limit)} more`;
    const of = section.all.length < all.length ? ` of ${number(all.length)}` : "";
    section.count.textContent = number(section.all.length) + of;
  });
  for (const item of there) {
    dress(item);
    tell(item, item.card);
  }
  if (current && !there.has(current)) choose(null);
  sayMoved();
  drawHistogram();
  sayDone();
}

function sayMoved() {
  slider.setAttribute("aria-valuetext", `${flagged} of ${images(items.length)}`);
  const noise = decided ? counts[0] : flagged;
  const unsure = decided && counts[1] ? `, ${number(counts[1])} unsure` : "";
  const words = `${number(noise)} of ${images(items.length)} ${noise === 1 ? "does" : "do"} not belong${unsure}`;
  if (decided) return moved.replaceChildren(words + ", as decided.");
  const typed = data.flag && flagged ? [", as with ", make("code", { textContent: `--flag ${flagged}` })] : [];
  moved.replaceChildren(`${words}; all thresholds ${signed(shift())}`, ...typed, ". Corrections are of what was decided.");
}

// The verdict with the thresholds where they are now: the margin is above 0 for noise.
function tell({ answer, verdict }, element) {
  const word = element.querySelector(".said b");
  word.textContent = data.answers[answer];
  word.className = "is-" + answer;
  element.querySelector(".said span").textContent = signed(verdict.margin - shift());
}
