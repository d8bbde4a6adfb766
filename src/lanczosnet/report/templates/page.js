"use strict";
const NAMES_OF_COLORS = new Set(["color", "bgcolor", "bordercolor", "colorscale"]);
const isDark = matchMedia("(prefers-color-scheme: dark)");
const isNarrow = matchMedia("(max-width: 40rem)");

// plotly.js is stored compressed.
async function loadPlotly() {
  const bytes = Uint8Array.from(atob(document.getElementById("plotly").textContent), (sign) => sign.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.head.append(script);
}

// Colours by role, as the style sheet has them for light or dark.
function themed(value, isColor) {
  if (typeof value === "string") {
    return isColor && value.startsWith("--") ? getComputedStyle(document.documentElement).getPropertyValue(value).trim() : value;
  }
  if (Array.isArray(value)) return isColor ? value.map((item) => themed(item, true)) : value.map((item) => themed(item, false));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, themed(item, NAMES_OF_COLORS.has(key))]));
}

function layoutOf(layout) {
  const axis = { gridcolor: "--grid", zerolinecolor: "--line", linecolor: "--line" };
  const colored = Object.fromEntries(Object.entries(axis).map(([key, role]) => [key, themed(role, true)]));
  return {
    ...layout,
    xaxis: { ...colored, ...layout.xaxis },
    yaxis: { ...colored, ...layout.yaxis },
    font: { family: "system-ui, sans-serif", size: 12, color: themed("--text", true) },
    hoverlabel: { bgcolor: themed("--raised", true), bordercolor: themed("--line", true), font: { color: themed("--text", true) }, namelength: -1 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 48, r: 12, t: 12, b: 40 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom", maxheight: 0.9 },
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    hovermode: "closest",
    hoverdistance: 60,
  };
}

function rowsOfLegend(traces, width) {
  const names = traces.filter((trace) => trace.name && trace.showlegend !== false).map((trace) => trace.name.length);
  return Math.ceil(names.length / Math.max(1, Math.floor(width / (60 + 7 * Math.max(...names, 0)))));
}

function draw(chart) {
  const spec = themed(JSON.parse(document.getElementById(chart.dataset.spec).textContent), false);
  chart.style.height = `${22 + 1.2 * Math.max(0, rowsOfLegend(spec.data, chart.clientWidth) - 2)}rem`;
  return Plotly.react(chart, spec.data, layoutOf(spec.layout), { responsive: true, displayModeBar: false });
}

function visibleCharts() {
  return [...document.querySelectorAll(".charts:not([hidden]) .chart")];
}

async function drawAll() {
  for (const chart of visibleCharts()) await draw(chart);
  document.documentElement.dataset.drawn = "yes";
}

function choose(select) {
  for (const set of document.getElementById(select.dataset.charts).children) {
    set.hidden = set.dataset.place !== select.value;
    if (!set.hidden) set.querySelectorAll(".chart").forEach(draw);
  }
}

const keyOf = (row, column) => row.children[column].dataset.sort ?? row.children[column].textContent.trim();

// What is missing comes last in either order.
function compare(a, b, sign) {
  if (a === "" || b === "") return (a === "") - (b === "");
  const [x, y] = [a, b].map(Number);
  return sign * (Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b, "en", { numeric: true }) : x - y);
}

function sort(header) {
  const table = header.closest("table");
  const column = [...header.parentElement.children].indexOf(header);
  const order = header.ariaSort === "ascending" ? "descending" : "ascending";
  for (const other of header.parentElement.children) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", order);
  const sign = order === "ascending" ? 1 : -1;
  const rows = [...table.tBodies[0].rows].sort((a, b) => compare(keyOf(a, column), keyOf(b, column), sign));
  table.tBodies[0].append(...rows);
  document.getElementById("status").textContent = `Sorted by ${header.textContent.trim()}, ${order}.`;
}

// The curves of a row stand out while the row has the pointer or the focus.
function highlight(table, name) {
  for (const holder of document.querySelectorAll("[data-name]")) {
    if (holder.dataset.name !== table.dataset.chart) continue;
    for (const chart of holder.querySelectorAll(".charts:not([hidden]) .chart.js-plotly-plot")) {
      const shades = chart.data.map((trace) => (name === null || trace.meta === name ? 1 : 0.15));
      Plotly.restyle(chart, { opacity: shades });
    }
  }
}

function watchRows(table) {
  for (const row of table.tBodies[0].rows) {
    for (const event of ["mouseenter", "focus"]) row.addEventListener(event, () => highlight(table, row.dataset.trace));
    for (const event of ["mouseleave", "blur"]) row.addEventListener(event, () => highlight(table, null));
  }
}

for (const button of document.querySelectorAll("table.sortable th button")) {
  button.addEventListener("click", () => sort(button.closest("th")));
}
if (document.getElementById("plotly")) {
  if ("DecompressionStream" in window) {
    loadPlotly().then(() => {
      for (const select of document.querySelectorAll("select[data-charts]")) {
        select.addEventListener("change", () => choose(select));
      }
      for (const table of document.querySelectorAll("table[data-chart]")) watchRows(table);
      for (const media of [isDark, isNarrow]) media.addEventListener("change", drawAll);
      return drawAll();
    });
  } else {
    for (const chart of document.querySelectorAll(".chart")) chart.textContent = "This browser is too old to draw the figure; its description is below.";
  }
}
