// The order of a table's rows. An update moves only the rows that changed: each finds its new place among the others by halving.

export class RowOrder {
  /** `rows()` lists all rows, `wanted(row)` says which are shown, `compare(a, b)` orders them and must tell any two apart. */
  constructor({ rows, wanted, compare }) {
    Object.assign(this, { rows, wanted, compare });
    this.again();
  }

  /** Order all rows anew: after another filter, another column or a whole new board. */
  again() {
    this.shown = this.rows().filter(this.wanted).sort(this.compare);
  }

  /** Rows that changed, came or went. */
  change(rows) {
    if (!rows.size) return;
    const kept = this.shown.filter((row) => !rows.has(row)), moved = [...rows].filter(this.wanted).sort(this.compare);
    const merged = [];
    let from = 0;
    for (const row of moved) {
      const to = this.placeOf(row, kept, from);
      while (from < to) merged.push(kept[from++]);
      merged.push(row);
    }
    while (from < kept.length) merged.push(kept[from++]);
    this.shown = merged;
  }

  /** Before which of the kept rows a row belongs. */
  placeOf(row, kept, low) {
    let high = kept.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.compare(kept[middle], row) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
