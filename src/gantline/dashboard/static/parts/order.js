// The order of a table's rows. An update moves only the rows that changed: these are sorted and merged into the others.

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
    const kept = this.shown.filter((row) => !rows.has(row));
    const moved = [...rows].filter(this.wanted).sort(this.compare);
    if (!moved.length) {
      this.shown = kept;
      return;
    }
    const merged = new Array(kept.length + moved.length);
    let a = 0, b = 0;
    for (let at = 0; at < merged.length; at++) {
      const first = b === moved.length || (a < kept.length && this.compare(kept[a], moved[b]) <= 0);
      merged[at] = first ? kept[a++] : moved[b++];
    }
    this.shown = merged;
  }
}
