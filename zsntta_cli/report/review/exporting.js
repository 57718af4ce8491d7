// The review: what leaves the page as a file, which is corrections, or the list as it stands.
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
const listing = make("details", {}, make("summary", { textContent: "List as a file" }),
  make("p", { textContent: "All images with their answers as they stand: the slider where it is, your corrections applied." }),
  button("CSV", () => download("answers.csv", "text/csv", asTable(listed()))),
  button("JSON Lines", () => download("answers.jsonl", "application/jsonl", asLines(listed()))));

// After an export, the next ten to label: in turn the one nearest to its threshold and the most
// suspicious of those without a label. They have cards of their own; the lists stay as they are.
const NEXT = 10;
const next = make("section", { id: "next", hidden: true });
next.setAttribute("aria-label", "Next to label");
controls.after(next);
exporting.addEventListener("click", propose);

function propose() {
  const open = (all) => all.filter((item) => !truths.has(item));
  const near = open([...items].sort((a, b) => Math.abs(a.verdict.margin) - Math.abs(b.verdict.margin) || a.i - b.i));
  const suspicious = open(order);
  const turns = near.flatMap((item, at) => [item, suspicious[at]]);
  const proposals = [...new Set(turns)].filter((item) => copies.get(idOf(item))[0] === item).slice(0, NEXT);
  const words = "They are near their thresholds, or suspicious: their labels say most about the others. Export again when you are done.";
  next.replaceChildren(
    make("h2", { textContent: "Next to label" }), make("p", { textContent: words }),
    make("ol", {}, ...proposals.map(proposed)),
  );
  next.hidden = !proposals.length;
}

function proposed(item) {
  const choices = CHOICES.map(([words, longer, noise]) => {
    const choice = button(words, () => {
      correct(item, { noise, name: null });
      for (const other of choices) other.setAttribute("aria-pressed", other === choice);
    });
    choice.setAttribute("aria-label", `${longer}: ${item.place}`);
    choice.setAttribute("aria-pressed", false);
    return choice;
  });
  const picture = cardOf(item).querySelector(".of > *, .of").cloneNode(true);
  const of = make("div", { className: "of" }, picture);
  const named = make("p", { className: "said" }, make("i", { textContent: shownName(item.verdict.class) }));
  const where = make("p", { className: "where", textContent: item.place });
  return make("li", {}, of, named, where, make("div", { className: "truth" }, ...choices));
}

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
