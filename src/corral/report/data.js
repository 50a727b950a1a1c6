// The numbers that stand in the page. Most are packed, as packing.py says: five bits a letter, the lowest first.

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const BITS = new Map([...LETTERS].map((letter, bits) => [letter, bits]));

function wholeNumbers(text) {
  const numbers = [];
  let [value, unit] = [0, 1];
  for (const letter of text) {
    const bits = BITS.get(letter);
    value += (bits % 32) * unit;
    unit *= 32;
    if (bits < 32) {
      numbers.push(value % 2 ? -(value - 1) / 2 : value / 2);
      [value, unit] = [0, 1];
    }
  }
  return numbers;
}

// Numbers, or values that stand in a list, with null for gaps; the lines of a matrix if they have a width.
function unpack({ text, decimals = 0, middle = 0, among, gaps = [], width }) {
  const found = wholeNumbers(text).map((n) => (among ? among[n] : (middle + n) / 10 ** decimals));
  for (const gap of gaps) found.splice(gap, 0, null);
  if (width === undefined) return found;
  return Array.from({ length: width && found.length / width }, (_, i) => found.slice(i * width, (i + 1) * width));
}

const data = unpackAll(JSON.parse(document.getElementById("data").textContent));
const { classes, variables, rows } = data;

function unpackAll(packed) {
  const columns = packed.values.map(unpack);
  const lineOfTable = (i) => columns.map((column) => column[i]);
  for (const curve of Object.values(packed.curves ?? {})) {
    curve.y = unpack(curve.y);
    if (curve.x) curve.x = unpack(curve.x);
  }
  const ofRows = Object.entries(packed.rows).map(([key, of]) => [key, Array.isArray(of) ? of : unpack(of)]);
  const rows = packed.rows.name.map((_, i) => Object.fromEntries(ofRows.map(([key, of]) => [key, of[i]])));
  for (const row of rows) row.values = lineOfTable(row.values);
  const numbers = unpack(packed.training.rows);
  const byNumber = (list) => new Map(numbers.map((number, i) => [number, list[i]]));
  const training = byNumber(unpack(packed.training.values).map(lineOfTable));
  return { ...packed, rows, training, trainingNames: packed.trainingNames && byNumber(packed.trainingNames) };
}

// A value of a variable within a sentence, where the name of a level has quotes.
function valueInWords(j, value) {
  return data.levels[j] && value !== null ? `"${value}"` : plain(value);
}

