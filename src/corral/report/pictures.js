// Pictures to save: SVG files that include their colors and fonts, so that they look the same in every program.

const INLINED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-weight"];
const FONTS = "system-ui, 'Segoe UI', Roboto, 'Noto Sans', 'Liberation Sans', Arial, sans-serif";

// A button that saves a picture. The picture is drawn on a click, with light colors also in a dark scheme.
function saveButton(title, description, drawPicture) {
  const label = `Save as a picture: ${title}`;
  const button = make("button", { type: "button", class: "save", "aria-label": label }, "Save as a picture (SVG)");
  button.addEventListener("click", () => download(fileName(title), standalone(title, description, drawPicture())));
  return button;
}

function fileName(title) {
  const words = title.normalize("NFKD").replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  return `${words.slice(0, 60) || "picture"}.svg`;
}

function download(name, text) {
  const address = URL.createObjectURL(new Blob([text], { type: "image/svg+xml" }));
  const link = make("a", { href: address, download: name });
  document.body.append(link); // some browsers ignore a click on a link outside the page
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// The text of an SVG file with a drawing, a title and a description; styles of the page are written into it.
function standalone(title, description, node) {
  const stage = make("div", { class: "on-paper", "aria-hidden": "true" }, node);
  document.body.append(stage);
  for (const each of node.querySelectorAll("*")) inlineStyle(each);
  for (const each of node.querySelectorAll("[class]")) each.removeAttribute("class");
  stage.remove();
  const [, , width, height] = node.getAttribute("viewBox").split(" ");
  for (const name of ["class", "role", "aria-label"]) node.removeAttribute(name);
  build(node, { width, height, "font-family": FONTS }, []);
  node.prepend(
    draw("title", {}, title),
    draw("desc", {}, description),
    draw("rect", { width, height, fill: "#ffffff" }),
  );
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(node)}\n`;
}

function inlineStyle(node) {
  const computed = getComputedStyle(node);
  const defaults = { opacity: "1", stroke: "none", "stroke-dasharray": "none", "font-weight": "400" };
  for (const name of INLINED) {
    const value = computed.getPropertyValue(name);
    const hasNoText = name.startsWith("font") && node.tagName !== "text";
    const hasNoStroke = name.startsWith("stroke") && computed.stroke === "none";
    if (!value || value === defaults[name] || hasNoText || hasNoStroke) continue;
    node.setAttribute(name, name === "fill" || name === "stroke" ? hexadecimal(value) : value);
  }
}

// A color as red, green and blue, which every program reads; the style sheet may use lightness and hue.
function hexadecimal(color) {
  if (color === "none") return color;
  const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  pen.fillStyle = color;
  pen.fillRect(0, 0, 1, 1);
  const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
  return "#" + [red, green, blue].map((part) => part.toString(16).padStart(2, "0")).join("");
}

const shortened = (text, letters) => (text.length > letters ? `${text.slice(0, letters - 1)}…` : text);
const LETTER = 6.6; // approximate width of a letter

// A matrix of names below a heading: `cellOf(a, b)` returns the class, the text and the sentence of a cell; `keys` are
// lines of the legend, each a list of swatches [class, text] between two names.
function matrixPicture(heading, downNames, acrossNames, cellOf, keys, cellWidth) {
  const step = 24;
  const letters = (names, most) => Math.min(most, Math.max(...names.map((name) => name.length)));
  const left = 12 + LETTER * letters(downNames, 24);
  const top = 36 + LETTER * letters(acrossNames, 28);
  const [right, bottom] = [left + cellWidth * acrossNames.length, top + step * downNames.length];
  const width = Math.ceil(12 + Math.max(right, 12 + LETTER * heading.length, ...keys.map(widthOfKey)));
  const height = Math.ceil(bottom + 16 + 20 * keys.length);
  const node = draw("svg", { viewBox: `0 0 ${width} ${height}` }, draw("text", { x: 12, y: 18 }, heading));
  for (const [b, name] of acrossNames.entries()) {
    const x = left + cellWidth * (b + 0.5) + 4;
    node.append(named(name, 28, { x, y: top - 6, transform: `rotate(-90 ${x} ${top - 6})` }));
  }
  for (const [a, name] of downNames.entries()) {
    node.append(named(name, 24, { x: left - 6, y: top + step * a + 16, "text-anchor": "end" }));
    for (const b of positions(acrossNames)) {
      const { kind, text, sentence } = cellOf(a, b);
      node.append(swatch(kind, text, left + cellWidth * b, top + step * a, cellWidth, step, sentence));
    }
  }
  for (const [i, key] of keys.entries()) drawKey(node, key, bottom + 12 + 20 * i);
  return node;
}

const named = (name, letters, attributes) => draw("text", attributes, shortened(name, letters), draw("title", {}, name));

function swatch(kind, text, x, y, width, height, sentence = "") {
  return draw(
    "g",
    { class: kind },
    draw("title", {}, sentence),
    draw("rect", { class: "ground", x, y, width: width - 1, height: height - 1 }),
    draw("text", { class: "on", x: x + width / 2, y: y + height / 2 + 4, "text-anchor": "middle" }, text),
  );
}

const widthOfKey = ([low, swatches, high]) => LETTER * (low.length + high.length) + 14 * swatches.length + 24;

function drawKey(node, [low, swatches, high], y) {
  let x = 12;
  if (low) {
    node.append(draw("text", { x, y: y + 11 }, low));
    x += LETTER * low.length + 6;
  }
  for (const [kind, text] of swatches) {
    node.append(swatch(kind, text, x, y, 14, 15));
    x += 14;
  }
  node.append(draw("text", { x: x + 6, y: y + 11 }, high));
}

