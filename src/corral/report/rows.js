// Rows

const wrong = (row) => row.truth >= 0 && row.truth !== row.label;
const truthKnown = rows.some((row) => row.truth >= 0);
const noveltyKnown = rows.some((row) => row.typicality);

const ORDERS = [
  ...(truthKnown ? [["wrong labels first", (row) => (wrong(row) ? -row.proba[row.label] : 1)]] : []),
  ["as in the table", () => 0],
  ["least certain first", (row) => row.proba[row.label]],
  ...(noveltyKnown ? [["least typical first", (row) => row.score]] : []),
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
  panel: make("article", { id: "row", "aria-label": "Selected row" }),
};

// A drop-down list whose first name has the value -1, the second 0, the third 1 and so on.
function choice(id, names) {
  return make("select", { id }, ...names.map((name, i) => make("option", { value: i - 1 }, name)));
}

function rowTitle(row) {
  const mark = `(${thousandths(row.proba[row.label])})${row.novel ? " ⚠ novel" : ""}`;
  const title = `${row.name}: ${classes[row.label]} ${mark}`;
  return wrong(row) ? `✗ ${title}, recorded ${classes[row.truth]}` : title;
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
  const matching = positions(rows).filter((i) => matches(rows[i]));
  matching.sort(by((i) => ORDERS[order + 1][1](rows[i])));
  const before = list.value;
  list.replaceChildren(...matching.map((i) => make("option", { value: i }, rowTitle(rows[i]))));
  list.value = matching.map(String).includes(before) ? before : matching[0];
  browser.count.textContent = `${matching.length} of ${plural(rows.length, "row")}`;
  showRow();
}

// Lists the rows with a label and a true class (-1 for all rows) and scrolls to the list.
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
  const none = make("p", { class: "note" }, "No row on this page matches.");
  browser.panel.replaceChildren(...(row ? rowPage(row) : [none]));
}

function rowPage(row) {
  const { label, place, reasons, odds, support, caution } = row.words;
  const verdict = wrong(row) ? "verdict wrong" : "verdict";
  const parts = [
    make("h3", {}, `${data.rowWord} ${row.name}, labeled ${classes[row.label]}`),
    make("p", { class: verdict }, label),
  ];
  if (!data.explains) return [...parts, make("div", { class: "sides" }, probabilities(row), valuesOf(row))];
  return [
    ...parts,
    make("p", { class: row.novel ? "note novel" : "small" }, row.novel ? `⚠ ${place}` : place),
    placeFigure(row, row.nearest),
    make("p", {}, reasons),
    make("p", {}, `${odds} ${support}`),
    ...(caution ? [make("p", { class: "verdict wrong" }, caution)] : []),
    waterfallFigure(row),
    make("div", { class: "sides" }, probabilities(row), evidenceTable(row)),
    supportTable(row),
  ];
}

// A histogram of the typicality of the training rows in the class nearest to the row, with a line for the row.
function placeFigure(row, a) {
  const { low, high, counts } = data.scoreHistograms[row.part][a];
  const left = Math.min(low, Math.max(row.score, low - (high - low))) - 0.05 * (high - low);
  const score = Math.max(row.score, left);
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
        [chart.x(score), chart.y(0)],
        [chart.x(score), chart.y(Math.max(...counts, 1))],
      ]),
    }),
  );
  const off = row.score < left ? ", which is further to the left" : "";
  const caption = `Numbers of training rows of ${classes[a]} by typicality of ${classes[a]}; the line is this row${off}.`;
  const numbers = behind("The bars as a table", () => histogramTable(row.part, a));
  return make("figure", { class: "place" }, make("figcaption", {}, caption), chart.node, numbers);
}

function histogramTable(part, a) {
  const { low, high, counts } = data.scoreHistograms[part][a];
  const step = (high - low) / counts.length;
  const columns = [
    { name: "score from", show: (i) => hundredths(low + i * step) },
    { name: "to", show: (i) => hundredths(low + (i + 1) * step) },
    { name: "training rows", show: (i) => plain(counts[i]) },
  ];
  return table(`Typicality scores of the training rows of ${classes[a]}`, columns, positions(counts));
}

