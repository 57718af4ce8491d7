// The review: lists, questions, corrections, files, the large view, keys, in this order. A slider moves all
// thresholds by one amount, filters choose. All names are set as text, never as markup. Cards are made when
// they are first shown: there may be 100,000 images.

// --- What is shown
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
  moved.replaceChildren(`${words}; all thresholds moved by ${signed(shift())}`, ...typed, ". Corrections refer to the original decisions.");
}

// The verdict with the thresholds where they are now: the margin is above 0 for noise.
function tell({ answer, verdict }, element) {
  const word = element.querySelector(".said b");
  word.textContent = data.answers[answer];
  word.className = "is-" + answer;
  element.querySelector(".said span").textContent = signed(verdict.margin - shift());
}

// --- A histogram of margins, and where the threshold is now. Bars of images that do not belong
// are full, of the unsure hatched, of those that belong hollow: it is read without colours.
const BINS = 60;
const histogram = document.getElementById("histogram");
const { width: WIDE, height: HIGH } = histogram.viewBox.baseVal;
const bars = ANSWERS.map((answer) => histogram.querySelector(".bar-" + answer));
const line = histogram.querySelector(".threshold");
// The range leaves out the outermost two of a thousand, which stand in the first and the last bin.
const quantile = (share) => order.length ? order[Math.round((1 - share) * (order.length - 1))].verdict.margin : 0;
const low = Math.min(quantile(0.002), -1e-9);
const high = Math.max(quantile(0.998), 1e-9);
const across = (margin) => Math.min(1, Math.max(0, (margin - low) / (high - low)));
const bins = Uint8Array.from(order, ({ verdict }) => Math.min(BINS - 1, Math.floor(BINS * across(verdict.margin))));
const totals = new Uint32Array(BINS);
for (const bin of bins) totals[bin] += 1;
const highest = Math.max(1, ...totals);

// A bar that is there is seen: of 100,000 images three are no less to be looked at.
function drawHistogram() {
  const heights = ANSWERS.map(() => new Uint32Array(BINS));
  order.forEach((item, at) => { heights[ANSWERS.indexOf(item.answer)][bins[at]] += 1; });
  const below = new Float64Array(BINS);
  for (const answer of [2, 1, 0]) {
    let path = "";
    heights[answer].forEach((count, bin) => {
      if (!count) return;
      const height = Math.max(1.5, HIGH * count / highest);
      const [x, y] = [bin * WIDE / BINS + 1, Math.max(0, HIGH - below[bin] - height)];
      path += `M${x} ${(y + height).toFixed(1)}V${y.toFixed(1)}h${WIDE / BINS - 2}v${height.toFixed(1)}z`;
      below[bin] += height;
    });
    bars[answer].setAttribute("d", path);
  }
  const x = WIDE * across(shift());
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
  const said = ANSWERS.map((answer, at) => `${number(heights[at].reduce((a, b) => a + b, 0))} ${data.answers[answer]}`);
  histogram.setAttribute("aria-label", `Margins from ${signed(low)} to ${signed(high)}: ${said.join(", ")}.`);
}

// --- Ten questions. Answers are corrections as all others
const questions = [...document.querySelectorAll("#questions-list li")].map((line) => {
  const item = items[Number(line.dataset.image)];
  const picture = cardOf(item).querySelector("img");
  if (picture) line.prepend(picture.cloneNode());
  const answers = answerButtons(item, ["It does not", "It belongs"], ["It does not", "It belongs"]);
  line.append(make("span", { className: "truth" }, ...answers));
  line.querySelector("a").addEventListener("click", (event) => {
    event.preventDefault();
    reveal(item);
  });
  return { item, answers };
});

// The two answers, everywhere in this order; a second press takes one back.
function answerButtons(item, words, labels) {
  return [true, false].map((noise, at) => {
    const made = button(words[at], () => correct(item, isAnswered(item, noise) ? null : { noise, name: null }));
    made.setAttribute("aria-label", `${labels[at]}: ${item.place}`);
    return made;
  });
}

const isAnswered = (item, noise) => truths.has(item) && truths.get(item).noise === noise;

