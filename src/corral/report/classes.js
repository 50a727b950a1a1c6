// The map of effects by class and variable

// How a class may differ in a variable. Each kind has its own color, and each pair of kinds its own mark: filled for
// the variables that are listed for the class, hollow for other variables that describe the class.
const PAIRS = [
  ["low", "high", "●", "lower than in other rows", "higher", "○"],
  ["narrow", "wide", "▬", "closer together", "further apart", "▭"],
  ["less", "more", "◆", "a category or value less often", "more often", "◇"],
];

// Shades: none for negligible effects, then one for each step of 0.15. Effects have two digits.
function shade(a, j) {
  const step = Math.min(6, Math.floor(Math.round(100 * Math.abs(data.effects[a][j])) / 15));
  return `${data.kinds[a][j]} s${step}`;
}

function markOf(a, j) {
  if (!data.markers[a][j]) return "";
  const kind = data.kinds[a][j];
  const pair = PAIRS.find(([low, high]) => kind === low || kind === high) ?? PAIRS[2]; // a marker without a direction
  return data.leading[a].includes(j) ? pair[2] : pair[5];
}

// Color scales of the pairs of kinds on the map, from the largest effect of one kind to the largest effect of the other.
function mapScales() {
  const kinds = new Set(data.kinds.flat());
  return PAIRS.filter(([low, high]) => kinds.has(low) || kinds.has(high)).map(([low, high, filled, less, more, hollow]) => {
    const strongestFirst = [6, 5, 4, 3, 2, 1].map((step) => [`${low} s${step}`, ""]);
    const strongestLast = [1, 2, 3, 4, 5, 6].map((step) => [`${high} s${step}`, ""]);
    return { marks: `${filled} listed for the class, ${hollow} also describes the class`, scale: [less, [...strongestFirst, ["s0", ""], ...strongestLast], more] };
  });
}

function phrase(a, j) {
  return `${variables[j]} ${data.differences[a][j] || "(no clear difference)"}`;
}

function markerMap() {
  const few = variables.length <= FEW;
  const node = matrix(
    { class: few ? "map few" : variables.length <= 32 ? "map" : "map many", role: "grid" },
    "Effects, by class and variable",
    classes,
    variables,
    (a, j) => make("td", { role: "gridcell" }, mapCell(a, j, few)),
  );
  walk(node);
  const title = "What describes each class";
  const description =
    "Effects by class and variable: how the values of a class differ from the values of all other rows. " +
    "A variable with a mark describes the class.";
  return [
    make("div", { class: "scroll" }, node),
    cellSentence(node),
    mapLegend(),
    saveButton(title, description, mapPicture),
    behind("The map as a table", mapTable),
  ];
}

function sentenceOfCell(a, j) {
  const numbers = `effect ${signed(data.effects[a][j])}, p-value ${plain(data.pvalues[a][j])}`;
  return `${classes[a]}: ${phrase(a, j)}; ${numbers}${data.markers[a][j] ? "; describes the class" : ""}`;
}

const textOfCell = (a, j, few) => (few ? `${markOf(a, j)} ${signed(data.effects[a][j])}`.trim() : markOf(a, j));

function mapCell(a, j, few) {
  const label = sentenceOfCell(a, j);
  return make(
    "a",
    {
      href: `#class-${a}-variable-${j}`,
      class: `cell ${shade(a, j)}`,
      tabindex: "-1",
      title: label,
      "aria-label": label,
    },
    textOfCell(a, j, few),
  );
}

function mapPicture() {
  const few = variables.length <= FEW;
  const cellOf = (a, j) => ({ kind: shade(a, j), text: textOfCell(a, j, few), sentence: sentenceOfCell(a, j) });
  const keys = mapScales().map(({ marks, scale: [less, swatches, more] }) => [less, swatches, `${more}; ${marks}`]);
  return matrixPicture("Effects, by class and variable", classes, variables, cellOf, keys, few ? 64 : 24);
}

// A line below the map with the sentence of the cell under the mouse or the keys. Screen readers read it from the cell.
function cellSentence(node) {
  const line = make("p", { class: "sentence", "aria-hidden": "true" }, "Point at a cell to see its numbers here.");
  for (const kind of ["mouseover", "focusin"]) {
    node.addEventListener(kind, ({ target }) => {
      if (target.matches("a.cell")) line.textContent = target.title;
    });
  }
  return line;
}

function mapLegend() {
  const lines = mapScales().map(({ marks, scale: [less, swatches, more] }) => {
    const scale = swatches.map(([kind]) => make("span", { class: `swatch ${kind}` }));
    return make("li", {}, less, make("span", { class: "scale" }, ...scale), `${more}; ${marks}`);
  });
  return make("ul", { class: "legend", "aria-label": "Colors and marks" }, ...lines);
}