const byEvidence = (row) => positions(variables).sort(by((j) => -Math.abs(row.evidence[j])));

function probabilities(row) {
  const columns = [
    { name: "class", kind: "text", show: (a) => classes[a] },
    { name: "probability", show: (a) => thousandths(row.proba[a]) },
    { name: "bar", kind: "chart", show: (a) => bar(row.proba[a], 0), sort: (a) => row.proba[a] },
  ];
  if (row.typicality) columns.splice(2, 0, { name: "typicality", show: (a) => thousandths(row.typicality[a]) });
  const typicality = row.typicality ? ". Typicality: the share of the training rows of a class, counting this row as one of them, that are at most as typical of the class as this row" : "";
  return table(`Probabilities${typicality}`, columns, positions(classes).sort(by((a) => -row.proba[a])), FEW);
}

// A category that no training row has.
const unknownNote = (row, j) => (row.unknown?.includes(j) ? " (not in training rows)" : "");

function variableColumns(row) {
  return [
    { name: "variable", kind: "text", show: (j) => variables[j] },
    { name: "value", show: (j) => plain(row.values[j]) + unknownNote(row, j) },
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
      name: "bar",
      kind: "chart",
      show: (j) => bar(row.evidence[j] / largest, 80),
      sort: (j) => row.evidence[j],
    },
  ];
  const pair = `${classes[row.label]} (right) over ${classes[row.rival]} (left)`;
  return table(`Evidence of each variable for ${pair}. Evidence depends on the other values of the row`, columns, byEvidence(row), FEW);
}

// A number without the word row would look like a value.
function trainingCalled(i) {
  const label = trainingLabel(i);
  return typeof label === "number" ? `training row ${label}` : label;
}

function supportTable(row) {
  const itself = { name: "this row", share: 2, shown: "", values: row.values.map((x, j) => (unknownNote(row, j) ? x + unknownNote(row, j) : x)) };
  const nValues = (values) => values.filter((value) => value !== null).length;
  const supporting = positions(row.support);
  // Rows with hardly any values are left out: they resemble all rows.
  const comparable = supporting.filter((k) => 2 * nValues(data.training[row.support[k]]) >= nValues(row.values));
  const listed = comparable.length ? comparable : supporting;
  const others = listed.map((k) => ({
    name: trainingCalled(row.support[k]),
    share: row.shares[k],
    shown: thousandths(row.shares[k]),
    values: data.training[row.support[k]],
  }));
  const columns = [
    { name: "row", kind: "text", show: (each) => each.name },
    { name: "share", show: (each) => each.shown, sort: (each) => each.share },
    ...valueColumns(byEvidence(row), (each) => each.values),
  ];
  const node = table(`${row.words.nearest} Columns are ordered by evidence`, columns, [itself, ...others]);
  return make("div", { class: "values" }, node);
}

// The log odds without any variable plus the evidence of each variable are the log odds with all variables.

const LIKELY = [0.5, 0.1, 0.9, 0.01, 0.99, 0.001, 0.999, 1e-6, 1 - 1e-6];

function waterfallFigure(row) {
  const [label, rival] = [classes[row.label], classes[row.rival]];
  const title = `Why ${data.rowWord.toLowerCase()} ${row.name} is ${label} rather than ${rival}`;
  const description =
    `Evidence of each variable for ${label} over ${rival}, in natural logarithms of odds. Each bar begins where the bar ` +
    `above it ends. The upper axis is the probability of ${label} if only these two classes are possible.`;
  const width = Math.min(640, Math.max(320, browser.panel.clientWidth || 640));
  return make(
    "figure",
    { class: "waterfall" },
    make("figcaption", {}, description),
    waterfall(row, width, title),
    saveButton(title, description, () => waterfall(row, 640, title)),
  );
}

