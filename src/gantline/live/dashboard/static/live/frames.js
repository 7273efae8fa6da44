// Server-sent events from the body of a fetch, which can carry a token where EventSource cannot.

/** The stream broke off or fell silent. */
export class CutOff extends Error {}

/** Yields {event, data} for each frame of the stream; ends when the stream does. `silence` milliseconds without a byte are an error. */
export async function* frames(body, silence) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  try {
    for (;;) {
      const { value, done } = await read(reader, silence);
      if (done) return;
      text += value;
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const frame = parse(text.slice(0, end));
        text = text.slice(end + 2);
        if (frame) yield frame;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function read(reader, silence) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new CutOff(`nothing for ${silence / 1000} s`)), silence);
  });
  try {
    return await Promise.race([reader.read(), late]);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CutOff(error.message);
  } finally {
    clearTimeout(timer);
  }
}

function parse(text) {
  let event = "message";
  const data = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5));
  }
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : null;
}