// Show on the two buttons what was answered, wherever that was done.
function markAnswers([doesNot, belongs], item) {
  doesNot.setAttribute("aria-pressed", isAnswered(item, true));
  belongs.setAttribute("aria-pressed", isAnswered(item, false));
}

// Show the card of an image, in whichever list it stands; how far down it does, nothing before it is shown.
function reveal(item) {
  const section = sections.find(({ all }) => all.includes(item));
  if (!section) return;
  section.revealed.add(item);
  draw();
  item.card.focus({ preventScroll: true });
  item.card.scrollIntoView({ block: "center", behavior: "instant" });
}

// --- Corrections: the truth of an image, noise, or clean with a class where one was named. The browser keeps
// them under the names of the classes, by the content of images (by the source where there is none):
// equal images have one answer, and a page that is made again has those of before. With other classes an
// answer holds as long as it says the same of these; others wait, and a button takes them.
const KEPT = "zsntta-labels-";
const KEY = KEPT + JSON.stringify([...data.classes].sort());
const truths = new Map();
const waiting = new Map();
let carried = 0;
let isKept = true;
let isExported = true;
const idOf = ({ verdict }) => (verdict.content ? verdict.content.slice(0, 32) : data.id + verdict.source);
const copies = new Map();
for (const item of items) {
  if (copies.has(idOf(item))) copies.get(idOf(item)).push(item);
  else copies.set(idOf(item), [item]);
}

function put(id, truth) {
  for (const item of copies.get(id) ?? []) {
    if (truth) truths.set(item, truth);
    else truths.delete(item);
  }
}

// What the browser has under a key: answers by images, null where one was taken back.
function keptUnder(key) {
  try {
    const all = JSON.parse(localStorage.getItem(key) || "{}");
    return Object.entries(all).filter(([id, label]) => copies.has(id) && (label === null || Array.isArray(label)));
  } catch {
    return [];
  }
}

// What a person judged before is labelled already; null takes that back.
function restore() {
  for (const item of items) {
    const { stage, noise, class: name } = item.verdict;
    if (stage === "judged") truths.set(item, { noise, name: noise ? null : name });
  }
  try {
    const own = new Map(keptUnder(KEY));
    for (const key of Object.keys(localStorage)) {
      if (key.startsWith(KEPT) && key !== KEY) restoreOthers(key, own);
    }
    for (const [id, label] of own) {
      const [noise, name] = label ?? [];
      put(id, label && { noise: noise === true, name: data.classes.includes(name) ? name : null });
    }
  } catch {
    isKept = false;
  }
}

// Answers about other classes. What belongs to none of them belongs to none of fewer; what belongs to
// one of them still does where that class is here.
function restoreOthers(key, own) {
  const theirs = key.slice(KEPT.length);
  for (const [id, label] of keptUnder(key)) {
    if (!label || own.has(id) || truths.has(copies.get(id)[0])) continue;
    const [noise, name, named] = label;
    const truth = { noise: noise === true, name: data.classes.includes(name) ? name : null };
    const holds = truth.noise ? data.classes.every((one) => theirs.includes(JSON.stringify(one))) : data.classes.includes(name ?? named);
    if (!holds) waiting.set(id, truth);
    else {
      put(id, truth);
      carried += 1;
    }
  }
}

function keep(item) {
  try {
    const truth = truths.get(item);
    const all = Object.fromEntries(ownOfAll());
    all[idOf(item)] = truth ? [truth.noise, truth.name, item.verdict.class] : null;
    localStorage.setItem(KEY, JSON.stringify(all));
  } catch {
    isKept = false;
  }
}

