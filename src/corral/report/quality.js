// Scores and errors

const rowsOfClass = (a) => data.errors.confusion[a].reduce((sum, n) => sum + n, 0);

// Blue if the label is right, orange if the label is wrong; darker for a larger share of the rows of the class.
function shadeOfCount(a, b) {
  const n = data.errors.confusion[a][b];
  return n ? `${a === b ? "hit" : "miss"} s${Math.ceil((6 * n) / rowsOfClass(a))}` : "s0";
}

const sentenceOfCount = (a, b) => `${plural(data.errors.confusion[a][b], "row")} of ${classes[a]} with the label ${classes[b]}`;

function confusionPicture() {
  const cellOf = (a, b) => ({
    kind: shadeOfCount(a, b),
    text: String(data.errors.confusion[a][b]),
    sentence: sentenceOfCount(a, b),
  });
  const scale = (kind) => [1, 2, 3, 4, 5, 6].map((step) => [`${kind} s${step}`, ""]);
  const keys = [
    ["", scale("hit"), "right label: few to all rows of the class"],
    ["", scale("miss"), "wrong label: few to all rows of the class"],
  ];
  const digits = Math.max(...data.errors.confusion.flat()).toString().length;
  const cellWidth = Math.max(24, 10 + 8 * digits);
  return matrixPicture("True classes down, labels across", classes, classes, cellOf, keys, cellWidth);
}

function confusionMatrix() {
  const counts = data.errors.confusion;
  const node = matrix(
    { class: classes.length <= 6 ? "map few" : classes.length <= FEW ? "map" : "map many" },
    `True classes down, labels across${data.errors.on_page ? "; click a number to list its rows below" : ""}`,
    classes,
    classes,
    (a, b) => confusionCell(a, b, counts[a][b]),
  );
  document.getElementById("confusion").classList.toggle("whole", classes.length > FEW);
  const box = { class: "scroll", role: "group", "aria-label": "Confusion matrix", tabindex: "0" };
  const title = "Which classes are confused?";
  const description = "Numbers of rows by true class (down) and label (across).";
  const keys = [["hit s5", "right label"], ["miss s5", "wrong label; darker for a larger share of the rows of the class"]];
  return [
    make("h3", {}, title),
    make("div", box, node),
    legend("Colors", keys, (kind) => make("span", { class: `swatch ${kind}` })),
    saveButton(title, description, confusionPicture),
  ];
}

function confusionCell(a, b, n) {
  if (!n) return make("td", { class: "none" }, classes.length <= FEW ? "0" : "·");
  const label = sentenceOfCount(a, b);
  const color = shadeOfCount(a, b);
  if (!data.errors.on_page) {
    return make("td", {}, make("span", { class: `cell ${color}`, title: label }, String(n)));
  }
  const attributes = { type: "button", class: `cell ${color}`, title: label, "aria-label": `${label}: list these rows` };
  const button = make("button", attributes, String(n));
  button.addEventListener("click", () => listRows(b, truthKnown ? a : -1));
  return make("td", {}, button);
}

function reliability() {
  const points = data.errors.reliability;
  const title = "Reliability: share of right labels against their probability";
  const { node, x, y } = unitFrame(title, "probability of the label", "share of right labels");
  const most = Math.max(...points.map((point) => point.n_rows));
  node.append(draw("path", { class: "other", d: line([[x(0), y(0)], [x(1), y(1)]]) }));
  for (const { n_rows, confidence, share_right, interval } of points) {
    const radius = 2.5 + 5 * Math.sqrt(n_rows / most);
    if (interval) {
      const [y1, y2] = interval.map(y);
      node.append(draw("line", { class: "interval", x1: x(confidence), x2: x(confidence), y1, y2 }));
    }
    node.append(draw("circle", { class: "dot", cx: x(confidence), cy: y(share_right), r: radius }));
  }
  const columns = [
    { name: "probability", show: (point) => `${hundredths(point.low)} to ${hundredths(point.high)}`, sort: (point) => point.high },
    { name: "mean probability", show: (point) => thousandths(point.confidence) },
    { name: "share of right labels", show: (point) => thousandths(point.share_right) },
    { name: "95% interval", show: ({ interval }) => interval?.map(thousandths).join(" to ") ?? "" },
    { name: "rows", show: (point) => String(point.n_rows) },
  ];
  return [
    make("h3", {}, "Are the probabilities right?"),
    make("figure", {}, node, make("figcaption", { class: "small" }, data.errors.caption)),
    behind("The dots as a table", () => table("Share of right labels, by the probability of the label", columns, points)),
  ];
}

// ROC and precision-recall curves. A point is [threshold, rows called, called rows of the class, recall, false positive
// rate, precision].

const RECALL = 3;
const FALSE_RATE = 4;
const PRECISION = 5;
const tenths = [0, 0.2, 0.4, 0.6, 0.8, 1].map((value) => [value, value.toFixed(1)]);

function unitFrame(title, xLabel, yLabel) {
  return frame(title, { width: 360, height: 320, xs: [0, 1], ys: [0, 1], xTicks: tenths, yTicks: tenths, xLabel, yLabel });
}

// ROC and precision-recall curve of a class, with curves of other classes behind and a dot at the threshold, if any.
function drawRanking() {
  const curves = data.errors.ranking;
  const pick = make("select", {}, ...curves.map((curve, i) => make("option", { value: i }, classes[curve.class])));
  const [pictures, numbers] = [make("div", { class: "columns" }), make("div")];
  const show = (point) => pictures.replaceChildren(...rankingPictures(curves[pick.value], point));
  const choose = () => {
    show();
    numbers.replaceChildren(tableOfCurves(curves[pick.value]));
  };
  pick.addEventListener("change", choose);
  choose();
  const control = curves.length > 1 ? [make("label", { class: "control" }, "Class ", pick)] : [];
  fill("ranking", make("h3", {}, "How well are rows ranked?"), ...control, pictures, numbers);
  if (data.errors.thresholds) fill("threshold", ...thresholdControl(show));
}

