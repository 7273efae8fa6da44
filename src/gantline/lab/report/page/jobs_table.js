"use strict";
// The table of jobs: searched, sorted and paged here. Runs of one trace share their columns, and a column has one unit.
const JobsTable = (() => {
  const PER_PAGE = 50;
  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const byId = (name) => document.getElementById(name);
  const compare = (a, b) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return typeof a === "string" ? a.localeCompare(b) : a - b;
  };

  const unpack = (column) => (column.words ? column.codes.map((code) => column.words[code]) : column);
  const unitOf = (values) => {
    const known = values.filter((value) => value).map(Math.abs).sort((a, b) => a - b);
    const middle = known[known.length >> 1] ?? 0;
    const [size, unit] = UNITS.find(([size]) => middle >= 2 * size) ?? UNITS.at(-1);
    return [size, unit, middle < 10 * size ? 2 : 1];
  };
  const spellers = (kinds, columns) => kinds.map((kind, i) => {
    if (kind === "ratio") return (value) => (value === null ? "–" : value.toFixed(2));
    if (kind !== "s") return (value) => (value === null ? "–" : String(value));
    const [size, unit, digits] = unitOf(columns[i]);
    return (value) => (value === null ? "–" : `${(value / size).toFixed(digits)} ${unit}`);
  });

  const show = (data) => {
    const pool = data.pool.map(unpack);
    const kinds = data.columns.map((column) => column.kind);
    const runs = data.runs.map((run) => ({ note: run.note, columns: run.columns.map((at) => pool[at]) }));
    const [find, which, body] = [byId("find"), byId("which"), document.querySelector("#jobs tbody")];
    const head = document.querySelectorAll("#jobs thead th");
    const state = { run: 0, rows: [], page: 0, sort: -1, down: false };

    const page = () => {
      const { columns, note } = runs[state.run];
      const spell = spellers(kinds, columns);
      const pages = Math.max(1, Math.ceil(state.rows.length / PER_PAGE));
      const rows = state.rows.slice(state.page * PER_PAGE, (state.page + 1) * PER_PAGE);
      body.replaceChildren(...rows.map((row) => {
        const line = document.createElement("tr");
        kinds.forEach((kind, i) => {
          const cell = document.createElement("td");
          if (kind === "text") cell.className = i === 0 ? "name" : "text";
          cell.textContent = spell[i](columns[i][row]);
          line.append(cell);
        });
        return line;
      }));
      byId("found").textContent = `${state.rows.length.toLocaleString("en")} jobs, page ${state.page + 1} of ${pages}`;
      byId("jobs-note").textContent = note;
      byId("back").disabled = state.page === 0;
      byId("next").disabled = state.page >= pages - 1;
      head.forEach((cell, i) => {
        cell.setAttribute("aria-sort", i !== state.sort ? "none" : state.down ? "descending" : "ascending");
      });
      WideTables.tellAll();
    };
    const select = () => {
      const { columns } = runs[state.run];
      const words = find.value.toLocaleLowerCase().split(/\s+/).filter(Boolean);
      const texts = columns.filter((_, i) => kinds[i] === "text");
      const rows = [...columns[0].keys()].filter((row) => words.every((word) => texts.some((text) => text[row].toLocaleLowerCase().includes(word))));
      if (state.sort >= 0) {
        const [values, sign] = [columns[state.sort], state.down ? -1 : 1];
        // Unknown values stay at the end either way.
        rows.sort((a, b) => (values[a] === null || values[b] === null ? compare(values[a], values[b]) : sign * compare(values[a], values[b])) || a - b);
      }
      [state.rows, state.page] = [rows, 0];
      page();
    };

    head.forEach((cell, i) => cell.querySelector("button").addEventListener("click", () => {
      state.down = state.sort === i ? !state.down : kinds[i] !== "text";
      state.sort = i;
      select();
    }));
    find.addEventListener("input", select);
    which.addEventListener("change", () => { state.run = which.selectedIndex; select(); });
    byId("back").addEventListener("click", () => { state.page -= 1; page(); });
    byId("next").addEventListener("click", () => { state.page += 1; page(); });
    select();
  };
  return { show };
})();
