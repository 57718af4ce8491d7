// The review: keys, and how it begins. Behind all others.
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
  k: ["image before", () => go(-1)],
  n: ["it does not belong; go on", () => judge(true)],
  c: ["it belongs; go on", () => judge(false)],
  e: ["it belongs, but to another class: choose", nameClass],
  u: ["take the last answer back", takeBack],
  z: ["show it large; Esc: close", () => (zoom.open ? zoom.close() : openZoom())],
  "/": ["find", () => (zoom.open || find.focus())],
};
const help = make("details", {}, make("summary", { textContent: "Keys" }), make("ul", {},
  ...Object.entries(actions).map(([key, [words]]) => make("li", {}, make("kbd", { textContent: key }), " " + words))),
make("label", { className: "check" }, keys, "Keys are on"),
make("label", { className: "check" }, goesOn, "After an answer by key, go on to the next"));

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
