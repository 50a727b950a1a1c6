// Draws the page from the numbers that stand in it.

const data = JSON.parse(document.getElementById("data").textContent);
const { classes, variables, rows } = data;

// The map of what marks each class

// Shades: none for negligible effects, then one for each step of 0.15. Effects have two digits.
const shade = (effect) => {
  const step = Math.min(6, Math.floor(Math.round(100 * Math.abs(effect)) / 15));
  return step ? (effect > 0 ? "r" : "b") + step : "b0";
};
const SHADES = [...[6, 5, 4, 3, 2, 1, 0].map((i) => `b${i}`), ...[1, 2, 3, 4, 5, 6].map((i) => `r${i}`)];

// How a class differs is told apart by marks: a difference begins with its direction.
const MARKS = { high: "●", low: "●", narrow: "▬", wide: "▬" };
const OTHER_MARK = "◆";

function markOf(a, j) {
  if (!data.relevant[a][j]) return "";
  const [, direction] = /^(\w+) \(/.exec(data.differences[a][j]) ?? []; // and not a level of that name
  return MARKS[direction] ?? OTHER_MARK;
}

function phrase(a, j) {
  return `${variables[j]} ${data.differences[a][j] || "(too little is known)"}`;
}

function relevanceMap() {
  const few = variables.length <= FEW;
  const node = matrix(
    { class: few ? "map few" : variables.length <= 32 ? "map" : "map many", role: "grid" },
    "Effects, by class and variable",
    classes,
    variables,
    (a, j) => make("td", { role: "gridcell" }, mapCell(a, j, few)),
  );
  walk(node);
  return [
    make("div", { class: "scroll" }, node),
    saidOfCells(node),
    mapLegend(),
    behind("The map as a table", mapTable),
  ];
}

function mapCell(a, j, few) {
  const effect = signed(data.effects[a][j]);
  const mark = markOf(a, j);
  const numbers = `effect ${effect}, p-value ${plain(data.pvalues[a][j])}`;
  const label = `${classes[a]}: ${phrase(a, j)}; ${numbers}${mark && "; describes the class"}`;
  return make(
    "a",
    {
      href: `#class-${a}-variable-${j}`,
      class: `cell ${shade(data.effects[a][j])}`,
      tabindex: "-1",
      title: label,
      "aria-label": label,
    },
    few ? `${mark} ${effect}` : mark,
  );
}

// A line below the map that shows what is said of the cell under the mouse or the keys. Readers of screens hear
// it from the cell itself.
function saidOfCells(node) {
  const said = make("p", { class: "said", "aria-hidden": "true" }, "Point at a cell to read what it says.");
  for (const kind of ["mouseover", "focusin"]) {
    node.addEventListener(kind, ({ target }) => {
      if (target.matches("a.cell")) said.textContent = target.title;
    });
  }
  return said;
}

function mapLegend() {
  const scale = SHADES.map((kind) => make("span", { class: `swatch ${kind}` }));
  const marks = [
    [MARKS.high, "describes the class: higher or lower than the background"],
    [MARKS.wide, "describes it: wider or narrower"],
    [OTHER_MARK, "describes it otherwise, as by a value that is more frequent"],
  ];
  const node = legend("Marks", marks, (mark) => make("span", { class: "swatch" }, mark));
  node.prepend(
    make("li", {}, "lower than the background, or narrower", make("span", {}, ...scale), "higher, or wider"),
  );
  return node;
}

// One stop of the Tab key for the whole map; arrows move within it.
function walk(node) {
  const cells = [...node.querySelectorAll("a.cell")];
  const width = variables.length;
  const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -width, ArrowDown: width };
  cells[0].tabIndex = 0;
  node.addEventListener("keydown", (event) => {
    const next = cells[cells.indexOf(document.activeElement) + steps[event.key]];
    if (!next) return;
    event.preventDefault();
    for (const each of cells) each.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

function mapTable() {
  const columns = [
    { name: "class", kind: "text", show: ([a]) => classes[a] },
    { name: "variable", kind: "text", show: ([, j]) => variables[j] },
    ...differenceColumns((pair) => pair),
  ];
  const pairs = classes.flatMap((_, a) => variables.map((_, j) => [a, j]));
  return table("How classes differ from their background", columns, pairs);
}

function differenceColumns(pairOf) {
  const entry = (numbers, line) => {
    const [a, j] = pairOf(line);
    return numbers[a][j];
  };
  const marked = (line) => (entry(data.relevant, line) ? `${markOf(...pairOf(line))} yes` : "no");
  return [
    { name: "difference", kind: "text", show: (line) => entry(data.differences, line) },
    { name: "effect", show: (line) => signed(entry(data.effects, line)) },
    { name: "p-value", show: (line) => plain(entry(data.pvalues, line)) },
    { name: "describes it", kind: "text", show: marked },
  ];
}

// Classes. A page is made when it is first shown: with many classes, to make them all would take a while.

const articles = classes.map((name) =>
  make("article", { class: "class-page", "aria-label": `Class ${name}` }),
);
const showings = []; // for each class whose page is made, what shows one of its variables

// The class that this one is mistaken for most often, either way round.
function likeliestRival(a) {
  const mistakes = (b) => (data.errors ? data.errors.confusion[a][b] + data.errors.confusion[b][a] : 0);
  const others = positions(classes).filter((b) => b !== a);
  return others.sort(by((b) => -mistakes(b)))[0];
}

function makeClassPage(a) {
  const order = data.order[a]; // strongest first
  const heading = make("h3", { tabindex: "-1" }, `Class ${classes[a]}`);
  const columns = [
    {
      name: "variable",
      kind: "text",
      show: (j) => make("a", { href: `#class-${a}-variable-${j}` }, variables[j]),
    },
    ...differenceColumns((j) => [a, j]),
    { name: "evidence", show: (j) => signed(data.evidence[a][j]) },
  ];
  const caption =
    `Variables of ${classes[a]}, strongest first: typical values in the class and in others, and mean evidence ` +
    "for the class at its own rows (natural logarithms)";
  const curves = make("div", { class: "curves" });
  const rival = make(
    "select",
    {},
    ...classes.map((name, b) => make("option", { value: b, disabled: b === a }, name)),
  );
  rival.value = likeliestRival(a);
  let picked;
  const redraw = () => curves.replaceChildren(...densities(a, Number(rival.value), order, picked));
  rival.addEventListener("change", redraw);
  redraw();
  articles[a].append(
    heading,
    ...basisOfLabels(a),
    make("div", {}, make("label", { class: "control" }, "Compare with ", rival), curves),
    table(caption, columns, order),
    typicalRows(a, order),
  );
  return (variable) => {
    picked = variable;
    redraw();
    heading.focus({ preventScroll: true });
    document.getElementById("classes").scrollIntoView();
  };
}

// What marks the class if it is no single variable, or not these alone.
function basisOfLabels(a) {
  const said = [];
  if (!data.relevant[a].includes(1)) said.push("No variable was found to describe this class.");
  if (data.missing[a].length) said.push(`Missing values: ${data.missing[a].join(", ")}.`);
  if (data.restOn[a].length) said.push(`Labels also rest on ${data.restOn[a].join(", ")}.`);
  return said.map((text) => make("p", {}, text));
}

// The six strongest variables, and before them the one that was picked.
function densities(a, b, order, picked) {
  const keys = [["own", classes[a]], ["rival", classes[b]]];
  if (classes.length > 2) keys.push(["other", "each other class"]);
  const dash = { class: "key", viewBox: "0 0 24 8", "aria-hidden": "true" };
  const mark = (kind) => draw("svg", dash, draw("path", { class: kind, d: "M0 4L24 4" }));
  const others = order.filter((j) => j !== picked).slice(0, 6);
  const wanted = picked === undefined ? others : [picked, ...others];
  const drawn = wanted.filter((j) => data.curves[j]);
  const parts = [
    legend("Curves", keys, mark),
    make("div", { class: "multiples" }, ...drawn.map((j) => variableFigure(a, b, j, j === picked))),
    make(
      "p",
      { class: "small" },
      "Densities of single variables, each class by itself; the highest point is 1.",
      drawn.some((j) => data.levels[j]) ? " Bars are shares of the rows of a class that have a value." : "",
    ),
    behind("The curves as a table", () => densityTable(drawn)),
  ];
  const without = wanted.filter((j) => !data.curves[j]).map((j) => phrase(a, j));
  if (without.length) {
    const said = `There are no curves of ${without.join(", ")}: all of them would make the page too large.`;
    parts.unshift(make("p", { class: "note" }, said));
  }
  return parts;
}

function variableFigure(a, b, j, large) {
  const { levels, x } = data.curves[j];
  const caption = make("figcaption", {}, `${markOf(a, j)} ${phrase(a, j)}`.trim());
  const chart = levels ? levelBars(a, b, j, large) : x.length ? densityCurves(a, b, j, large) : "No values.";
  return make("figure", { class: large && "large" }, caption, chart);
}

// Two bars for each level, and a stroke for each other class.
function levelBars(a, b, j, large) {
  const { levels, y, others } = data.curves[j];
  const [width, left, step] = [large ? 560 : 280, large ? 160 : 100, 24];
  const x = (share) => left + (share / 1000) * (width - left - 12);
  const node = draw("svg", {
    viewBox: `0 0 ${width} ${step * (levels.length + (others > 0)) + 4}`,
    role: "img",
    "aria-label": `Shares of levels of ${variables[j]} in ${classes[a]}, ${classes[b]} and other classes`,
  });
  const letters = large ? 24 : 15;
  for (const [i, name] of levels.entries()) {
    const top = i * step + 4;
    const short = name.length > letters ? `${name.slice(0, letters - 1)}…` : name;
    const strokes = positions(classes).filter((c) => c !== a && c !== b);
    node.append(
      draw("text", { x: left - 6, y: top + 13, "text-anchor": "end" }, short, draw("title", {}, name)),
      draw("rect", { class: "for", x: left, y: top, width: x(y[a][i]) - left, height: 8 }),
      draw("rect", { class: "against", x: left, y: top + 9, width: x(y[b][i]) - left, height: 8 }),
      ...strokes.map((c) => draw("line", { class: "other", x1: x(y[c][i]), x2: x(y[c][i]), y1: top, y2: top + 17 })),
    );
  }
  node.append(draw("line", { class: "axis", x1: left, x2: left, y1: 2, y2: step * levels.length + 2 }));
  if (others) {
    const said = `and ${plural(others, "rarer level")}`;
    node.append(draw("text", { x: left - 6, y: step * levels.length + 17, "text-anchor": "end" }, said));
  }
  return node;
}

function densityCurves(a, b, j, large) {
  const { x, y } = data.curves[j];
  const last = x.length - 1;
  const chart = frame(`Densities of ${variables[j]} in ${classes[a]}, ${classes[b]} and other classes`, {
    width: large ? 560 : 280,
    height: large ? 240 : 150,
    xs: [0, last],
    ys: [0, 1000],
    xTicks: [
      [0, plain(x[0]), "start"],
      [last / 2, plain(x[last / 2])],
      [last, plain(x[last]), "end"],
    ],
  });
  const curve = (c) => line(y[c].map((height, i) => [chart.x(i), chart.y(height)]));
  const others = positions(classes).filter((c) => c !== a && c !== b);
  const ground = `L${chart.x(last)} ${chart.y(0)}L${chart.x(0)} ${chart.y(0)}Z`;
  chart.node.append(
    ...others.map((c) => draw("path", { class: "other", d: curve(c) })),
    draw("path", { class: "under", d: curve(a) + ground }),
    draw("path", { class: "rival", d: curve(b) }),
    draw("path", { class: "own", d: curve(a) }),
  );
  return chart.node;
}

const valuesDrawn = (j) => data.curves[j].levels ?? data.curves[j].x;

function densityTable(drawn) {
  const columns = [
    { name: "variable", kind: "text", show: ([j]) => variables[j] },
    { name: "value", show: ([j, i]) => plain(valuesDrawn(j)[i]) },
    ...classes.map((name, c) => ({ name, show: ([j, i]) => thousandths(data.curves[j].y[c][i] / 1000) })),
  ];
  const points = drawn.flatMap((j) => positions(valuesDrawn(j)).map((i) => [j, i]));
  return table("Densities, the highest point of a variable being 1, and shares of levels", columns, points);
}

// What a training row is called: by its name, if it has one, else by its position.
const trainingName = (i) => (data.trainingNames ? data.trainingNames[i] : String(i));

function typicalRows(a, order) {
  if (!data.typical[a].length) return make("p", { class: "note" }, "The class has no training rows.");
  const columns = [
    { name: "training row", kind: data.trainingNames ? "text" : "number", show: trainingName },
    ...valueColumns(order, (i) => data.training[i]),
  ];
  const caption = `Typical rows of ${classes[a]}: the training rows where its density is highest`;
  return make("div", { class: "values" }, table(caption, columns, data.typical[a]));
}

function valueColumns(order, valuesOf) {
  const kind = (j) => (data.levels[j] ? "text" : "number");
  return order.map((j) => ({ name: variables[j], kind: kind(j), show: (line) => plain(valuesOf(line)[j]) }));
}

function complete(a) {
  showings[a] ??= makeClassPage(a);
}

function showClass(a) {
  complete(a);
  for (const [b, article] of articles.entries()) article.hidden = b !== a;
  for (const [b, link] of [...document.getElementById("class-links").children].entries()) {
    if (b === a) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

// An address ends in #class-2, #class-2-variable-5 or #row-7; so links, bookmarks and the back button work.
function followAddress() {
  const [, i] = /^#row-(\d+)$/.exec(location.hash) ?? [];
  if (rows[i]) openRow(i);
  const [, a, j] = /^#class-(\d+)(?:-variable-(\d+))?$/.exec(location.hash) ?? [];
  if (!data.explains || !articles[a] || (j && variables[j] === undefined)) return;
  showClass(Number(a));
  showings[a](j && Number(j));
}

function drawClasses() {
  fill("map", ...relevanceMap());
  fill("class-links", ...classes.map((name, a) => make("a", { href: `#class-${a}` }, name)));
  fill("class-pages", ...articles);
  showClass(0);
  const completeAll = () => positions(classes).forEach(complete); // paper has room for all
  addEventListener("beforeprint", completeAll);
  if (matchMedia("print").matches) completeAll();
}

// Rows

const wrong = (row) => row.truth >= 0 && row.truth !== row.label;
const truthKnown = rows.some((row) => row.truth >= 0);
const noveltyKnown = rows.some((row) => row.typicality);

const ORDERS = [
  ...(truthKnown ? [["wrong ones first", (row) => !wrong(row)]] : []),
  ["as in the table", () => 0],
  ["least certain first", (row) => row.proba[row.label]],
  ...(noveltyKnown ? [["least typical first", (row) => Math.max(...row.scores)]] : []),
];

const browser = {
  text: make("input", { type: "search", id: "filter-text" }),
  label: choice("filter-label", ["all", ...classes]),
  truth: choice("filter-truth", ["all", ...classes]),
  order: choice("order", ORDERS.map(([name]) => name)),
  wrong: make("input", { type: "checkbox", id: "filter-wrong" }),
  novel: make("input", { type: "checkbox", id: "filter-novel" }),
  list: make("select", { id: "list", size: "14", "aria-describedby": "list-count" }),
  count: make("p", { id: "list-count", class: "small", role: "status" }),
  panel: make("article", { id: "row", "aria-label": "The row picked" }),
};

// The first name has the value -1, the others count from 0.
function choice(id, names) {
  return make("select", { id }, ...names.map((name, i) => make("option", { value: i - 1 }, name)));
}

function rowTitle(row) {
  const mark = row.novel ? " ⚠ novel" : "";
  const said = `${row.name}: ${classes[row.label]} (${thousandths(row.proba[row.label])})${mark}`;
  return wrong(row) ? `✗ ${said} is ${classes[row.truth]}` : said;
}

function refilter() {
  const { list } = browser;
  const [label, truth, order] = ["label", "truth", "order"].map((name) => Number(browser[name].value));
  const query = browser.text.value.trim().toLowerCase();
  const matches = (row) =>
    rowTitle(row).toLowerCase().includes(query) &&
    (label < 0 || row.label === label) &&
    (truth < 0 || row.truth === truth) &&
    (!browser.wrong.checked || wrong(row)) &&
    (!browser.novel.checked || row.novel);
  const found = positions(rows).filter((i) => matches(rows[i]));
  found.sort(by((i) => ORDERS[order + 1][1](rows[i])));
  const before = list.value;
  list.replaceChildren(...found.map((i) => make("option", { value: i }, rowTitle(rows[i]))));
  list.value = found.map(String).includes(before) ? before : found[0];
  browser.count.textContent = `${found.length} of ${plural(rows.length, "row")}`;
  showRow();
}

// The rows of a label and a true class, or of all (-1), and the reader led to them.
function listRows(label, truth, picked) {
  browser.text.value = "";
  browser.label.value = label;
  browser.truth.value = truth;
  browser.wrong.checked = false;
  browser.novel.checked = false;
  refilter();
  if (picked !== undefined) browser.list.value = picked;
  showRow();
  document.getElementById("rows").scrollIntoView();
  browser.list.focus({ preventScroll: true });
}

const openRow = (i) => listRows(-1, -1, i);

function showRow() {
  const row = rows[browser.list.value];
  const none = make("p", { class: "note" }, "No row on this page is like that.");
  browser.panel.replaceChildren(...(row ? rowPage(row) : [none]));
}

function rowPage(row) {
  const label = classes[row.label];
  const said = `Label ${label} with probability ${thousandths(row.proba[row.label])}.`;
  const truth = wrong(row) ? ` Wrong: it is ${classes[row.truth]}.` : " Right.";
  const parts = [
    make("h3", {}, `${data.rowWord} ${row.name}: ${label}`),
    make("p", { class: wrong(row) ? "verdict wrong" : "verdict" }, said, row.truth < 0 ? "" : truth),
    ...(row.typicality ? place(row) : []),
  ];
  if (!data.explains) return [...parts, make("div", { class: "sides" }, probabilities(row), valuesOf(row))];
  return [
    ...parts,
    make("p", {}, whyNot(row)),
    make("p", {}, together(row)),
    ...(row.caution ? [make("p", { class: "verdict wrong" }, `Caution: ${row.caution}.`)] : []),
    make("div", { class: "sides" }, probabilities(row), evidenceTable(row)),
    supportTable(row),
  ];
}

// Where the row lies among the training rows of the class that it is most typical of.
function place(row) {
  const a = positions(classes).sort(by((b) => -row.scores[b]))[0];
  const share = `${(100 * row.typicality[a]).toFixed(row.typicality[a] < 0.1 ? 1 : 0)} %`;
  const said = row.novel
    ? `⚠ Novel: unlike the training rows of every class, so that the label means little. At most ${share} of the ` +
      `rows of ${classes[a]}, the class that fits best, are as little typical.` +
      (row.unlike?.length ? ` What makes it most unlike them: ${row.unlike.join(", ")}.` : "")
    : `Among the training rows of ${classes[a]}, ${share} are at most as typical.`;
  const text = make("p", { class: row.novel ? "note novel" : "small" }, said);
  return data.yardsticks ? [text, placeFigure(row, a)] : [text];
}

function placeFigure(row, a) {
  const { low, high, counts } = data.yardsticks[row.judge][a];
  const left = Math.min(low, Math.max(row.scores[a], low - (high - low))) - 0.05 * (high - low);
  const at = Math.max(row.scores[a], left);
  const chart = frame(`Typicality of the training rows of ${classes[a]}, and of this row`, {
    width: 360,
    height: 96,
    xs: [left, high],
    ys: [0, Math.max(...counts, 1)],
    xTicks: [
      [left, "less typical", "start"],
      [high, "more typical", "end"],
    ],
  });
  const width = (chart.x(high) - chart.x(low)) / counts.length;
  chart.node.append(
    ...counts.map((n, i) =>
      draw("rect", {
        class: "under",
        x: (chart.x(low) + i * width).toFixed(1),
        y: chart.y(n).toFixed(1),
        width: Math.max(width - 1, 0.5).toFixed(1),
        height: (chart.y(0) - chart.y(n)).toFixed(1),
      }),
    ),
    draw("path", {
      class: row.novel ? "rival" : "own",
      d: line([
        [chart.x(at), chart.y(0)],
        [chart.x(at), chart.y(Math.max(...counts, 1))],
      ]),
    }),
  );
  const off = row.scores[a] < left ? "; it lies further to the left" : "";
  const caption = `Training rows of ${classes[a]} by how typical they are; the line is this row${off}.`;
  const numbers = behind("The bars as a table", () => yardstickTable(row.judge, a));
  return make("figure", { class: "place" }, make("figcaption", {}, caption), chart.node, numbers);
}

function yardstickTable(judge, a) {
  const { low, high, counts } = data.yardsticks[judge][a];
  const step = (high - low) / counts.length;
  const columns = [
    { name: "score from", show: (i) => hundredths(low + i * step) },
    { name: "to", show: (i) => hundredths(low + (i + 1) * step) },
    { name: "training rows", show: (i) => plain(counts[i]) },
  ];
  return table(`Scores of the training rows of ${classes[a]}; 0 is their median`, columns, positions(counts));
}

// Why not the runner-up, in words.
function whyNot(row) {
  const [label, rival] = [classes[row.label], classes[row.rival]];
  const strongest = (sign) => byEvidence(row).filter((j) => sign * row.evidence[j] >= 0.05).slice(0, 3);
  const listed = (found) =>
    found.map((j) => `${variables[j]} = ${plain(row.values[j])} (${times(row.evidence[j])})`).join(", ");
  const [pro, contra] = [strongest(1), strongest(-1)];
  const question = `Why not ${rival}, which has probability ${thousandths(row.proba[row.rival])}?`;
  if (!pro.length && !contra.length) return `${question} No single variable tells the two apart here.`;
  const speaksFor = pro.length
    ? `In favour of ${label}: ${listed(pro)}.`
    : `No single variable speaks for ${label}.`;
  const speaksAgainst = contra.length
    ? `In favour of ${rival}: ${listed(contra)}.`
    : `No single variable speaks for ${rival}.`;
  return `${question} ${speaksFor} ${speaksAgainst}`;
}

// What the evidence adds up to.
function together(row) {
  const likely = (odds) => {
    if (Math.abs(odds) < 0.05) return `${classes[row.label]} is as likely as ${classes[row.rival]}`;
    const [more, less] = odds > 0 ? [row.label, row.rival] : [row.rival, row.label];
    return `${classes[more]} is ${times(odds)} as likely as ${classes[less]}`;
  };
  const odds = `Before any variable is known, ${likely(row.base)}; with all of them, ${likely(row.odds)}.`;
  return `${odds} The density rests on the equivalent of ${plain(row.effective)} rows of equal share.`;
}

function times(evidence) {
  const factor = Math.exp(Math.abs(evidence));
  if (factor > 1e6) return "more than a million times";
  return `${factor < 10 ? factor.toFixed(1) : Number(factor.toPrecision(2))} times`;
}

const byEvidence = (row) => positions(variables).sort(by((j) => -Math.abs(row.evidence[j])));

function probabilities(row) {
  const columns = [
    { name: "class", kind: "text", show: (a) => classes[a] },
    { name: "probability", show: (a) => thousandths(row.proba[a]) },
    { name: "as a bar", kind: "chart", show: (a) => bar(row.proba[a], 0), sort: (a) => row.proba[a] },
  ];
  return table("Probabilities", columns, positions(classes).sort(by((a) => -row.proba[a])), FEW);
}

function variableColumns(row) {
  return [
    { name: "variable", kind: "text", show: (j) => variables[j] },
    { name: "value", show: (j) => plain(row.values[j]) },
  ];
}

function valuesOf(row) {
  return table("Values", variableColumns(row), positions(variables), FEW);
}

function evidenceTable(row) {
  const largest = Math.max(...row.evidence.map(Math.abs), 0.01);
  const columns = [
    ...variableColumns(row),
    { name: "evidence", show: (j) => signed(row.evidence[j]) },
    {
      name: "as a bar",
      kind: "chart",
      show: (j) => bar(row.evidence[j] / largest, 80),
      sort: (j) => row.evidence[j],
    },
  ];
  const pair = `${classes[row.label]} (right) over ${classes[row.rival]} (left)`;
  return table(`Evidence of each variable for ${pair}`, columns, byEvidence(row), FEW);
}

function supportTable(row) {
  const itself = { name: "this row", share: 2, shown: "", values: row.values };
  const others = row.support.map((i, k) => ({
    name: data.trainingNames ? trainingName(i) : `training row ${i}`,
    share: row.shares[k],
    shown: thousandths(row.shares[k]),
    values: data.training[i],
  }));
  const columns = [
    { name: "row", kind: "text", show: (each) => each.name },
    { name: "share", show: (each) => each.shown, sort: (each) => each.share },
    ...valueColumns(byEvidence(row), (each) => each.values),
  ];
  const caption = `Training rows with the largest shares of the density of ${classes[row.label]} here`;
  const node = table(`${caption}; variables by evidence`, columns, [itself, ...others]);
  return make("div", { class: "values" }, node);
}

function drawBrowser() {
  const { text, label, truth, order, list, count, panel } = browser;
  const control = (name, input) => make("label", { class: "control", for: input.id }, name, input);
  const onlyWrong = make("label", { class: "control check" }, browser.wrong, "wrong ones only");
  const onlyNovel = make("label", { class: "control check" }, browser.novel, "novel ones only");
  const controls = make(
    "div",
    { role: "search", "aria-label": "Rows" },
    control("Search", text),
    control("Label", label),
    ...(truthKnown ? [control("True class", truth)] : []),
    control("Order", order),
    ...(truthKnown ? [onlyWrong] : []),
    ...(noveltyKnown ? [onlyNovel] : []),
  );
  fill("browser", make("div", { class: "picker" }, controls, control("Row", list), count), panel);
  text.addEventListener("input", refilter);
  for (const input of [label, truth, order, browser.wrong, browser.novel]) {
    input.addEventListener("change", refilter);
  }
  list.addEventListener("change", showRow);
  refilter();
}

// Errors

function confusionMatrix() {
  const counts = data.errors.confusion;
  const totals = counts.map((numbers) => numbers.reduce((sum, n) => sum + n, 0));
  const node = matrix(
    { class: classes.length <= 6 ? "map few" : classes.length <= FEW ? "map" : "map many" },
    `True classes down, labels across${data.errors.on_page ? "; a number shows these rows in the list below" : ""}`,
    classes,
    classes,
    (a, b) => confusionCell(a, b, counts[a][b], totals[a]),
  );
  document.getElementById("confusion").classList.toggle("whole", classes.length > FEW);
  const box = { class: "scroll", role: "group", "aria-label": "Confusion matrix", tabindex: "0" };
  return [make("h3", {}, "What is taken for what"), make("div", box, node)];
}

function confusionCell(a, b, n, total) {
  if (!n) return make("td", { class: "none" }, classes.length <= FEW ? "0" : "·");
  const label = `${plural(n, "row")} of ${classes[a]} labelled ${classes[b]}`;
  const colour = (a === b ? "b" : "e") + Math.ceil((6 * n) / total);
  if (!data.errors.on_page) {
    return make("td", {}, make("span", { class: `cell ${colour}`, title: label }, String(n)));
  }
  const attributes = { type: "button", class: `cell ${colour}`, title: label, "aria-label": `${label}: show them` };
  const button = make("button", attributes, String(n));
  button.addEventListener("click", () => listRows(b, truthKnown ? a : -1));
  return make("td", {}, button);
}

function reliability() {
  const points = data.errors.reliability;
  const tenths = [0, 0.2, 0.4, 0.6, 0.8, 1].map((value) => [value, value.toFixed(1)]);
  const { node, x, y } = frame("Reliability: share of right labels against their probability", {
    width: 360,
    height: 320,
    xs: [0, 1],
    ys: [0, 1],
    xTicks: tenths,
    yTicks: tenths,
    xLabel: "probability of the label",
    yLabel: "share that is right",
  });
  const most = Math.max(...points.map((point) => point.n));
  node.append(
    draw("path", { class: "other", d: line([[x(0), y(0)], [x(1), y(1)]]) }),
    draw("path", { class: "thread", d: line(points.map((point) => [x(point.confidence), y(point.right)])) }),
  );
  for (const { n, confidence, right, low, high } of points) {
    const radius = 2.5 + 5 * Math.sqrt(n / most);
    node.append(
      draw("line", { class: "interval", x1: x(confidence), x2: x(confidence), y1: y(low), y2: y(high) }),
      draw("circle", { class: "dot", cx: x(confidence), cy: y(right), r: radius }),
    );
  }
  const columns = [
    { name: "mean probability", show: (point) => thousandths(point.confidence) },
    { name: "share right", show: (point) => thousandths(point.right) },
    { name: "from", show: (point) => thousandths(point.low) },
    { name: "to", show: (point) => thousandths(point.high) },
    { name: "rows", show: (point) => String(point.n) },
  ];
  const said =
    "On the diagonal, labels are right as often as they claim. A larger dot stands for more rows; " +
    "bars are 95 % intervals.";
  return [
    make("h3", {}, "Are the probabilities right?"),
    make("figure", {}, node, make("figcaption", { class: "small" }, said)),
    behind("The curve as a table", () => table("Reliability, by tenths of the probability", columns, points)),
  ];
}

// Rows that deserve a look

const REASONS = [
  ["wrong", wrong, (row) => `wrong: it is ${classes[row.truth]}`],
  ["novel", (row) => row.novel, () => "novel: unlike all training rows"],
  ["resting on one row or group", (row) => row.caution, (row) => row.caution],
  ["torn between two", (row) => row.torn, (row) => `torn: ${classes[row.rival]} has ${thousandths(row.proba[row.rival])}`],
];

function rowsToLookAt() {
  const holding = (row) => REASONS.filter(([, holds]) => holds(row));
  const first = (i) => REASONS.indexOf(holding(rows[i])[0]);
  const found = positions(rows).filter((i) => holding(rows[i]).length);
  // By the first reason; wrong labels that were given with confidence before others.
  found.sort((i, k) => first(i) - first(k) || rows[k].proba[rows[k].label] - rows[i].proba[rows[i].label]);
  const counted = REASONS.map(([name, holds]) => `${rows.filter(holds).length} ${name}`);
  const said = make("p", {}, `Of ${plural(rows.length, "row")} on this page: ${counted.join(", ")}.`);
  if (!found.length) return [said];
  const columns = [
    { name: data.rowWord.toLowerCase() === "row" ? "row" : data.rowWord, kind: "text", show: linkToRow },
    { name: "label", kind: "text", show: (i) => classes[rows[i].label] },
    { name: "probability", show: (i) => thousandths(rows[i].proba[rows[i].label]) },
    { name: "why", kind: "text", show: (i) => holding(rows[i]).map(([, , words]) => words(rows[i])).join("; ") },
  ];
  return [said, table("Rows to look at, wrong ones first; a link shows why the row has its label", columns, found, FEW)];
}

function linkToRow(i) {
  const link = make("a", { href: `#row-${i}` }, rows[i].name);
  link.addEventListener("click", () => openRow(i)); // also if the address stays the same
  return link;
}

// Sample sizes

function sampleSizes() {
  const { steps, tolerance } = data.sampleSizes;
  const columns = [
    { name: "training rows", show: (step) => String(step.total) },
    { name: "epsilon", show: (step) => plain(step.epsilon) },
    { name: "accuracy", show: (step) => thousandths(step.accuracy) },
    ...data.sampleSizes.classes.map((name, a) => ({
      name: `rows of ${name}`,
      show: (step) => String(step.sizes[a]),
    })),
  ];
  return [
    stepChart("epsilon", (step) => step.epsilon, `epsilon; dashed, tolerance ${plain(tolerance)}`, tolerance),
    stepChart("accuracy", (step) => step.accuracy, "accuracy on the test rows"),
    behind("The steps as a table", () => table("Steps", columns, steps)),
  ];
}

// One number of each step against training rows, with a dashed line at its goal if it has one.
function stepChart(name, numberOf, caption, goal) {
  const { steps } = data.sampleSizes;
  const totals = steps.map((step) => step.total);
  const xs = [Math.min(...totals), Math.max(...totals)];
  const ys = [0, Math.max(...steps.map(numberOf), goal ?? 1)];
  const { node, x, y } = frame(`${name} against the number of training rows`, {
    width: 420,
    height: 260,
    xs,
    ys,
    xTicks: ticks(...xs).map((value) => [value, plain(value)]),
    yTicks: ticks(...ys).map((value) => [value, plain(value)]),
    xLabel: "training rows",
    yLabel: name,
  });
  if (goal !== undefined) {
    node.append(draw("path", { class: "rival", d: line([[x(xs[0]), y(goal)], [x(xs[1]), y(goal)]]) }));
  }
  node.append(
    draw("path", { class: "own", d: line(steps.map((step) => [x(step.total), y(numberOf(step))])) }),
    ...steps.map((step) => draw("circle", { class: "dot", cx: x(step.total), cy: y(numberOf(step)), r: 3 })),
  );
  return make("figure", {}, node, make("figcaption", { class: "small" }, caption));
}

// The page

for (const node of document.querySelectorAll("table.sortable")) sortable(node, node.closest(".table"));
if (data.explains) drawClasses();
if (data.errors) {
  fill("confusion", ...confusionMatrix());
  fill("reliability", ...reliability());
}
if (data.sampleSizes) fill("steps", ...sampleSizes());
drawBrowser();
fill("look-list", ...rowsToLookAt());
addEventListener("hashchange", followAddress);
followAddress();

// In a frame of a notebook, links to parts of the page would lead to the notebook instead.
if (location.protocol === "about:") {
  addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link) return;
    event.preventDefault();
    location.hash = link.getAttribute("href");
  });
}
