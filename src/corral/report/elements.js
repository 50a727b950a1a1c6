"use strict";

// Parts of the page: elements, tables that can be sorted and filtered, charts. Names come from untrusted tables, so they
// become only text nodes and attributes: nothing here parses HTML.

const SVG = "http://www.w3.org/2000/svg";
const FEW = 12; // most lines of a table without a filter, and most columns of a map without scrolling

const positions = (array) => array.map((_, i) => i);
const by = (key) => (a, b) => key(a) - key(b);

// Numbers are rounded already, so a fixed number of digits changes no number.
const hundredths = (x) => x.toFixed(2);
const thousandths = (x) => x.toFixed(3);
const signed = (x) => (x > 0 ? "+" : "") + x.toFixed(2);
const plain = (x) => (x === null ? "missing" : String(x));
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

// Elements

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children);
  return node;
}

function make(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function fill(id, ...children) {
  document.getElementById(id).replaceChildren(...children);
}

// A box that shows the numbers of a chart. The numbers are written when the box is first opened.
function behind(title, numbers) {
  const box = make("details", { class: "behind" }, make("summary", {}, title));
  box.addEventListener("toggle", () => {
    if (box.open && box.children.length === 1) box.append(numbers());
  });
  return box;
}

// A legend; its keys are pairs [class of the mark, name].
function legend(label, keys, mark) {
  return make(
    "ul",
    { class: "legend", "aria-label": label },
    ...keys.map(([kind, name]) => make("li", {}, mark(kind), name)),
  );
}

// Tables

// A column has a name, a kind ("number" by default, "text" or "chart"), a function that returns the content of its cell
// in a line and, if the sort key differs from the text, a function that returns the sort key.
function table(caption, columns, lines, limit = Infinity) {
  const head = columns.map(({ name, kind = "number" }) => make("th", { scope: "col", class: kind }, name));
  const body = lines.map((line) => make("tr", {}, ...columns.map((column, i) => cell(column, line, i))));
  const node = make(
    "table",
    {},
    make("caption", {}, make("span", {}, caption)),
    make("thead", {}, make("tr", {}, ...head)),
    make("tbody", {}, ...body),
  );
  const box = make("div", { class: "scroll", role: "group", "aria-label": caption, tabindex: "0" }, node);
  return sortable(node, make("div", { class: "table" }, box), limit);
}

function cell({ kind = "number", show, sort }, line, i) {
  const node = i ? make("td", { class: kind }) : make("th", { class: kind, scope: "row" });
  node.append(show(line));
  if (sort) node.dataset.sort = sort(line);
  return node;
}

// Makes a table sortable by its columns. A long table gets a filter. A table with more lines than the limit shows the
// first lines and a button for all lines.
function sortable(node, box, limit = Infinity) {
  const body = node.tBodies[0];
  const heads = [...node.tHead.rows[0].cells];
  const search = make("input", {
    type: "search",
    placeholder: "Filter",
    "aria-label": `Filter: ${node.caption.textContent}`,
  });
  const refresh = () => {
    const query = search.value.trim().toLowerCase();
    let shown = 0;
    for (const line of body.rows) {
      const matches = line.textContent.toLowerCase().includes(query);
      line.hidden = !matches || (query === "" && shown >= limit);
      shown += matches;
    }
  };
  for (const [i, head] of heads.entries()) {
    const button = make("button", { type: "button", class: "sort" }, ...head.childNodes);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sign = up ? 1 : -1;
      body.append(...[...body.rows].sort((a, b) => sign * compare(a.cells[i], b.cells[i])));
      refresh();
    });
    head.append(button);
  }
  if (body.rows.length > FEW) {
    search.addEventListener("input", refresh);
    box.prepend(search);
  }
  if (body.rows.length > limit) {
    const more = make("button", { type: "button" }, `Show all ${body.rows.length}`);
    more.addEventListener("click", () => {
      limit = Infinity;
      more.remove();
      refresh();
    });
    box.append(more);
  }
  refresh();
  return box;
}

function compare(a, b) {
  const [x, y] = [a, b].map((each) => each.dataset.sort ?? each.textContent);
  const numbers = a.matches(".number, .chart");
  if (!numbers) return x.localeCompare(y, undefined, { numeric: true });
  const [first, second] = [x, y].map((each) => (Number.isNaN(Number(each)) ? Infinity : Number(each)));
  return first === second ? 0 : first - second; // missing values come after all numbers
}

// A table of one cell for each pair of names, made by `cellOf(a, b)`.
function matrix(attributes, caption, downNames, acrossNames, cellOf) {
  const head = acrossNames.map((name) => make("th", { scope: "col", title: name }, make("span", {}, name)));
  const lines = downNames.map((name, a) => {
    const cells = acrossNames.map((_, b) => cellOf(a, b));
    return make("tr", {}, make("th", { scope: "row", title: name }, name), ...cells);
  });
  return make(
    "table",
    attributes,
    make("caption", {}, make("span", {}, caption)),
    make("thead", {}, make("tr", {}, make("td"), ...head)),
    make("tbody", {}, ...lines),
  );
}

// Charts

const line = (points) =>
  points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// About five round numbers between two numbers.
function ticks(low, high) {
  const rough = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const places = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-6; i++) {
    places.push(Number((i * step).toPrecision(6)));
  }
  return places;
}

// Axes of a chart. The functions `x` and `y` of the result turn numbers into coordinates; a tick is
// [number, text, anchor].
function frame(title, { width, height, xs, ys, xTicks, yTicks = [], xLabel = "", yLabel = "" }) {
  const [left, right, top, bottom] = [yTicks.length ? 52 : 8, 12, 8, xLabel ? 44 : 24];
  const x = (value) => left + ((value - xs[0]) / (xs[1] - xs[0] || 1)) * (width - left - right);
  const y = (value) => height - bottom - ((value - ys[0]) / (ys[1] - ys[0] || 1)) * (height - top - bottom);
  const [low, middle] = [y(ys[0]), (top + height - bottom) / 2];
  const node = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const [value, text] of yTicks) {
    node.append(
      draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, text),
    );
  }
  node.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: low, y2: low }));
  for (const [value, text, anchor = "middle"] of xTicks) {
    node.append(
      draw("line", { class: "axis", x1: x(value), x2: x(value), y1: low, y2: low + 4 }),
      draw("text", { x: x(value), y: low + 17, "text-anchor": anchor }, text),
    );
  }
  const upright = `rotate(-90 12 ${middle})`;
  node.append(
    draw("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, xLabel),
    draw("text", { x: 12, y: middle, "text-anchor": "middle", transform: upright }, yLabel),
  );
  return { node, x, y };
}

// A bar from the coordinate `zero` (0 or 80 of 160) to the right, or to the left if the share is negative.
function bar(share, zero) {
  const length = Math.abs(share) * (158 - zero);
  const x = share < 0 ? zero - length : zero;
  return draw(
    "svg",
    { class: "bar", viewBox: "0 0 160 14", "aria-hidden": "true" },
    draw("rect", { class: share < 0 ? "against" : "for", x, y: 2, width: length, height: 10 }),
    draw("line", { class: "axis", x1: zero, x2: zero, y1: 0, y2: 14 }),
  );
}
