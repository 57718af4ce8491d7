// The leaderboard sorts, filters and downloads; its state stands in the URL's hash.
// All names are set as text, never as markup. The page is whole without this.
(() => {
  const table = document.querySelector("table.board");
  const controls = document.getElementById("controls");
  const data = JSON.parse(document.getElementById("board-data").textContent);
  const PREFIX = "#board?";

  // A column has a value for each row, or where most are alike each value once with its count.
  const columns = Object.keys(data.columns);
  const whole = Object.values(data.columns).map(({ values, counts, is_text }) => values.flatMap(
    (x, i) => Array(counts ? counts[i] : 1).fill(is_text && x !== null ? data.texts[x] : x)));
  const values = ({ at }) => whole.map((column) => column[at]);

  const rows = [];
  const bodies = [...table.tBodies].map((body) => {
    const own = [...body.rows].filter((row) => !row.classList.contains("head"));
    for (const row of own) rows.push({ row, at: rows.length, texts: [...row.cells].map((c) => c.textContent.trim()) });
    return { body, rows: rows.slice(-own.length) };
  });
  const heads = [...table.tHead.rows[0].cells];
  const keys = heads.map((head) => head.dataset.key);
  const filtered = keys.filter((_, i) => "filter" in heads[i].dataset);
  let state = { sort: "", down: false, only: {}, find: "" };

  // Controls.
  const selects = {};
  for (const key of filtered) {
    const i = keys.indexOf(key);
    const values = [...new Set(rows.map((row) => row.texts[i]))];
    selects[key] = make("select", { name: key }, make("option", { value: "", textContent: "all" }));
    for (const value of values) selects[key].append(make("option", { value, textContent: value }));
    selects[key].addEventListener("change", () => {
      state.only[key] = selects[key].value;
      changed();
    });
    controls.append(make("label", {}, heads[i].textContent, selects[key]));
  }
  const find = make("input", { type: "search", name: "find", autocomplete: "off" });
  find.addEventListener("input", () => {
    state.find = find.value;
    changed();
  });
  const count = make("output");
  controls.append(
    make("label", {}, "Find", find),
    button("Reset", () => {
      state = { sort: "", down: false, only: {}, find: "" };
      changed();
    }),
    button("Download CSV", () => download("leaderboard.csv", "text/csv", asCsv(shown()))),
    button("Download JSON", () => download("leaderboard.json", "application/json", asJson(shown()))),
    count,
  );
  controls.hidden = false;
  for (const note of document.querySelectorAll(".noscript")) note.remove();

  heads.forEach((head, i) => {
    const words = head.textContent;
    head.textContent = "";
    head.append(button(words, () => {
      const first = isNumber(i) && !("low" in heads[i].dataset);
      if (state.sort !== keys[i]) Object.assign(state, { sort: keys[i], down: first });
      else if (state.down === first) state.down = !first;
      else state.sort = "";
      changed();
    }));
  });

  // State: what is asked for, in the hash and out of it.
  function write() {
    const asked = new URLSearchParams();
    if (state.sort) asked.set("sort", (state.down ? "-" : "") + state.sort);
    for (const key of filtered) if (state.only[key]) asked.set(key, state.only[key]);
    if (state.find) asked.set("find", state.find);
    const hash = asked.toString() ? PREFIX + asked : "#board";
    if (location.hash !== hash) history.replaceState(null, "", hash);
  }

  function read() {
    const asked = new URLSearchParams(location.hash.startsWith(PREFIX) ? location.hash.slice(PREFIX.length) : "");
    const sort = asked.get("sort") || "";
    const key = sort.replace(/^-/, "");
    state = { sort: keys.includes(key) ? key : "", down: sort.startsWith("-"), only: {}, find: asked.get("find") || "" };
    for (const name of filtered) {
      const value = asked.get(name) || "";
      if ([...selects[name].options].some((option) => option.value === value)) state.only[name] = value;
    }
  }

  function changed() {
    write();
    draw();
  }

  // What is shown.
  const isNumber = (i) => heads[i].classList.contains("n");
  const value = (row, i) => parseFloat(row.texts[i].replace(/^[<≥]/, ""));

  function matches(row) {
    const words = row.texts.join(" ").toLowerCase();
    return filtered.every((key) => !state.only[key] || row.texts[keys.indexOf(key)] === state.only[key])
      && state.find.toLowerCase().split(/\s+/).every((word) => words.includes(word));
  }

  function order(a, b) {
    const i = keys.indexOf(state.sort);
    const sign = state.down ? -1 : 1;
    if (i < 0) return a.at - b.at;
    if (!isNumber(i)) return sign * a.texts[i].localeCompare(b.texts[i], "en", { numeric: true }) || a.at - b.at;
    const [x, y] = [value(a, i), value(b, i)];
    if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y) || a.at - b.at;
    return sign * (x - y) || a.at - b.at;
  }

  // Each body is sorted within itself: rows of other features are never ranked among these.
  const shown = () => bodies.flatMap(({ rows: own }) => own.filter(matches).sort(order));

  function draw() {
    for (const { body, rows: own } of bodies) {
      const there = own.filter(matches).sort(order);
      for (const row of own) row.row.hidden = true;
      for (const row of there) {
        row.row.hidden = false;
        body.append(row.row);
      }
      body.hidden = !there.length;
    }
    heads.forEach((head, i) => {
      if (keys[i] === state.sort) head.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    for (const key of filtered) selects[key].value = state.only[key] || "";
    if (find.value !== state.find) find.value = state.find;
    const words = `${shown().length} of ${rows.length} rows`;
    if (count.textContent !== words) count.textContent = words;
  }

  // Downloads, of the rows that are shown.
  const asJson = (some) => JSON.stringify(some.map((row) =>
    Object.fromEntries(values(row).map((x, i) => [columns[i], x]))), null, 1) + "\n";

  const asCsv = (some) => [columns, ...some.map(values)]
    .map((line) => line.map(field).join(",")).join("\n") + "\n";

  // What is folded is printed too.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const one of folded) one.open = true;
  });
  addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });

  addEventListener("hashchange", () => {
    if (location.hash.startsWith("#board")) {
      read();
      draw();
    }
  });
  read();
  draw();
  if (location.hash.startsWith("#board")) table.closest("section").scrollIntoView();
})();
