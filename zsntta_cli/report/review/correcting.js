// The review: corrections by keys and buttons, and kept. Behind review.js.
// Corrections: the truth of an image, noise, or clean with a class where one was named. They are
// kept by the browser under this page's digest, by number and not by name.
const KEY = "zsntta-review-" + data.id;
const truths = new Map();
let isKept = true;
let isExported = true;

// What a person judged before is labelled already; null takes that back.
function restore() {
  for (const item of items) {
    const { stage, noise, class: name } = item.verdict;
    if (stage === "judged") truths.set(item, { noise, name: noise ? null : name });
  }
  try {
    for (const [i, truth] of Object.entries(JSON.parse(localStorage.getItem(KEY) || "{}"))) {
      if (items[i] && truth === null) truths.delete(items[i]);
      else if (items[i] && Array.isArray(truth)) truths.set(items[i], { noise: truth[0] === true, name: data.classes.includes(truth[1]) ? truth[1] : null });
    }
  } catch {
    isKept = false;
  }
}

function keep() {
  try {
    const plain = [...truths].map(([item, truth]) => [item.i, [truth.noise, truth.name]]);
    for (const item of items) {
      if (item.verdict.stage === "judged" && !truths.has(item)) plain.push([item.i, null]);
    }
    localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(plain)));
  } catch {
    isKept = false;
  }
}

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
  if (truth) truths.set(item, truth);
  else truths.delete(item);
  isExported = false;
  keep();
  mark(item);
  count();
  if (zoom.open) tellZoom();
}

function count() {
  const where = isKept ? "" : " This browser does not keep them: export before you leave.";
  said.textContent = truths.size ? `${images(truths.size)} labelled.${where}` : "";
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
