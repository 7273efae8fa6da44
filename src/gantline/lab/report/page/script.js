"use strict";
// Everything the page shows comes from the JSON block below it and reaches the document as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : darkSystem.matches);

  const draw = (forPaper) => {
    for (const [name, figure] of Object.entries(data.figures)) {
      const place = document.getElementById(`figure-${name}`);
      if (place.clientWidth) Figures.draw(place, figure, forPaper ? 690 : place.clientWidth);  // folded away, it has no width
    }
  };
  document.querySelectorAll("details").forEach((part) => part.addEventListener("toggle", () => {
    if (part.open && part.querySelector(".plot:empty")) draw(false);
  }));
  document.getElementById("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; });
  let unfolded = [];  // a sheet of paper cannot be unfolded
  window.addEventListener("beforeprint", () => {
    unfolded = [...document.querySelectorAll("details:not([open])")];
    unfolded.forEach((part) => { part.open = true; });
    draw(true);
  });
  window.addEventListener("afterprint", () => {
    unfolded.forEach((part) => { part.open = false; });
    draw(false);
  });
  let settled;
  let drawnWidth = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === drawnWidth) return;  // a phone's address bar changes the height only
    drawnWidth = window.innerWidth;
    clearTimeout(settled);
    settled = setTimeout(() => draw(false), 120);
  });

  WideTables.watch();
  if (data.jobs) JobsTable.show(data.jobs);
  draw(false);
  root.dataset.ready = "yes";
})();