function tableOfCurves(curve) {
  const caption = `Thresholds for ${classes[curve.class]}: rows with at least this probability of ${classes[curve.class]} are called ${classes[curve.class]}`;
  return behind("The curves as a table", () => pointTable(caption, curve.points));
}

function rankingPictures(curve, point) {
  const name = classes[curve.class];
  const roc = unitFrame(`ROC curve of ${name}: recall against the false positive rate`, "false positive rate", "recall");
  const precision = unitFrame(`Precision-recall curve of ${name}: precision against recall`, "recall", "precision");
  const chance = { class: "rival" };
  roc.node.append(draw("path", { ...chance, d: line([[roc.x(0), roc.y(0)], [roc.x(1), roc.y(1)]]) }));
  const height = precision.y(curve.share);
  precision.node.append(draw("path", { ...chance, d: line([[precision.x(0), height], [precision.x(1), height]]) }));
  const others = data.errors.ranking.filter((other) => other !== curve);
  for (const each of [...others, curve]) {
    const kind = each === curve ? "own" : "other";
    roc.node.append(draw("path", { class: kind, d: line(rocPoints(each, roc)) }));
    precision.node.append(draw("path", { class: kind, d: line(precisionPoints(each, precision)) }));
  }
  if (point) {
    roc.node.append(draw("circle", { class: "dot", cx: roc.x(point[FALSE_RATE]), cy: roc.y(point[RECALL]), r: 5 }));
    const place = { cx: precision.x(point[RECALL]), cy: precision.y(point[PRECISION]) };
    precision.node.append(draw("circle", { class: "dot", ...place, r: 5 }));
  }
  const figure = ({ node }, i) => make("figure", {}, node, make("figcaption", { class: "small" }, curve.captions[i]));
  return [figure(roc, 0), figure(precision, 1)];
}

const rocPoints = (curve, { x, y }) => [[x(0), y(0)], ...curve.points.map((p) => [x(p[FALSE_RATE]), y(p[RECALL])])];

// The curve has steps, so that the area below it is the average precision.
function precisionPoints(curve, { x, y }) {
  let before = 0;
  return curve.points.flatMap((p) => {
    const step = [[x(before), y(p[PRECISION])], [x(p[RECALL]), y(p[PRECISION])]];
    before = p[RECALL];
    return step;
  });
}

function pointTable(caption, points) {
  const columns = [
    { name: "threshold", show: (p) => plain(p[0]) },
    { name: "rows called", show: (p) => String(p[1]) },
    { name: "true positives", show: (p) => String(p[2]) },
    { name: "false positives", show: (p) => String(p[1] - p[2]) },
    { name: "precision", show: (p) => thousandths(p[PRECISION]) },
    { name: "recall", show: (p) => thousandths(p[RECALL]) },
    { name: "false positive rate", show: (p) => thousandths(p[FALSE_RATE]) },
  ];
  return table(caption, columns, points);
}

// A slider over thresholds, and the consequences of each threshold in words.
function thresholdControl(move) {
  const { points, sentences, use } = data.errors.thresholds;
  const half = points.findIndex((p) => p[0] === 0.5);
  const attributes = { type: "range", min: 0, max: points.length - 1, step: 1, value: half };
  const slider = make("input", attributes);
  const words = make("output", { class: "sentence" });
  const show = () => {
    const i = Number(slider.value);
    words.textContent = sentences[i];
    slider.setAttribute("aria-valuetext", String(points[i][0]));
    move(points[i]);
  };
  slider.addEventListener("input", show);
  show();
  return [
    make("h3", {}, "Which threshold to choose?"),
    make("p", {}, use),
    make("label", { class: "control" }, "Threshold ", slider),
    make("p", {}, words),
    behind("All thresholds as a table", () => pointTable("Consequences of each threshold", points)),
  ];
}

// Rows to look at

const recordedColumns = [
  { name: "recorded", kind: "text", show: (i) => classes[rows[i].truth] },
  { name: "probability of recorded class", show: (i) => thousandths(rows[i].proba[rows[i].truth]) },
];

function rowsToLookAt() {
  const columns = [
    { name: data.rowWord.toLowerCase() === "row" ? "row" : data.rowWord, kind: "text", show: linkToRow },
    { name: "label", kind: "text", show: (i) => classes[rows[i].label] },
    { name: "probability", show: (i) => thousandths(rows[i].proba[rows[i].label]) },
    ...(truthKnown ? recordedColumns : []),
    { name: "why", kind: "text", show: (i) => rows[i].why.map(([, sentence]) => sentence).join("; ") },
  ];
  return [make("p", {}, data.look.sentence), table("Rows to look at; a link shows why the row has its label", columns, data.look.rows, FEW)];
}

function linkToRow(i) {
  const link = make("a", { href: `#row-${i}` }, rows[i].name);
  link.addEventListener("click", () => openRow(i)); // an address that stays the same fires no event
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
    stepChart("epsilon", (step) => step.epsilon, `Epsilon; the dashed line is the tolerance ${plain(tolerance)}`, tolerance),
    stepChart("accuracy", (step) => step.accuracy, "Accuracy on the test rows"),
    behind("The steps as a table", () => table("Steps", columns, steps)),
  ];
}

// A number of each step against the number of training rows, with a dashed line at the goal if there is one.
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

