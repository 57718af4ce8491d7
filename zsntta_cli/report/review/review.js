// The review: a slider moves all thresholds by one amount, keys and buttons correct verdicts, and
// corrections are exported. All names are set as text, never as markup; the lists are whole without this.
(() => {
  const data = JSON.parse(document.getElementById("review-data").textContent);
  const controls = document.getElementById("controls");
  const STEP = 120;  // images of a section that are shown before one asks for more
  const items = data.rows.map((row, i) => {
    const card = document.getElementById("i" + i);
    const place = card.querySelector(".where").textContent;
    return { i, card, place, verdict: Object.fromEntries(row.map((x, j) => [data.columns[j], x])) };
  });
  // The most suspicious first; what is called noise comes before the rest, as the lists have it.
  const order = [...items].sort((a, b) =>
    b.verdict.noise - a.verdict.noise || b.verdict.margin - a.verdict.margin || a.i - b.i);
  const own = items.filter((item) => item.verdict.noise).length;
  const sections = ["borderline", "noise", "clean"].map((key) => {
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
  let current = null;

  // Corrections: the truth of an image, noise, or clean with a class where one was named. They are
  // kept by the browser under this page's digest, by number and not by name.
  const KEY = "zsntta-review-" + data.id;
  const truths = new Map();
  let isKept = true;
  let isExported = true;

  function restore() {
    try {
      for (const [i, [noise, name]] of Object.entries(JSON.parse(localStorage.getItem(KEY) || "{}"))) {
        if (items[i]) truths.set(items[i], { noise: noise === true, name: data.classes.includes(name) ? name : null });
      }
    } catch {
      isKept = false;
    }
  }

  function keep() {
    try {
      const plain = [...truths].map(([item, truth]) => [item.i, [truth.noise, truth.name]]);
      localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(plain)));
    } catch {
      isKept = false;
    }
  }

  const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(2);
  const images = (n) => (n === 1 ? "1 image" : `${n.toLocaleString("en")} images`);

  // Controls.
  const slider = make("input", { type: "range", name: "flagged", min: 0, max: items.length, value: own });
  slider.addEventListener("input", () => {
    flagged = Number(slider.value);
    draw();
  });
  const moved = make("p", { id: "moved" });
  const asDecided = button("As decided", () => {
    slider.value = flagged = own;
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
    const around = order.slice(Math.max(0, flagged - data.near), flagged + data.near);
    const near = around.sort((a, b) => distance(a) - distance(b) || a.i - b.i).slice(0, data.near);
    const taken = new Set(near);
    const rest = (some) => some.filter((item) => !taken.has(item));
    return [near, rest(order.slice(0, flagged)), rest(order.slice(flagged))];
  }

  function draw() {
    const there = new Set();
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
    order.forEach((item, at) => tell(item, at < flagged));
    if (current && !there.has(current)) choose(null);
    slider.setAttribute("aria-valuetext", `${flagged} of ${images(items.length)}`);
    const how = flagged === own ? "as decided" : `all thresholds moved by ${signed(shift())}`;
    const typed = data.flag && flagged !== own && flagged ? `, as --flag ${flagged} decides` : "";
    const note = flagged === own ? "" : " Corrections are still judged by what was decided.";
    moved.textContent = `${flagged.toLocaleString("en")} of ${images(items.length)} are noise: ${how}${typed}.${note}`;
  }

  function tell(item, noise) {
    if (item.noise === noise) return;
    item.noise = noise;
    const verdict = item.card.querySelector(".said b");
    verdict.textContent = noise ? "noise" : "clean";
    verdict.className = noise ? "is-noise" : "is-clean";
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

  for (const item of items) {
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
    if (!item) return;
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
  }

  // Plain ASCII, as the rows of the command: names of any bytes are escaped, and a line is one line.
  const ascii = (words) => words.replace(/[^ -~]/g, (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"));

  // A line for each image that was labelled, in the order of the rows.
  function exported() {
    const there = items.filter((item) => truths.has(item));
    return there.map((item) => {
      const { source, frame, ...verdict } = item.verdict;
      const { noise, name } = truths.get(item);
      return ascii(JSON.stringify({ format: data.format, source, frame, noise, class: name, verdict })) + "\n";
    }).join("");
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
  items.forEach(mark);
  count();
})();