// The Tab key stops once at the map; arrow keys move within it.
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
  return table("How classes differ from all other rows", columns, pairs);
}

function differenceColumns(pairOf) {
  const entry = (numbers, line) => {
    const [a, j] = pairOf(line);
    return numbers[a][j];
  };
  const marked = (line) => (entry(data.markers, line) ? `${markOf(...pairOf(line))} yes` : "no");
  return [
    { name: "difference", kind: "text", show: (line) => entry(data.differences, line) },
    { name: "effect", show: (line) => signed(entry(data.effects, line)) },
    { name: "p-value", show: (line) => plain(entry(data.pvalues, line)) },
    { name: "describes it", kind: "text", show: marked },
  ];
}

// Classes. The page of a class is made when it is first shown, because making all pages of many classes is slow.

const articles = classes.map((name) =>
  make("article", { class: "class-page", "aria-label": `Class ${name}` }),
);
const showVariable = []; // for each class whose page exists, a function that shows a variable of the class

// The other class that is most often confused with class a: labels of a at rows of b, or labels of b at rows of a.
function likeliestRival(a) {
  const nConfused = (b) => (data.errors ? data.errors.confusion[a][b] + data.errors.confusion[b][a] : 0);
  const others = positions(classes).filter((b) => b !== a);
  return others.sort(by((b) => -nConfused(b)))[0];
}

