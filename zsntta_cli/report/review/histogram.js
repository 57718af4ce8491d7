// The review: a histogram of margins, and where the threshold is now. Bars of images that do not belong
// are full, of the unsure hatched, of those that belong hollow: it is read without colours.
const BINS = 60;
const histogram = document.getElementById("histogram");
const { width: WIDE, height: HIGH } = histogram.viewBox.baseVal;
const bars = ANSWERS.map((answer) => histogram.querySelector(".bar-" + answer));
const line = histogram.querySelector(".threshold");
// The range leaves out the outermost two of a thousand, which stand in the first and the last bin.
const quantile = (share) => order.length ? order[Math.round((1 - share) * (order.length - 1))].verdict.margin : 0;
const low = Math.min(quantile(0.002), -1e-9);
const high = Math.max(quantile(0.998), 1e-9);
const across = (margin) => Math.min(1, Math.max(0, (margin - low) / (high - low)));
const bins = Uint8Array.from(order, ({ verdict }) => Math.min(BINS - 1, Math.floor(BINS * across(verdict.margin))));
const totals = new Uint32Array(BINS);
for (const bin of bins) totals[bin] += 1;
const highest = Math.max(1, ...totals);

// A bar that is there is seen: of 100,000 images three are no less to be looked at.
function drawHistogram() {
  const heights = ANSWERS.map(() => new Uint32Array(BINS));
  order.forEach((item, at) => { heights[ANSWERS.indexOf(item.answer)][bins[at]] += 1; });
  const below = new Float64Array(BINS);
  for (const answer of [2, 1, 0]) {
    let path = "";
    heights[answer].forEach((count, bin) => {
      if (!count) return;
      const height = Math.max(1.5, HIGH * count / highest);
      const [x, y] = [bin * WIDE / BINS + 1, Math.max(0, HIGH - below[bin] - height)];
      path += `M${x} ${(y + height).toFixed(1)}V${y.toFixed(1)}h${WIDE / BINS - 2}v${height.toFixed(1)}z`;
      below[bin] += height;
    });
    bars[answer].setAttribute("d", path);
  }
  const x = WIDE * across(shift());
  line.setAttribute("x1", x);
  line.setAttribute("x2", x);
  const said = ANSWERS.map((answer, at) => `${number(heights[at].reduce((a, b) => a + b, 0))} ${data.answers[answer]}`);
  histogram.setAttribute("aria-label", `Margins from ${signed(low)} to ${signed(high)}: ${said.join(", ")}.`);
}
