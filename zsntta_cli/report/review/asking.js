// The review: ten questions. Answers are corrections as all others. Before correcting.js.
const questions = [...document.querySelectorAll("#questions-list li")].map((line) => {
  const item = items[Number(line.dataset.image)];
  const answer = (words, noise) => {
    const made = button(words, () => correct(item, isAnswered(item, noise) ? null : { noise, name: null }));
    made.setAttribute("aria-label", `${words}: ${item.place}`);
    return made;
  };
  const picture = cardOf(item).querySelector("img");
  if (picture) line.prepend(picture.cloneNode());
  const answers = [answer("It does not", true), answer("It belongs", false)];
  line.append(make("span", { className: "truth" }, ...answers));
  line.querySelector("a").addEventListener("click", (event) => {
    event.preventDefault();
    reveal(item);
  });
  return { item, answers };
});

const isAnswered = (item, noise) => truths.has(item) && truths.get(item).noise === noise;

// Show the card of an image, in whichever list it stands; how far down it does, nothing before it is shown.
function reveal(item) {
  const section = sections.find(({ all }) => all.includes(item));
  if (!section) return;
  section.revealed.add(item);
  draw();
  item.card.focus({ preventScroll: true });
  item.card.scrollIntoView({ block: "center", behavior: "instant" });
}

// Show what was answered, wherever that was done.
function markQuestions() {
  for (const { item, answers: [doesNot, belongs] } of questions) {
    belongs.setAttribute("aria-pressed", isAnswered(item, false));
    doesNot.setAttribute("aria-pressed", isAnswered(item, true));
  }
}
