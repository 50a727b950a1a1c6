"use strict";

// Draws the page from the numbers that stand in it. Names come from tables that anybody may have written, so
// they become text nodes and attributes only: nothing here parses HTML.

const data = JSON.parse(document.getElementById("data").textContent);
const { classes, variables, rows } = data;
const SVG = "http://www.w3.org/2000/svg";
const FEW = 12; // lines of a table, and columns of the map, that fit without more ado

// Elements

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== undefined));
  return node;
}

function make(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

function draw(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function fill(id, ...children) {
  document.getElementById(id)?.replaceChildren(...children);
}

// A chart's numbers, made when they are asked for.
function behind(title, numbers) {
  const box = make("details", { class: "behind" }, make("summary", {}, title));
  box.addEventListener("toggle", () => box.open && box.children.length === 1 && box.append(numbers()));
  return box;
}

// Words and numbers. They have been rounded already: to fix their digits changes none of them.

const signed = (x) => (x > 0 ? "+" : "") + x.toFixed(2);
const thousandths = (x) => x.toFixed(3);
const plain = (x) => (Math.abs(x) >= 1e7 ? x.toExponential() : String(x));
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const positions = (array) => array.map((_, i) => i);
const by = (key) => (a, b) => key(a) - key(b);

function times(evidence) {
  const factor = Math.exp(Math.abs(evidence));
  if (factor > 1e6) return "more than a million times";
  return `${factor < 10 ? factor.toFixed(1) : Number(factor.toPrecision(2))} times`;
}

// Tables. Every one of them sorts by its columns; long ones can be searched and start with their first lines.

function table(caption, columns, lines, { limit = Infinity } = {}) {
  const head = columns.map((column) =>
    make("th", { scope: "col", class: column.kind ?? "number" }, column.name),
  );
  const body = lines.map((line) =>
    make("tr", {}, ...columns.map((column, i) => cell(column, line, i === 0))),
  );
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

function cell(column, line, first) {
  const content = column.show(line);
  const node = make(
    first ? "th" : "td",
    { scope: first ? "row" : undefined, class: column.kind ?? "number" },
    content,
  );
  if (column.sort) node.dataset.sort = column.sort(line);
  return node;
}

function sortable(node, box, limit) {
  const body = node.tBodies[0];
  let query = "";
  const refresh = () => {
    let shown = 0;
    for (const line of body.rows) {
      const found = line.textContent.toLowerCase().includes(query);
      line.hidden = !found || (query === "" && shown >= limit);
      shown += found;
    }
  };
  for (const [i, head] of [...node.tHead.rows[0].cells].entries()) {
    const button = make("button", { type: "button", class: "sort" }, ...head.childNodes);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of node.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * compare(a.cells[i], b.cells[i])));
      refresh();
    });
    head.append(button);
  }
  if (body.rows.length > FEW) {
    const search = make("input", { type: "search", placeholder: "Filter", "aria-label": `Filter: ${node.caption.textContent}` });
    search.addEventListener("input", () => {
      query = search.value.trim().toLowerCase();
      refresh();
    });
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
  const text = !a.matches(".number, .chart");
  return text ? x.localeCompare(y, undefined, { numeric: true }) : Number(x) - Number(y);
}

// Charts

function ticks(low, high) {
  const rough = (high - low) / 4 || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high + step * 1e-6; i++) found.push(Number((i * step).toPrecision(6)));
  return found;
}

