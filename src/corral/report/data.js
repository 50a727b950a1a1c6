// The numbers and sentences of the page, which are stored as compressed JSON.

const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (letter) => letter.charCodeAt(0));
const inflated = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
const data = await new Response(inflated).json();
const { classes, variables, rows } = data;
for (const row of rows) row.values = data.values[row.values];
for (const i of Object.keys(data.training)) data.training[i] = data.values[data.training[i]];

// A value of a variable as the name of a bar; categories are quoted.
function valueInWords(j, value) {
  return data.isCategory[j] && value !== null ? `"${value}"` : plain(value);
}

