// Times in the viewer's zone, plots with a cursor for the keyboard, living transfers anew. Nothing else is fetched.
"use strict";
const COLOURS = ["#0072B2", "#D55E00", "#009E73", "#E69F00", "#CC79A7", "#56B4E9"];
const of3 = (x) => (Math.abs(x) >= 100 ? x.toFixed(0) : String(Number(x.toPrecision(3))));
// as python/pathcast/units.py writes them
const UNITS = {
  bits: (v) => {
    for (const [size, unit] of [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"]])
      if (Math.abs(v) >= 0.9995 * size) return `${of3(v / size)} ${unit}`;
    return `${v.toFixed(0)} bit/s`;
  },
  seconds: (v) => (v >= 1 ? `${of3(v)} s` : v >= 1e-3 ? `${of3(v * 1e3)} ms` : v === 0 ? "0 s" : `${of3(v * 1e6)} µs`),
  share: (v) => `${Number((100 * v).toPrecision(3))} %`,
};
const DAY = { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" };
const [SOON, WHEN] = [DAY, { ...DAY, year: "numeric" }].map((of) => new Intl.DateTimeFormat(undefined, of));

function times(within) {
  for (const one of within.querySelectorAll("time")) {
    const at = new Date(one.dateTime);
    if (isNaN(at)) continue;
    one.dateTime = at.toISOString();
    one.title = at.toISOString();
    one.textContent = (at.getFullYear() === new Date().getFullYear() ? SOON : WHEN).format(at);
  }
}

// a wide table can be stacked where the page is narrow: each cell knows its column, and stays a cell for who listens
function columns(within) {
  for (const table of within.querySelectorAll(".scroll table")) {
    const names = [...table.querySelectorAll("thead th")].map((one) => one.textContent);
    if (names.length < 3 || table.querySelector("tbody th")) continue; // those fit
    table.classList.add("stack");
    table.setAttribute("role", "table");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, place) => {
        cell.setAttribute("role", cell.tagName === "TD" ? "cell" : "columnheader");
        if (cell.tagName === "TD") cell.dataset.label = names[place];
      });
    }
  }
}

function draw(figure) {
  const said = figure.nextElementSibling;
  const plot = JSON.parse(said.nextElementSibling.textContent);
  const write = UNITS[plot.unit];
  const style = getComputedStyle(document.documentElement);
  const [ink, line] = [style.getPropertyValue("--ink"), style.getPropertyValue("--line")];
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
  // false: nothing at this time, drawn over; null: a gap
  const data = [plot.x, ...plot.series.map((s) => s.values.map((v) => (v === false ? undefined : v)))];
  const lines = [...new Set(plot.series.map((s) => s.label.replace(/ (out|in)$/, "")))];
  const series = plot.series.map((s) => ({
    label: s.label,
    stroke: COLOURS[lines.indexOf(s.label.replace(/ (out|in)$/, "")) % COLOURS.length],
    dash: s.way === "in" ? [6, 4] : undefined,
    width: 2,
    points: { show: plot.x.length < 60 },
    value: (_, v) => (v == null ? "-" : write(v)),
  }));
  const width = () => figure.clientWidth;
  const options = {
    width: width(),
    height: 240,
    series: [{ value: (_, v) => (v == null ? "-" : WHEN.format(new Date(1000 * v))) }, ...series],
    axes: [axis, { ...axis, size: 90, values: (_, ticks) => ticks.map(write) }],
    scales: { y: { range: (_, low, high) => [0, high > 0 ? 1.05 * high : 1] } },
    cursor: { drag: { x: true, y: false } },
  };
  const made = new uPlot(options, data, figure);
  made.root.querySelector("canvas").setAttribute("aria-hidden", "true");
  new ResizeObserver(() => made.setSize({ width: width(), height: 240 })).observe(figure);
  let at = -1;
  const tell = () => {
    const known = plot.series.map((s) => [s.label, s.values[at]]).filter(([, v]) => v !== null && v !== false);
    const values = known.map(([label, v]) => `${label} ${write(v)}`).join("; ") || "nothing came";
    said.textContent = `${WHEN.format(new Date(1000 * plot.x[at]))}: ${values}`;
    made.setCursor({ left: made.valToPos(plot.x[at], "x"), top: 0 });
  };
  figure.addEventListener("keydown", (event) => {
    const last = plot.x.length - 1;
    const to = { ArrowLeft: at < 0 ? last : at - 1, ArrowRight: at + 1, Home: 0, End: last }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    at = Math.min(last, Math.max(0, to));
    tell();
  });
}

times(document);
columns(document);
document.querySelectorAll("figure.plot").forEach(draw);
// colours are those of the scheme that was
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  document.querySelectorAll("figure.plot").forEach((figure) => { const fresh = figure.cloneNode(false); figure.replaceWith(fresh); draw(fresh); });
});

const living = document.getElementById("living");
if (living) setInterval(async () => {
  if (document.hidden || living.contains(document.activeElement)) return;
  try {
    const answer = await fetch(living.dataset.from);
    if (answer.ok) {
      living.innerHTML = await answer.text();
      times(living);
      columns(living);
    }
  } catch { /* it is asked again */ }
}, 2000);
