// The review: corrections by keys and buttons, kept, and exported. Behind review.js.
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
  const choice = (words, noise) => {
    const made = button(words, () => {
      const truth = truths.get(item);
      choose(item);
      correct(item, truth && truth.noise === noise ? null : { noise, name: null });
    });
    made.setAttribute("aria-label", `${words}: ${item.place}`);
    return made;
  };
  item.choices = [choice("Noise", true), choice("Clean", false)];
  item.truth = make("div", { className: "truth" }, ...item.choices);
  item.card.tabIndex = -1;
  item.card.append(item.truth);
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
}

function count() {
  const where = isKept ? "" : " This browser does not keep them: export before you leave.";
  said.textContent = truths.size ? `${images(truths.size)} labelled.${where}` : "";
  exporting.disabled = !truths.size;
  markQuestions();
}

// Plain ASCII, as the rows of the command: names of any bytes are escaped, and a line is one line.
const ascii = (words) => words.replace(/[^ -~]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

// A line for each image that was labelled, in the order of the rows.
function exported() {
  const there = items.filter((item) => truths.has(item));
  return there.map((item) => {
    const { source, frame, content, ...verdict } = item.verdict;
    const { noise, name } = truths.get(item);
    return ascii(JSON.stringify({ format: data.format, source, frame, content, noise, class: name, verdict })) + "\n";
  }).join("");
}

// After an export, the next ten to label: in turn the one nearest to its threshold and the most
// suspicious of those without a label. They have cards of their own; the lists stay as they are.
const NEXT = 10;
const next = make("section", { id: "next", hidden: true });
next.setAttribute("aria-label", "Next to label");
controls.after(next);
exporting.addEventListener("click", propose);

function propose() {
  const open = (some) => some.filter((item) => !truths.has(item));
  const near = open([...items].sort((a, b) => Math.abs(a.verdict.margin) - Math.abs(b.verdict.margin) || a.i - b.i));
  const suspicious = open(order);
  const some = [...new Set(near.flatMap((item, at) => [item, suspicious[at]]))].slice(0, NEXT);
  const words = "They are near their thresholds, or suspicious: their labels say most about the others. Export again when you are done.";
  next.replaceChildren(
    make("h2", { textContent: "Next to label" }), make("p", { textContent: words }),
    make("ol", {}, ...some.map(proposed)),
  );
  next.hidden = !some.length;
}

function proposed(item) {
  const choices = [["Noise", true], ["Clean", false]].map(([words, noise]) => {
    const choice = button(words, () => {
      correct(item, { noise, name: null });
      for (const other of choices) other.setAttribute("aria-pressed", other === choice);
    });
    choice.setAttribute("aria-label", `${words}: ${item.place}`);
    choice.setAttribute("aria-pressed", false);
    return choice;
  });
  const of = item.card.querySelector(".of").cloneNode(true);
  const named = make("p", { className: "said" }, make("i", { textContent: item.verdict.class }));
  const where = make("p", { className: "where", textContent: item.place });
  return make("li", {}, of, named, where, make("div", { className: "truth" }, ...choices));
}

// Keys.
function go(step) {
  const cards = () => sections.flatMap((section) => section.all.slice(0, section.limit));
  const at = cards().indexOf(current);
  const full = sections.find((s) => step > 0 && current && s.all[s.limit - 1] === current && !s.more.hidden);
  if (full) full.more.click();
  const next = cards()[at < 0 ? 0 : at + step];
  if (!next) return;
  next.card.focus({ preventScroll: true });
  next.card.scrollIntoView({ block: "nearest", behavior: "instant" });
}

const actions = {
  j: () => go(1),
  k: () => go(-1),
  n: () => current && correct(current, { noise: true, name: null }),
  c: () => {
    const truth = current && truths.get(current);
    if (truth && !truth.noise) current.box.focus();
    else if (current) correct(current, { noise: false, name: null });
  },
  u: () => current && correct(current, null),
  "/": () => find.focus(),
};
addEventListener("keydown", (event) => {
  const typing = event.target.matches("select, textarea, input:not([type=range], [type=checkbox])");
  if (event.key === "Escape" && event.target === find) find.blur();
  if (event.key === "Escape" && event.target.name === "true-class") current.card.focus();
  if (typing || !keys.checked || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(actions, event.key)) return;
  event.preventDefault();
  actions[event.key]();
});
addEventListener("beforeunload", (event) => {
  if (!isKept && !isExported && truths.size) event.preventDefault();
});

restore();
draw();
count();