// All that is kept under these classes, also of images that are not here.
function ownOfAll() {
  let all = null;
  try {
    all = JSON.parse(localStorage.getItem(KEY));
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  return all && !Array.isArray(all) && typeof all === "object" ? Object.entries(all) : [];
}

const takeWaiting = button("Use answers about other classes", () => {
  for (const [id, truth] of waiting) {
    if (!truths.has(copies.get(id)[0])) correct(copies.get(id)[0], truth);
  }
  waiting.clear();
  count();
});

const LABELS = ["Does not belong", "Belongs"];
const option = (name) => make("option", { value: name, textContent: name });
const asNamed = () => make("option", { value: "", textContent: "class as shown" });

// The box of classes of an image that is clean. It stays, so that nothing moves below the mouse;
// there may be a thousand classes, so it is filled when one is at its image.
function boxOf(item) {
  const box = make("select", { name: "true-class" }, asNamed());
  box.setAttribute("aria-label", `Class: ${item.place}`);
  box.addEventListener("change", () => correct(item, { noise: false, name: box.value || null }));
  return box;
}

function fill(item, name) {
  if (item === current && item.box.length <= data.classes.length) {
    item.box.replaceChildren(asNamed(), ...data.classes.map(option));
  } else if (name && ![...item.box.options].some((one) => one.value === name)) item.box.append(option(name));
  item.box.value = name || "";
}

// What a card needs to be corrected, made when it is first shown.
function dress(item) {
  if (item.choices) return;
  item.choices = answerButtons(item, ["Does not", "Belongs"], LABELS);
  item.truth = make("div", { className: "truth" }, ...item.choices);
  item.card.tabIndex = -1;
  item.card.append(item.truth);
  enlarge(item);
  item.card.addEventListener("focusin", () => choose(item));
  item.card.addEventListener("click", () => choose(item));
  mark(item);
}

function choose(item) {
  if (item === current) return;
  if (current) current.card.classList.remove("at");
  current = item;
  if (item) item.card.classList.add("at");
  mark(item);
  sayDone();
}

// Show the truth on its card.
function mark(item) {
  if (!item || !item.choices) return;
  const truth = truths.get(item);
  const isClean = Boolean(truth && !truth.noise);
  markAnswers(item.choices, item);
  item.card.classList.toggle("corrected", Boolean(truth));
  if (isClean) {
    item.box ||= boxOf(item);
    fill(item, truth.name);
    if (item.box.parentElement !== item.truth) item.truth.append(item.box);
  } else if (item.box) item.box.remove();
}

function correct(item, truth) {
  put(idOf(item), truth);
  isExported = false;
  keep(item);
  for (const one of copies.get(idOf(item))) mark(one);
  count();
  if (zoom.open) tellZoom();
}

function count() {
  const where = isKept ? "" : " This browser does not store them: export before you leave.";
  const before = carried ? ` ${images(carried)} labelled on an earlier page with other classes.` : "";
  const later = waiting.size ? ` ${images(waiting.size)} labelled for other classes: these answers are not used yet.` : "";
  said.textContent = (truths.size ? `${images(truths.size)} labelled.${before}${where}` : "") + later;
  takeWaiting.hidden = !waiting.size;
  exporting.disabled = !truths.size;
  for (const { item, answers } of questions) markAnswers(answers, item);
  sayDone();
}

// How far one is in the list one is in.
const done = make("p", { id: "done" });
function sayDone() {
  const section = sections.find(({ all, list }) => current && list.contains(current.card) && all.includes(current));
  const labelled = section && section.all.filter((item) => truths.has(item)).length;
  done.textContent = section ? `${section.name}: ${number(labelled)} of ${number(section.all.length)} done.` : "";
}

// --- What leaves the page as a file: corrections, or the list as it stands
const said = make("output");
const exporting = button("Export corrections", () => {
  download("corrections.jsonl", "application/jsonl", exported());
  isExported = true;
});

// Plain ASCII, as the rows of the command: names of any bytes are escaped, and a line is one line.
const ascii = (words) => words.replace(/[^ -~]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

// A line for each image that was labelled, in the order of the rows.
function exported() {
  const there = items.filter((item) => truths.has(item));
  return there.map((item) => {
    const { source, content, ...verdict } = item.verdict;
    const { noise, name } = truths.get(item);
    return ascii(JSON.stringify({ format: data.format, source, content, noise, class: name, verdict })) + "\n";
  }).join("");
}

// All images in the order of the rows, with the thresholds where they are and as they were labelled.
function listed() {
  const by = shift();
  return items.map((item) => {
    const { source, class: name, margin } = item.verdict;
    const truth = truths.get(item);
    const answer = truth ? (truth.noise ? "noise" : "clean") : item.answer;
    return { source, answer, class: truth && truth.name || name, margin: margin - by, judged: Boolean(truth) };
  });
}

const asLines = (rows) => rows.map((row) => ascii(JSON.stringify(row)) + "\n").join("");
const asTable = (rows) => [["source", "answer", "class", "margin", "judged"], ...rows.map(Object.values)]
  .map((row) => row.map(field).join(",") + "\n").join("");
const listing = make("details", {}, make("summary", { textContent: "Save the list" }),
  make("p", { textContent: "All images with their current answers, at the slider's position and with your corrections." }),
  button("CSV", () => download("answers.csv", "text/csv", asTable(listed()))),
  button("JSON Lines", () => download("answers.jsonl", "application/jsonl", asLines(listed()))));

function download(name, type, content) {
  const link = make("a", { download: name, href: URL.createObjectURL(new Blob([content], { type })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

// A cell of a CSV.
function field(content) {
  if (content === null) return "";
  let words = String(content);
  if (typeof content === "string" && /^[=+\-@\t\r]/.test(words)) words = "'" + words;  // no formula
  return /[",\n\r]/.test(words) ? `"${words.replaceAll('"', '""')}"` : words;
}

// --- One image as large as the window lets it be, with the likeliest classes
const zoomed = {
  of: make("div", { className: "of" }), where: make("h2", { id: "zoomed" }),
  said: make("p", { className: "said" }, make("b"), make("span"), make("i")),
  note: make("p", { className: "note" }), top: make("tbody"),
};
const goNext = Object.assign(button("Next", () => go(1)), { autofocus: true });
const zoom = make("dialog", { id: "zoom" },
  zoomed.of,
  make("div", { className: "about" }, zoomed.where, zoomed.said,
    make("table", {}, make("thead", {}, make("tr", {}, ...["Most likely classes", "Probability"].map((textContent) => make("th", { scope: "col", textContent })))), zoomed.top),
    zoomed.note,
    make("div", { className: "truth" }, ...LABELS.map((words, at) => button(words, () => judge(at === 0)))),
    make("div", { className: "truth" }, button("Previous", () => go(-1)), goNext, button("Close", () => zoom.close()))));
zoom.setAttribute("aria-labelledby", "zoomed");
document.body.append(zoom);
zoom.addEventListener("click", (event) => {
  if (event.target === zoom) zoom.close();
});
zoom.addEventListener("close", () => {
  zoomed.of.replaceChildren();
  if (current && !current.card.contains(document.activeElement)) focusOn(current);
});

// The picture of a card as a button, for those who go by the tabulator.
function enlarge(item) {
  const of = item.card.querySelector(".of");
  const opening = button("", () => {
    choose(item);
    openZoom();
  });
  opening.className = "of";
  opening.setAttribute("aria-label", `Enlarge: ${item.place}`);
  opening.append(...of.childNodes);
  of.replaceWith(opening);
  const picture = opening.querySelector("img");
  if (picture && isMissing(picture)) picture.replaceWith(noPicture());
}

function openZoom() {
  if (!current) return;
  zoomIn();
  if (!zoom.open) zoom.showModal();
}

// The file if it is there, else the small picture of the page, else words.
function zoomIn() {
  const small = current.card.querySelector("img");
  const embedded = small && small.src.startsWith("data:") ? asPicture(small.src) : noPicture();
  const large = current.file ? asPicture(current.file) : embedded;
  if (current.file) large.addEventListener("error", (event) => {
    event.stopPropagation();
    large.replaceWith(embedded);
  });
  zoomed.of.replaceChildren(large);
  zoomed.where.textContent = current.place;
  zoomed.note.textContent = data.notes[current.i] ?? "";
  zoomed.said.lastChild.textContent = shownName(current.verdict.class);
  zoomed.top.replaceChildren(...likeliest(current));
  tellZoom();
}

function likeliest({ i }) {
  const top = data.tops[i];
  return top.filter((_, at) => at % 2 === 0).map((which, at) => {
    const name = typeof which === "number" ? data.classes[which] : which;
    const share = `${(top[2 * at + 1] / 10).toFixed(1)} %`;
    return make("tr", {}, make("th", { scope: "row", textContent: shownName(name) }), make("td", { textContent: share }));
  });
}

// What was decided, and what was answered.
function tellZoom() {
  tell(current, zoom);
  markAnswers(zoom.querySelectorAll(".truth button"), current);
}

// --- Keys, and how it begins
const keys = make("input", { type: "checkbox", name: "keys", checked: true });
const goesOn = make("input", { type: "checkbox", name: "goes-on", checked: true });
// Images that were left behind by their correction, with what was said of them before: `u` goes back.
let behind = [];

function focusOn(item) {
  choose(item);
  if (zoom.open) return zoomIn();
  item.card.focus({ preventScroll: true });
  item.card.scrollIntoView({ block: "nearest", behavior: "instant" });
}

function step(by) {
  const cards = () => sections.flatMap(listedIn);
  const at = cards().indexOf(current);
  const full = sections.find((s) => by > 0 && current && s.all[s.limit - 1] === current && !s.more.hidden);
  if (full) full.more.click();
  const item = cards()[at < 0 ? 0 : at + by];
  if (item) focusOn(item);
}

function go(by) {
  behind = [];
  step(by);
}

// Label the image one is at, and go on to the next.
function judge(noise) {
  if (!current) return;
  const item = current;
  const before = truths.get(item) ?? null;
  correct(item, { noise, name: null });
  if (!goesOn.checked) return;
  step(1);
  if (current !== item) behind.push({ item, before, at: current });
}

// Take back what was said of the image one left last, and go back to it; else of the one one is at.
function takeBack() {
  const last = behind.pop();
  if (last && last.at === current) {
    correct(last.item, last.before);
    return focusOn(last.item);
  }
  behind = [];
  if (current) correct(current, null);
}

// Another class is chosen beside the card.
function nameClass() {
  if (!current) return;
  if (zoom.open) zoom.close();
  const truth = truths.get(current);
  if (!truth || truth.noise) correct(current, { noise: false, name: null });
  current.box.focus();
}

const actions = {
  j: ["next image", () => go(1)],
  k: ["previous image", () => go(-1)],
  n: ["it does not belong; go on", () => judge(true)],
  c: ["it belongs; go on", () => judge(false)],
  e: ["it belongs to another class: choose it", nameClass],
  u: ["undo the last answer", takeBack],
  z: ["enlarge it; Esc closes it", () => (zoom.open ? zoom.close() : openZoom())],
  "/": ["find", () => (zoom.open || find.focus())],
};
const help = make("details", {}, make("summary", { textContent: "Keys" }), make("ul", {},
  ...Object.entries(actions).map(([key, [words]]) => make("li", {}, make("kbd", { textContent: key }), " " + words))),
make("label", { className: "check" }, keys, "Use keys"),
make("label", { className: "check" }, goesOn, "After answering by key, go on to the next image"));

addEventListener("keydown", (event) => {
  const { target, key } = event;
  const typing = target.matches("select, textarea, input:not([type=range], [type=checkbox])");
  if (key === "Escape" && target === find) find.blur();
  if (key === "Escape" && target.name === "true-class") current.card.focus();
  if (typing || !keys.checked || event.ctrlKey || event.metaKey || event.altKey) return;
  const opens = (key === "Enter" || key === " ") && current && target === current.card;
  if (!opens && !Object.hasOwn(actions, key)) return;
  event.preventDefault();
  if (opens) openZoom();
  else actions[key][1]();
});
addEventListener("beforeunload", (event) => {
  if (!isKept && !isExported && truths.size) event.preventDefault();
});

controls.append(
  make("div", { className: "thresholds" }, make("label", { className: "slide" }, "How many do not belong", slider), histogram),
  make("div", {}, moved, asDecided),
  make("div", {}, make("label", {}, "Class", classes), make("label", {}, "Find", find), exporting, said, takeWaiting, done, listing, help),
);
controls.hidden = false;
restore();
draw();
count();
