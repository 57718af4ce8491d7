// The review: corrections by keys and buttons, and kept. Behind review.js.
// Corrections: the truth of an image, noise, or clean with a class where one was named. The browser keeps
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

// Correcting.
// What is on a button, how it is called beside an image, and whether it says noise.
const CHOICES = [["Does not", "Does not belong", true], ["Belongs", "Belongs", false]];
const option = (name) => make("option", { value: name, textContent: name });
const asNamed = () => make("option", { value: "", textContent: "class as named" });

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
  const choice = ([words, longer, noise]) => {
    const made = button(words, () => {
      const truth = truths.get(item);
      choose(item);
      correct(item, truth && truth.noise === noise ? null : { noise, name: null });
    });
    made.setAttribute("aria-label", `${longer}: ${item.place}`);
    return made;
  };
  item.choices = CHOICES.map(choice);
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
  item.choices[0].setAttribute("aria-pressed", Boolean(truth && truth.noise));
  item.choices[1].setAttribute("aria-pressed", isClean);
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
  const where = isKept ? "" : " This browser does not keep them: export before you leave.";
  const before = carried ? ` ${images(carried)} labelled on an earlier page with other classes.` : "";
  const later = waiting.size ? ` ${images(waiting.size)} labelled for other classes: these answers wait.` : "";
  said.textContent = (truths.size ? `${images(truths.size)} labelled.${before}${where}` : "") + later;
  takeWaiting.hidden = !waiting.size;
  exporting.disabled = !truths.size;
  markQuestions();
  sayDone();
}

// How far one is in the list one is in.
const done = make("p", { id: "done" });
function sayDone() {
  const section = sections.find(({ all, list }) => current && list.contains(current.card) && all.includes(current));
  const labelled = section && section.all.filter((item) => truths.has(item)).length;
  done.textContent = section ? `${section.name}: ${number(labelled)} of ${number(section.all.length)} done.` : "";
}
