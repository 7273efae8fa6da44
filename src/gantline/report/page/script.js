"use strict";
// Everything the page shows comes from the JSON block below it and reaches the document as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const darkSystem = window.matchMedia("(prefers-color-scheme: dark)");

  // Figures are stored in their light colours; the dark ones replace them one by one.
  const toDark = new Map(data.colours.map(([light, dark]) => [light, dark]));
  const recolour = (value) => {
    if (typeof value === "string") return toDark.get(value) ?? value;
    if (Array.isArray(value)) return typeof value[0] === "number" ? value : value.map(recolour);
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, recolour(item)]));
    }
    return value;
  };
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : darkSystem.matches);

  const draw = (forPaper) => {
    for (const [name, figure] of Object.entries(data.figures)) {
      const place = document.getElementById(`figure-${name}`);
      const shown = isDark() && !forPaper ? recolour(figure) : figure;
      const layout = { ...shown.layout, width: forPaper ? 690 : place.clientWidth };
      if (layout.width < 480) {
        layout.margin = { ...layout.margin, l: 44, r: 8 };
        layout.font = { ...layout.font, size: 11 };
      }
      const config = { displayModeBar: false, scrollZoom: false };
      Plotly.react(place, structuredClone(shown.data), structuredClone(layout), config);
    }
  };

  const themeButton = document.getElementById("theme");
  themeButton.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    draw(false);
  });
  darkSystem.addEventListener("change", () => draw(false));
  let unfolded = [];  // nobody can unfold a sheet of paper
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

  // ---- the table of jobs, which the page of a sweep has not
  if (!data.jobs) {
    draw(false);
    root.dataset.ready = "yes";
    return;
  }
  const perPage = 50;
  const find = document.getElementById("find");
  const which = document.getElementById("which");
  const body = document.querySelector("#jobs tbody");
  const head = document.querySelectorAll("#jobs thead th");
  const state = { run: 0, rows: [], page: 0, sort: -1, down: false };

  const human = (seconds) => {
    if (seconds === null) return "–";
    const size = Math.abs(seconds);
    if (size < 120) return `${seconds.toFixed(1)} s`;
    if (size < 7200) return `${(seconds / 60).toFixed(1)} min`;
    if (size < 172800) return `${(seconds / 3600).toFixed(1)} h`;
    return `${(seconds / 86400).toFixed(1)} d`;
  };
  const spell = (kind, value) => {
    if (kind === "s") return human(value);
    if (value === null) return "–";
    return kind === "ratio" ? value.toFixed(2) : String(value);
  };
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "string" ? a.localeCompare(b) : a - b;
  };

  const select = () => {
    const columns = data.jobs[state.run].columns;
    const words = find.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
    const texts = data.columns.map((column, i) => (column.kind === "text" ? columns[i] : null)).filter(Boolean);
    const rows = [];
    for (let row = 0; row < columns[0].length; row += 1) {
      if (words.every((word) => texts.some((text) => text[row].toLocaleLowerCase().includes(word)))) rows.push(row);
    }
    if (state.sort >= 0) {
      const values = columns[state.sort];
      const sign = state.down ? -1 : 1;
      // Unknown values stay at the end either way.
      rows.sort((a, b) => (values[a] === null || values[b] === null ? compare(values[a], values[b]) : sign * compare(values[a], values[b])) || a - b);
    }
    state.rows = rows;
    state.page = 0;
    show();
  };

  const show = () => {
    const { columns, note } = data.jobs[state.run];
    const pages = Math.max(1, Math.ceil(state.rows.length / perPage));
    const rows = state.rows.slice(state.page * perPage, (state.page + 1) * perPage);
    body.replaceChildren(...rows.map((row) => {
      const line = document.createElement("tr");
      data.columns.forEach((column, i) => {
        const cell = document.createElement("td");
        if (column.kind === "text") cell.className = i === 0 ? "name" : "text";
        cell.textContent = spell(column.kind, columns[i][row]);
        line.append(cell);
      });
      return line;
    }));
    const count = state.rows.length.toLocaleString("en");
    document.getElementById("found").textContent = `${count} jobs, page ${state.page + 1} of ${pages}`;
    document.getElementById("jobs-note").textContent = note;
    document.getElementById("back").disabled = state.page === 0;
    document.getElementById("next").disabled = state.page >= pages - 1;
    head.forEach((cell, i) => {
      cell.setAttribute("aria-sort", i !== state.sort ? "none" : state.down ? "descending" : "ascending");
    });
  };

  head.forEach((cell, i) => cell.querySelector("button").addEventListener("click", () => {
    state.down = state.sort === i ? !state.down : data.columns[i].kind !== "text";
    state.sort = i;
    select();
  }));
  find.addEventListener("input", select);
  which.addEventListener("change", () => { state.run = which.selectedIndex; select(); });
  document.getElementById("back").addEventListener("click", () => { state.page -= 1; show(); });
  document.getElementById("next").addEventListener("click", () => { state.page += 1; show(); });

  select();
  draw(false);
  root.dataset.ready = "yes";
})();
