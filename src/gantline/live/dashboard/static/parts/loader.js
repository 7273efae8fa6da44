// One answer of the service at a time: the newest question counts, older ones are given up.

export class Loader {
  /** `onChange` is called whenever `value`, `error` or `busy` is another. */
  constructor(onChange) {
    Object.assign(this, { onChange, value: null, error: null, busy: false, going: null });
  }

  /** `ask(signal)` is a promise; its value stays until the next one is there. */
  async load(ask) {
    this.going?.abort();
    const going = (this.going = new AbortController());
    this.busy = true;
    this.onChange();
    try {
      const value = await ask(going.signal);
      if (this.going !== going) return;
      Object.assign(this, { value, error: null, busy: false });
    } catch (error) {
      if (this.going !== going || error.name === "AbortError") return;
      if (error.status === undefined) throw error;
      Object.assign(this, { error, busy: false });
    }
    this.onChange();
  }

  stop() {
    this.going?.abort();
    this.going = null;
  }
}