function makeClassPage(a) {
  const order = data.order[a]; // markers first, each part by the size of the effect
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
    `Variables and class ${classes[a]}: first the variables that describe the class, then the others, both ordered by the size of the effect. Evidence: the ` +
    "mean, over at most 50 training rows of the class, of the evidence for this class against the most probable other class (natural logarithms)";
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
    make("ul", { class: "plain" }, ...data.lines[a].map((text) => make("li", {}, text))),
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

// The overlap of the curves or bars of two classes in a variable, from 0 to 1 (equal).
function overlap(a, b, j) {
  const [own, other] = [data.curves[j].y[a], data.curves[j].y[b]];
  const total = (numbers) => numbers.reduce((sum, n) => sum + n, 0);
  const [ownTotal, otherTotal] = [total(own), total(other)];
  return ownTotal && otherTotal ? total(own.map((n, i) => Math.min(n / ownTotal, other[i] / otherTotal))) : 1;
}

// A sentence that lists the three single variables in which two classes overlap least.
function separation(a, b) {
  const drawn = positions(variables).filter((j) => data.curves[j]?.y.length);
  const shared = new Map(drawn.map((j) => [j, overlap(a, b, j)]));
  const best = drawn.sort(by((j) => shared.get(j))).slice(0, 3);
  const links = best.flatMap((j, i) => [
    i ? ", " : "",
    make("a", { href: `#class-${a}-variable-${j}` }, variables[j]),
    ` (overlap ${Math.round(100 * shared.get(j))}%)`,
  ]);
  return make("p", {}, `Single variables that separate ${classes[a]} from ${classes[b]} best: `, ...links, ".");
}

// Curves of the first six variables, after the variable that was picked.
function densities(a, b, order, picked) {
  const keys = [["own", classes[a]], ["rival", classes[b]]];
  if (classes.length > 2) keys.push(["other", "each other class"]);
  const dash = { class: "key", viewBox: "0 0 24 8", "aria-hidden": "true" };
  const mark = (kind) => draw("svg", dash, draw("path", { class: kind, d: "M0 4L24 4" }));
  const others = order.filter((j) => j !== picked).slice(0, 6);
  const wanted = picked === undefined ? others : [picked, ...others];
  const drawn = wanted.filter((j) => data.curves[j]);
  const parts = [
    ...(drawn.length ? [separation(a, b)] : []),
    legend("Curves", keys, mark),
    make("div", { class: "multiples" }, ...drawn.map((j) => variableFigure(a, b, j, j === picked))),
    make(
      "p",
      { class: "small" },
      "Curves are the densities of a variable in each class. Each chart is scaled to its highest curve.",
      drawn.some((j) => data.curves[j].categories) ? " Bars are shares among the rows of a class that have a value of the variable." : "",
    ),
    behind("The curves as a table", () => densityTable(drawn)),
  ];
  const without = wanted.filter((j) => !data.curves[j]).map((j) => phrase(a, j));
  if (without.length) {
    const note = `There are no curves of ${without.join(", ")}: the page would be too large.`;
    parts.unshift(make("p", { class: "note" }, note));
  }
  return parts;
}

function variableFigure(a, b, j, large) {
  const { categories, x } = data.curves[j];
  const caption = make("figcaption", {}, `${markOf(a, j)} ${phrase(a, j)}`.trim());
  const chart = categories ? categoryBars(a, b, j, large) : x.length ? densityCurves(a, b, j, large) : "No values.";
  return make("figure", { class: large && "large" }, caption, chart);
}

// Two bars for each category, for classes a and b, and a stroke for each other class.
function categoryBars(a, b, j, large) {
  const { categories, y, nOthers } = data.curves[j];
  const [width, left, step] = [large ? 560 : 280, large ? 160 : 100, 24];
  const x = (share) => left + (share / 1000) * (width - left - 12);
  const node = draw("svg", {
    viewBox: `0 0 ${width} ${step * (categories.length + (nOthers > 0)) + 4}`,
    role: "img",
    "aria-label": `Shares of the values of ${variables[j]} in ${classes[a]}, ${classes[b]} and other classes`,
  });
  const letters = large ? 24 : 15;
  for (const [i, name] of categories.entries()) {
    const top = i * step + 4;
    const strokes = positions(classes).filter((c) => c !== a && c !== b);
    node.append(
      named(name, letters, { x: left - 6, y: top + 13, "text-anchor": "end" }),
      draw("rect", { class: "for", x: left, y: top, width: x(y[a][i]) - left, height: 8 }),
      draw("rect", { class: "against", x: left, y: top + 9, width: x(y[b][i]) - left, height: 8 }),
      ...strokes.map((c) => draw("line", { class: "other", x1: x(y[c][i]), x2: x(y[c][i]), y1: top, y2: top + 17 })),
    );
  }
  node.append(draw("line", { class: "axis", x1: left, x2: left, y1: 2, y2: step * categories.length + 2 }));
  if (nOthers) {
    const text = `and ${nOthers} rarer ${nOthers === 1 ? "category" : "categories"}`;
    node.append(draw("text", { x: left - 6, y: step * categories.length + 17, "text-anchor": "end" }, text));
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

const valuesDrawn = (j) => data.curves[j].categories ?? data.curves[j].x;

function densityTable(drawn) {
  const columns = [
    { name: "variable", kind: "text", show: ([j]) => variables[j] },
    { name: "value", show: ([j, i]) => plain(valuesDrawn(j)[i]) },
    ...classes.map((name, c) => ({ name, show: ([j, i]) => thousandths(data.curves[j].y[c][i] / 1000) })),
  ];
  const points = drawn.flatMap((j) => positions(valuesDrawn(j)).map((i) => [j, i]));
  return table("Densities divided by the largest density of the variable, and shares of categories", columns, points);
}

// The name of a training row: its index label, or its position.
const trainingName = (i) => String(trainingLabel(i));
const trainingLabel = (i) => (data.trainingNames ? data.trainingNames[i] : i);

function typicalRows(a, order) {
  if (!data.typical[a].length) return make("p", { class: "note" }, "The class has no training rows.");
  const columns = [
    { name: "training row", kind: data.trainingNames ? "text" : "number", show: trainingName },
    ...valueColumns(order, (i) => data.training[i]),
  ];
  const caption = `Typical rows of class ${classes[a]}: the training rows at which the density of the class is highest`;
  return make("div", { class: "values" }, table(caption, columns, data.typical[a]));
}

function valueColumns(order, valuesOf) {
  const kind = (j) => (data.isCategory[j] ? "text" : "number");
  return order.map((j) => ({ name: variables[j], kind: kind(j), show: (line) => plain(valuesOf(line)[j]) }));
}

function complete(a) {
  showVariable[a] ??= makeClassPage(a);
}

function showClass(a) {
  complete(a);
  for (const [b, article] of articles.entries()) article.hidden = b !== a;
  for (const [b, link] of [...document.getElementById("class-links").children].entries()) {
    if (b === a) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

// Addresses end in #class-2, #class-2-variable-5 or #row-7, so that links, bookmarks and the back button work.
function followAddress() {
  const [, i] = /^#row-(\d+)$/.exec(location.hash) ?? [];
  if (rows[i]) openRow(i);
  const [, a, j] = /^#class-(\d+)(?:-variable-(\d+))?$/.exec(location.hash) ?? [];
  if (!data.explains || !articles[a] || (j && variables[j] === undefined)) return;
  showClass(Number(a));
  showVariable[a](j && Number(j));
}

function drawClasses() {
  fill("map", ...markerMap());
  fill("class-links", ...classes.map((name, a) => make("a", { href: `#class-${a}` }, name)));
  fill("class-pages", ...articles);
  showClass(0);
  const completeAll = () => positions(classes).forEach(complete); // printed pages show all classes
  addEventListener("beforeprint", completeAll);
  if (matchMedia("print").matches) completeAll();
}