// Lines of the picture: [name, number, kind of bar, number at which the bar begins].
function waterfallLines(row) {
  const strongest = byEvidence(row).slice(0, data.nStrongest);
  const nOthers = variables.length - strongest.length + data.nHidden;
  const added = [
    ["without any variable", row.base, "sum"],
    ...strongest.map((j) => [`${variables[j]} = ${valueInWords(j, row.values[j])}${unknownNote(row, j)}`, row.evidence[j]]),
    ...(nOthers ? [[`${plural(nOthers, "other variable")}`, row.rest]] : []),
  ];
  let reached = 0;
  const lines = added.map(([name, number, kind = number < 0 ? "against" : "for"]) => {
    reached += number;
    return [name, number, kind, reached - number];
  });
  return [...lines, ["log odds", row.odds, "sum", 0]];
}

function waterfall(row, width, title) {
  const lines = waterfallLines(row);
  const [step, top, right] = [22, 44, 58];
  const left = Math.round(Math.min((width < 480 ? 0.5 : 0.42) * width, 16 + LETTER * Math.max(...lines.map(([name]) => name.length))));
  const height = top + step * lines.length + 42;
  const ends = lines.flatMap(([, number, , begin]) => [begin, begin + number]);
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends, Math.min(0, ...ends) + 0.1)];
  const x = (odds) => left + ((odds - low) / (high - low)) * (width - left - right);
  const [label, rival] = [classes[row.label], classes[row.rival]];
  const node = draw("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title });
  oddsAxes(node, x, [low, high], [top, height - 38], width - right);
  for (const [i, [name, number, kind, begin]] of lines.entries()) {
    const y = top + step * i;
    const [from, to] = [x(begin), x(begin + number)].sort((a, b) => a - b);
    node.append(
      named(name, Math.floor((left - 10) / LETTER), { x: left - 6, y: y + 15, "text-anchor": "end" }),
      draw("rect", { class: kind, x: from, y: y + 4, width: Math.max(to - from, 1), height: step - 8 }),
      draw("text", { x: width - 8, y: y + 15, "text-anchor": "end" }, signed(number)),
    );
    if (i < lines.length - 2) {
      const end = x(begin + number);
      node.append(draw("line", { class: "axis", x1: end, x2: end, y1: y + 4, y2: y + step + 4 }));
    }
  }
  const towards = Math.floor((width - 24) / 2 / LETTER);
  node.append(
    draw("text", { x: 8, y: height - 6 }, shortened(`← ${rival}`, towards)),
    draw("text", { x: width - 8, y: height - 6, "text-anchor": "end" }, shortened(`${label} →`, towards)),
  );
  return node;
}

// Axes of log odds (below the bars) and of probabilities (above the bars).
function oddsAxes(node, x, [low, high], [top, bottom], right) {
  const line = (kind, odds) => draw("line", { class: kind, x1: x(odds), x2: x(odds), y1: top, y2: bottom });
  for (const odds of ticks(low, high)) {
    if (x(odds) > right + 1) continue;
    node.append(
      line(odds ? "grid" : "axis", odds),
      draw("text", { x: x(odds), y: bottom + 14, "text-anchor": "middle" }, plain(odds)),
    );
  }
  const placed = [];
  for (const p of LIKELY) {
    const place = x(Math.log(p / (1 - p)));
    if (place < x(low) || place > x(high) || placed.some((other) => Math.abs(other - place) < 38)) continue;
    placed.push(place);
    node.append(
      draw("line", { class: "axis", x1: place, x2: place, y1: top - 6, y2: top }),
      draw("text", { x: place, y: top - 10, "text-anchor": "middle" }, p > 0.9999 ? "0.999999" : String(p)),
    );
  }
  node.append(
    draw("line", { class: "axis", x1: x(low), x2: x(high), y1: top, y2: top }),
    draw("text", { x: 8, y: 14 }, "probability above, log odds below"),
  );
}

function drawBrowser() {
  const { text, label, truth, order, list, count, panel } = browser;
  const control = (name, input) => make("label", { class: "control", for: input.id }, name, input);
  const onlyWrong = make("label", { class: "control check" }, browser.wrong, "wrong labels only");
  const onlyNovel = make("label", { class: "control check" }, browser.novel, "novel rows only");
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