// A frame with axes; `x` and `y` of what is returned turn numbers into places.
function frame(title, { width, height, xs, ys, xLabel, yLabel, xTicks, yTicks }) {
  const [left, right, top, bottom] = [yTicks.length ? 52 : 8, 12, 8, xLabel ? 44 : 24];
  const x = (value) => left + ((value - xs[0]) / (xs[1] - xs[0] || 1)) * (width - left - right);
  const y = (value) => height - bottom - ((value - ys[0]) / (ys[1] - ys[0] || 1)) * (height - top - bottom);
  const node = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  for (const [value, text] of yTicks) {
    node.append(
      draw("line", { class: "grid", x1: left, x2: width - right, y1: y(value), y2: y(value) }),
      draw("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, text),
    );
  }
  node.append(draw("line", { class: "axis", x1: left, x2: width - right, y1: y(ys[0]), y2: y(ys[0]) }));
  for (const [value, text, anchor = "middle"] of xTicks) {
    node.append(
      draw("line", { class: "axis", x1: x(value), x2: x(value), y1: y(ys[0]), y2: y(ys[0]) + 4 }),
      draw("text", { x: x(value), y: height - bottom + 17, "text-anchor": anchor }, text),
    );
  }
  const middle = (top + height - bottom) / 2;
  if (xLabel) node.append(draw("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, xLabel));
  if (yLabel) node.append(draw("text", { x: 12, y: middle, "text-anchor": "middle", transform: `rotate(-90 12 ${middle})` }, yLabel));
  return { node, x, y };
}

const path = (points) => points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");

// From -1 to 1, to the right what speaks for the label.
function bar(share, both) {
  const [width, zero] = [160, both ? 80 : 0];
  const length = Math.abs(share) * (width - zero - 2);
  return draw(
    "svg",
    { class: "bar", viewBox: `0 0 ${width} 14`, "aria-hidden": "true" },
    draw("rect", { class: share < 0 ? "against" : "for", x: share < 0 ? zero - length : zero, y: 2, width: length, height: 10 }),
    draw("line", { class: "axis", x1: zero, x2: zero, y1: 0, y2: 14 }),
  );
}

// The map of relevant variables

const level = (z) => (z >= 0 ? 0 : Math.min(6, 1 + Math.floor(-z / 0.5)));
const LEVELS = ["0 or above", "0 to -0.5", "-0.5 to -1", "-1 to -1.5", "-1.5 to -2", "-2 to -2.5", "below -2.5"];

function relevanceMap() {
  const few = variables.length <= FEW;
  const head = variables.map((name) => make("th", { scope: "col", title: name }, make("span", {}, name)));
  const lines = classes.map((name, a) =>
    make(
      "tr",
      {},
      make("th", { scope: "row", title: name }, name),
      ...variables.map((_, j) => make("td", { role: "gridcell" }, mapCell(a, j, few))),
    ),
  );
  const node = make(
    "table",
    { class: few ? "map few" : "map", role: "grid", "aria-labelledby": "relevance-title" },
    make("thead", {}, make("tr", {}, make("td"), ...head)),
    make("tbody", {}, ...lines),
  );
  walk(node);
  const legend = LEVELS.map((text, i) => make("li", {}, make("span", { class: `swatch z${i}` }), text));
  return [
    make("div", { class: "scroll" }, node),
    make("ul", { class: "legend", "aria-label": "z-scores" }, ...legend, make("li", {}, make("span", { class: "swatch" }, "●"), "describes the class")),
    behind("The map as a table", mapTable),
  ];
}

function mapCell(a, j, few) {
  const z = data.zscores[a][j].toFixed(2);
  const marked = data.relevant[a][j] ? ", describes the class" : "";
  const label = `${classes[a]}, ${variables[j]}: z-score ${z}${marked}`;
  return make(
    "a",
    { href: `#class-${a}-variable-${j}`, class: `cell z${level(data.zscores[a][j])}`, tabindex: "-1", title: label, "aria-label": label },
    marked ? "●" : "",
    few ? ` ${z}` : "",
  );
}

// One stop of the Tab key for the whole map; arrows move within it.
function walk(node) {
  const cells = [...node.querySelectorAll("a.cell")];
  cells[0].tabIndex = 0;
  node.addEventListener("keydown", (event) => {
    const width = variables.length;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width }[event.key];
    const next = cells[cells.indexOf(document.activeElement) + step];
    if (!next) return;
    event.preventDefault();
    for (const each of cells) each.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

function mapTable() {
  const pairs = classes.flatMap((_, a) => variables.map((_, j) => [a, j]));
  return table("z-scores and mean bandwidths", [
    { name: "class", kind: "text", show: ([a]) => classes[a] },
    { name: "variable", kind: "text", show: ([, j]) => variables[j] },
    ...relevanceColumns((pair) => pair),
  ], pairs);
}

function relevanceColumns(pairOf) {
  const of = (matrix) => (line) => {
    const [a, j] = pairOf(line);
    return matrix[a][j];
  };
  return [
    { name: "z-score", show: (line) => of(data.zscores)(line).toFixed(2) },
    { name: "bandwidth", show: (line) => plain(of(data.bandwidths)(line)) },
    { name: "describes it", kind: "text", show: (line) => (of(data.relevant)(line) ? "● yes" : "no") },
  ];
}

// Classes

// Variables of a class, those that describe it first, then by bandwidth.
const bestFirst = (a) =>
  positions(variables).sort((i, j) => data.relevant[a][j] - data.relevant[a][i] || data.bandwidths[a][i] - data.bandwidths[a][j]);

// The class that this one is mistaken for most often, either way round.
function likeliestRival(a) {
  const mistakes = (b) => (data.errors ? data.errors.confusion[a][b] + data.errors.confusion[b][a] : 0);
  return positions(classes).filter((b) => b !== a).sort(by((b) => -mistakes(b)))[0];
}

const classPages = [];

function classPage(a) {
  const order = bestFirst(a);
  const curves = make("div", { class: "curves" });
  const rival = make("select", {}, ...classes.map((name, b) => make("option", { value: b, disabled: b === a }, name)));
  rival.value = likeliestRival(a);
  let picked;
  const redraw = () => curves.replaceChildren(...densities(a, Number(rival.value), order, picked));
  rival.addEventListener("change", redraw);
  const heading = make("h3", { tabindex: "-1" }, `Class ${classes[a]}`);
  const list = table(
    `Variables of ${classes[a]}`,
    [
      { name: "variable", kind: "text", show: (j) => make("a", { href: `#class-${a}-variable-${j}` }, variables[j]) },
      ...relevanceColumns((j) => [a, j]),
    ],
    order,
  );
  const node = make(
    "article",
    { class: "class-page", "aria-label": `Class ${classes[a]}`, hidden: a > 0 },
    heading,
    make(
      "div",
      { class: "sides" },
      list,
      make("div", {}, make("label", { class: "control" }, "Compare with ", rival), curves),
    ),
    typicalRows(a, order),
  );
  redraw();
  return {
    node,
    show(variable) {
      picked = variable;
      redraw();
      heading.focus({ preventScroll: true });
      document.getElementById("classes").scrollIntoView();
    },
  };
}

function densities(a, b, order, picked) {
  const key = [
    ["own", classes[a]],
    ["rival", classes[b]],
    ...(classes.length > 2 ? [["other", "each other class"]] : []),
  ];
  const legend = key.map(([kind, name]) =>
    make("li", {}, draw("svg", { class: "key", viewBox: "0 0 24 8", "aria-hidden": "true" }, draw("path", { class: kind, d: "M0 4L24 4" })), name),
  );
  const drawn = [...new Set(picked === undefined ? order : [picked, ...order])].filter((j) => data.curves[j]).slice(0, 6);
  const missing = picked !== undefined && !data.curves[picked];
  return [
    make("ul", { class: "legend" }, ...legend),
    missing ? make("p", { class: "note" }, `The page has no curves for ${variables[picked]}: it would be too large.`) : "",
    make("div", { class: "multiples" }, ...drawn.map((j) => densityFigure(a, b, j, j === picked))),
    make(
      "p",
      { class: "small" },
      "Densities of single variables with the mean bandwidths of the classes; the highest point is 1. ",
      data.inRanks ? "The axis is in ranks: equal distances hold equally many training rows." : "",
    ),
    behind("The curves as a table", () => densityTable(drawn)),
  ];
}

function densityFigure(a, b, j, large) {
  const { x, y } = data.curves[j];
  const last = x.length - 1;
  const { node, ...to } = frame(`Densities of ${variables[j]} in ${classes[a]}, ${classes[b]} and other classes`, {
    width: large ? 560 : 280,
    height: large ? 240 : 150,
    xs: [0, last],
    ys: [0, Math.max(...y.flat(), 1)],
    xTicks: [[0, plain(x[0]), "start"], [last / 2, plain(x[last / 2])], [last, plain(x[last]), "end"]],
    yTicks: [],
  });
  const line = (c) => path(y[c].map((height, i) => [to.x(i), to.y(height)]));
  for (const c of positions(classes)) if (c !== a && c !== b) node.append(draw("path", { class: "other", d: line(c) }));
  node.append(
    draw("path", { class: "under", d: `${line(a)}L${to.x(last)} ${to.y(0)}L${to.x(0)} ${to.y(0)}Z` }),
    draw("path", { class: "rival", d: line(b) }),
    draw("path", { class: "own", d: line(a) }),
  );
  const mark = data.relevant[a][j] ? "● " : "";
  return make("figure", { class: large ? "large" : undefined }, make("figcaption", {}, mark + variables[j]), node);
}

function densityTable(drawn) {
  const points = drawn.flatMap((j) => data.curves[j].x.map((_, i) => [j, i]));
  return table("Densities, the highest point of a variable being 1", [
    { name: "variable", kind: "text", show: ([j]) => variables[j] },
    { name: "value", show: ([j, i]) => plain(data.curves[j].x[i]) },
    ...classes.map((name, c) => ({ name, show: ([j, i]) => thousandths(data.curves[j].y[c][i] / 1000) })),
  ], points);
}

function typicalRows(a, order) {
  if (!data.typical[a].length) return make("p", { class: "note" }, "The class has no training rows.");
  return table(
    `Typical rows of ${classes[a]}: the training rows where its density is highest`,
    [{ name: "training row", show: (i) => String(i) }, ...valueColumns(order, (i) => data.training[i][1])],
    data.typical[a],
  );
}

const valueColumns = (order, valuesOf) => order.map((j) => ({ name: variables[j], show: (line) => plain(valuesOf(line)[j]) }));

function showClass(a, variable) {
  for (const [b, page] of classPages.entries()) page.node.hidden = b !== a;
  for (const [b, link] of [...document.getElementById("class-links").children].entries()) {
    if (b === a) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
  if (variable !== undefined) classPages[a].show(variable);
}

// An address ends in #class-2 or #class-2-variable-5; so links, bookmarks and the back button work.
function followAddress() {
  const [, a, j] = /^#class-(\d+)(?:-variable-(\d+))?$/.exec(location.hash) ?? [];
  if (!classPages[a] || (j && !variables[j])) return;
  showClass(Number(a));
  classPages[a].show(j && Number(j));
}

function drawClasses() {
  fill("map", ...relevanceMap());
  fill("class-links", ...classes.map((name, a) => make("a", { href: `#class-${a}` }, name)));
  classPages.push(...positions(classes).map(classPage));
  fill("class-pages", ...classPages.map((page) => page.node));
  showClass(0);
  addEventListener("hashchange", followAddress);
  followAddress();
}

// Rows

const wrong = (row) => row.truth >= 0 && row.truth !== row.label;
const truthKnown = rows.some((row) => row.truth >= 0);

function rowTitle(row) {
  const said = `${row.name}: ${classes[row.label]} (${thousandths(row.proba[row.label])})`;
  return wrong(row) ? `✗ ${said} is ${classes[row.truth]}` : said;
}

const browser = {
  text: make("input", { type: "search", id: "filter-text" }),
  truth: classFilter("filter-truth"),
  label: classFilter("filter-label"),
  wrong: make("input", { type: "checkbox", id: "filter-wrong" }),
  order: make("select", { id: "order" }, make("option", { value: "row" }, "as in the table"), make("option", { value: "doubt" }, "least certain first")),
  list: make("select", { id: "list", size: "14", "aria-describedby": "list-count" }),
  count: make("p", { id: "list-count", class: "small", role: "status" }),
  panel: make("article", { id: "row", "aria-label": "The row picked" }),
};

function classFilter(id) {
  return make("select", { id }, make("option", { value: "" }, "all"), ...classes.map((name, a) => make("option", { value: a }, name)));
}

function refilter() {
  const { text, truth, label, order, list } = browser;
  const before = list.value;
  const matches = (row) =>
    rowTitle(row).toLowerCase().includes(text.value.trim().toLowerCase()) &&
    (truth.value === "" || row.truth === Number(truth.value)) &&
    (label.value === "" || row.label === Number(label.value)) &&
    (!browser.wrong.checked || wrong(row));
  const found = positions(rows).filter((i) => matches(rows[i]));
  if (order.value === "doubt") found.sort(by((i) => rows[i].proba[rows[i].label]));
  list.replaceChildren(...found.map((i) => make("option", { value: i }, rowTitle(rows[i]))));
  browser.count.textContent = `${found.length} of ${plural(rows.length, "row")}`;
  list.value = found.includes(Number(before)) && before !== "" ? before : found[0];
  showRow();
}

function showRow() {
  const row = rows[browser.list.value];
  browser.panel.replaceChildren(...(row ? rowPage(row) : [make("p", { class: "note" }, "No row on this page is like that.")]));
}

function rowPage(row) {
  const label = classes[row.label];
  const truth = row.truth < 0 ? "" : wrong(row) ? ` Wrong: it is ${classes[row.truth]}.` : " Right.";
  const parts = [
    make("h3", {}, `Row ${row.name}: ${label}`),
    make("p", { class: wrong(row) ? "verdict wrong" : "verdict" }, `Label ${label} with probability ${thousandths(row.proba[row.label])}.${truth}`),
  ];
  if (!data.explains) return [...parts, probabilities(row), valuesTable(row)];
  return [
    ...parts,
    ...whyNot(row).map((sentence) => make("p", {}, sentence)),
    make("div", { class: "sides" }, probabilities(row), evidenceTable(row)),
    supportTable(row),
  ];
}

function probabilities(row) {
  const order = positions(classes).sort(by((a) => -row.proba[a]));
  return table("Probabilities", [
    { name: "class", kind: "text", show: (a) => classes[a] },
    { name: "probability", show: (a) => thousandths(row.proba[a]) },
    { name: "as a bar", kind: "chart", sort: (a) => row.proba[a], show: (a) => bar(row.proba[a], false) },
  ], order, { limit: FEW });
}

const byEvidence = (row) => positions(variables).sort(by((j) => -Math.abs(row.evidence[j])));

function evidenceTable(row) {
  const largest = Math.max(...row.evidence.map(Math.abs), 0.01);
  const [label, rival] = [classes[row.label], classes[row.rival]];
  return table(
    `Evidence of each variable for ${label} (right) over ${rival} (left)`,
    [
      { name: "variable", kind: "text", show: (j) => variables[j] },
      { name: "value", show: (j) => plain(row.values[j]) },
      { name: "evidence", show: (j) => signed(row.evidence[j]) },
      { name: "as a bar", kind: "chart", sort: (j) => row.evidence[j], show: (j) => bar(row.evidence[j] / largest, true) },
    ],
    byEvidence(row),
    { limit: FEW },
  );
}

function valuesTable(row) {
  return table("Values", [
    { name: "variable", kind: "text", show: (j) => variables[j] },
    { name: "value", show: (j) => plain(row.values[j]) },
  ], positions(variables), { limit: FEW });
}

function supportTable(row) {
  const lines = [{ name: "this row", values: row.values }].concat(
    row.support.map((i, k) => ({ name: `training row ${i}`, share: row.shares[k], values: data.training[i][1] })),
  );
  return table(
    `Training rows with the largest shares of the density of ${classes[row.label]} at this row; variables by evidence`,
    [
      { name: "row", kind: "text", show: (line) => line.name },
      { name: "share", sort: (line) => line.share ?? 2, show: (line) => (line.share === undefined ? "" : thousandths(line.share)) },
      ...valueColumns(byEvidence(row), (line) => line.values),
    ],
    lines,
  );
}

// Why not the runner-up, in words.
function whyNot(row) {
  const [label, rival] = [classes[row.label], classes[row.rival]];
  const strongest = (sign) => byEvidence(row).filter((j) => sign * row.evidence[j] >= 0.05).slice(0, 3);
  const named = (j) => `${variables[j]} = ${plain(row.values[j])} (${times(row.evidence[j])})`;
  const list = (found) => found.map(named).join(", ");
  const [pro, contra] = [strongest(1), strongest(-1)];
  const said = [`Why not ${rival}, which has probability ${thousandths(row.proba[row.rival])}?`];
  if (!pro.length && !contra.length) return [`${said[0]} No single variable tells the two apart here.`];
  if (pro.length) said.push(`More likely in ${label}, the other variables being as they are: ${list(pro)}.`);
  else said.push(`No single variable speaks for ${label}.`);
  if (contra.length) said.push(`More likely in ${rival}: ${list(contra)}.`);
  else said.push(`No variable speaks for ${rival}.`);
  return [said.join(" ")];
}

function drawBrowser() {
  const { text, truth, label, order, list, count, panel } = browser;
  const control = (name, input) => make("label", { class: "control", for: input.id }, name, input);
  const controls = [control("Search", text), control("Label", label)];
  if (truthKnown) controls.push(control("True class", truth));
  controls.push(control("Order", order));
  if (truthKnown) controls.push(make("label", { class: "control check", for: "filter-wrong" }, browser.wrong, "wrong ones only"));
  const form = make("div", { class: "controls", role: "search", "aria-label": "Rows" }, ...controls);
  fill("browser", make("div", { class: "picker" }, form, make("label", { class: "control", for: "list" }, "Row", list), count), panel);
  for (const input of [truth, label, browser.wrong, order]) input.addEventListener("change", refilter);
  text.addEventListener("input", refilter);
  list.addEventListener("change", showRow);
  refilter();
}

// Errors

function confusionMatrix() {
  const counts = data.errors.confusion;
  const head = classes.map((name) => make("th", { scope: "col", title: name }, make("span", {}, name)));
  const lines = counts.map((line, a) => {
    const total = line.reduce((sum, n) => sum + n, 0) || 1;
    return make("tr", {}, make("th", { scope: "row", title: classes[a] }, classes[a]), ...line.map((n, b) => confusionCell(a, b, n, n / total)));
  });
  return [
    make("h3", {}, "What is taken for what"),
    make(
      "div",
      { class: "scroll", role: "group", "aria-label": "Confusion matrix", tabindex: "0" },
      make(
        "table",
        { class: classes.length <= 6 ? "map few" : "map" },
        make("caption", {}, make("span", {}, "True classes down, labels across; a number shows these rows in the list above")),
        make("thead", {}, make("tr", {}, make("td"), ...head)),
        make("tbody", {}, ...lines),
      ),
    ),
  ];
}

function confusionCell(a, b, n, share) {
  if (!n) return make("td", { class: "none" }, "0");
  const kind = a === b ? "z" : "e";
  const label = `${plural(n, "row")} of ${classes[a]} labelled ${classes[b]}: show them`;
  const button = make("button", { type: "button", class: `cell ${kind}${Math.ceil(share * 6)}`, "aria-label": label, title: label }, String(n));
  button.addEventListener("click", () => {
    browser.truth.value = truthKnown ? a : "";
    browser.label.value = b;
    browser.text.value = "";
    browser.wrong.checked = false;
    refilter();
    document.getElementById("rows").scrollIntoView();
    browser.list.focus({ preventScroll: true });
  });
  return make("td", {}, button);
}

function reliability() {
  const points = data.errors.reliability;
  const scale = [0, 0.2, 0.4, 0.6, 0.8, 1].map((value) => [value, value.toFixed(1)]);
  const { node, x, y } = frame("Reliability: share of right labels against their probability", {
    width: 360,
    height: 320,
    xs: [0, 1],
    ys: [0, 1],
    xLabel: "probability of the label",
    yLabel: "share that is right",
    xTicks: scale,
    yTicks: scale,
  });
  node.append(draw("path", { class: "other", d: path([[x(0), y(0)], [x(1), y(1)]]) }));
  node.append(draw("path", { class: "thread", d: path(points.map((point) => [x(point.confidence), y(point.right)])) }));
  const most = Math.max(...points.map((point) => point.n));
  for (const { n, confidence, right, low, high } of points) {
    node.append(
      draw("line", { class: "interval", x1: x(confidence), x2: x(confidence), y1: y(low), y2: y(high) }),
      draw("circle", { class: "dot", cx: x(confidence), cy: y(right), r: 2.5 + 5 * Math.sqrt(n / most) }),
    );
  }
  const columns = [
    { name: "mean probability", show: (point) => thousandths(point.confidence) },
    { name: "share right", show: (point) => thousandths(point.right) },
    { name: "from", show: (point) => thousandths(point.low) },
    { name: "to", show: (point) => thousandths(point.high) },
    { name: "rows", show: (point) => String(point.n) },
  ];
  return [
    make("h3", {}, "Are the probabilities right?"),
    make("figure", {}, node, make("figcaption", { class: "small" }, "On the diagonal, labels are right as often as they claim. A larger dot stands for more rows; bars are 95 % intervals.")),
    behind("The curve as a table", () => table("Reliability, in tenths of the probability", columns, points)),
  ];
}

// Sample sizes

function sampleSizes() {
  const { steps, tolerance } = data.sampleSizes;
  const chart = (title, key, rule) => {
    const values = steps.map((step) => step[key]);
    const xs = [Math.min(...steps.map((step) => step.total)), Math.max(...steps.map((step) => step.total))];
    const ys = [0, Math.max(...values, rule ?? 0, 1e-9)];
    const { node, x, y } = frame(`${title} against the number of training rows`, {
      width: 420,
      height: 260,
      xs,
      ys,
      xLabel: "training rows",
      yLabel: title,
      xTicks: ticks(...xs).map((value) => [value, plain(value)]),
      yTicks: ticks(...ys).map((value) => [value, plain(value)]),
    });
    if (rule !== undefined) node.append(draw("path", { class: "rival", d: path([[x(xs[0]), y(rule)], [x(xs[1]), y(rule)]]) }));
    node.append(draw("path", { class: "own", d: path(steps.map((step) => [x(step.total), y(step[key])])) }));
    for (const step of steps) node.append(draw("circle", { class: "dot", cx: x(step.total), cy: y(step[key]), r: 3 }));
    return make("figure", {}, node, make("figcaption", { class: "small" }, rule === undefined ? title : `${title}; dashed, the tolerance asked for: ${plain(rule)}`));
  };
  const columns = [
    { name: "training rows", show: (step) => String(step.total) },
    { name: "epsilon", show: (step) => plain(step.epsilon) },
    { name: "accuracy", show: (step) => thousandths(step.accuracy) },
    ...data.sampleSizes.classes.map((name, a) => ({ name: `rows of ${name}`, show: (step) => String(step.sizes[a]) })),
  ];
  return [
    chart("epsilon", "epsilon", tolerance),
    chart("accuracy", "accuracy"),
    behind("The steps as a table", () => table("Steps", columns, steps)),
  ];
}

// The page

for (const node of document.querySelectorAll("table.sortable")) sortable(node, node.closest(".table"), Infinity);
if (data.explains) drawClasses();
if (data.errors) {
  fill("confusion", ...confusionMatrix());
  fill("reliability", ...reliability());
}
if (data.sampleSizes) fill("steps", ...sampleSizes());
drawBrowser();
