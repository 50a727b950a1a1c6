// The page

for (const node of document.querySelectorAll("table.sortable")) sortable(node, node.closest(".table"));
if (data.explains) drawClasses();
if (data.errors) {
  fill("confusion", ...confusionMatrix());
  fill("reliability", ...reliability());
  if (data.errors.ranking.length) drawRanking();
}
if (data.sampleSizes) fill("steps", ...sampleSizes());
drawBrowser();
fill("look-list", ...rowsToLookAt());
addEventListener("hashchange", followAddress);
followAddress();

// In the frame of a notebook, links to parts of the page would lead to the notebook.
if (location.protocol === "about:") {
  addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link) return;
    event.preventDefault();
    location.hash = link.getAttribute("href");
  });
}
document.body.dataset.drawn = "yes";
