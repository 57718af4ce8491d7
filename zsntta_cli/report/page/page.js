// A click on a head sorts a table; the third click restores the order.
for (const table of document.querySelectorAll("table")) {
  const [upper, lower] = table.tHead.rows;
  const heads = lower ? [...[...upper.cells].filter((cell) => cell.rowSpan > 1), ...lower.cells] : [...upper.cells];
  const body = table.tBodies[0], rows = [...body.rows];
  if (rows.length < 2) continue;

  const words = (row, i) => row.cells[i].textContent.trim();
  const number = (row, i) => parseFloat(words(row, i).replaceAll(",", ""));
  heads.forEach((head, i) => {
    const isNumber = rows.every((row) => /^([+-]?[\d.]|-?$)/.test(words(row, i)));
    const compare = (sign) => (a, b) => {
      if (!isNumber) return sign * words(a, i).localeCompare(words(b, i), "en", { numeric: true });
      const [x, y] = [number(a, i), number(b, i)];
      return Number.isNaN(x) || Number.isNaN(y) ? Number.isNaN(x) - Number.isNaN(y) : sign * (x - y);
    };
    const orders = isNumber ? ["descending", "ascending", null] : ["ascending", "descending", null];
    const sorter = button(head.textContent.trim(), () => {
      const order = orders[(orders.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
      for (const other of heads) other.removeAttribute("aria-sort");
      if (order) head.setAttribute("aria-sort", order);
      body.append(...(order ? [...rows].sort(compare(order === "ascending" ? 1 : -1)) : rows));
    });
    head.replaceChildren(sorter);
  });
}

// What is folded is printed too.
let folded = [];
addEventListener("beforeprint", () => {
  folded = [...document.querySelectorAll("details:not([open])")];
  for (const one of folded) one.open = true;
});
addEventListener("afterprint", () => {
  for (const one of folded) one.open = false;
});
