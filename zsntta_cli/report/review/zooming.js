// The review: one image as large as the window lets it be, with the likeliest classes.
const zoomed = {
  of: make("div", { className: "of" }), where: make("h2", { id: "zoomed" }),
  said: make("p", { className: "said" }, make("b"), make("span"), make("i")),
  note: make("p", { className: "note" }), top: make("tbody"),
};
const goNext = Object.assign(button("Next", () => go(1)), { autofocus: true });
const zoom = make("dialog", { id: "zoom" },
  zoomed.of,
  make("div", { className: "about" }, zoomed.where, zoomed.said,
    make("table", {}, make("thead", {}, make("tr", {}, ...["Likeliest classes", "Probability"].map((textContent) => make("th", { scope: "col", textContent })))), zoomed.top),
    zoomed.note,
    make("div", { className: "truth" }, ...CHOICES.map(([, longer, noise]) => button(longer, () => judge(noise)))),
    make("div", { className: "truth" }, button("Before", () => go(-1)), goNext, button("Close", () => zoom.close()))));
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
  opening.setAttribute("aria-label", `Larger: ${item.place}`);
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
  const truth = truths.get(current);
  const [doesNot, belongs] = zoom.querySelectorAll(".truth button");
  doesNot.setAttribute("aria-pressed", Boolean(truth && truth.noise));
  belongs.setAttribute("aria-pressed", Boolean(truth && !truth.noise));
}
