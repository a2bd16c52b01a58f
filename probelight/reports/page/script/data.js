// The data: packed texts, in the page or in files next to it, each unpacked once.

const index = JSON.parse(document.getElementById("items-index").textContent);

const arriving = new Map();
window.probelightItems = (number, text) => arriving.get(number)(text);

function packed(number) {
  if (!index.folder) return document.getElementById(`items-part-${number}`).textContent;
  return new Promise((resolve, reject) => {
    arriving.set(number, resolve);
    const script = document.createElement("script");
    script.src = `${index.folder}/${number}.js`;
    script.onerror = () => {
      script.remove();
      reject(new Error(`The file ${index.folder}/${number}.js is missing; keep the folder ${index.folder} next to this page.`));
    };
    document.head.append(script);
  });
}

const parts = new Map();

function part(number) {
  if (!parts.has(number)) {
    const unpacking = unpacked(number);
    unpacking.catch(() => parts.delete(number));
    parts.set(number, unpacking);
  }
  return parts.get(number);
}

async function unpacked(number) {
  if (!window.DecompressionStream) {
    throw new Error("This browser is too old to show the items. Use Chrome 80, Firefox 113, Safari "
      + "16.4 or later, or read predictions.jsonl of each run.");
  }
  const binary = atob(await packed(number));
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).json();
}

// A sheet with, of each of its rows, the place of the item, what it counts and how many share the
// best score; null where nothing is right or wrong, as behind a context without expected words.
async function sheetOf(probe, model, told) {
  const [columns, sheets] = await Promise.all([part(probe.part), part(model.part)]);
  const sheet = sheets[model.sheets.indexOf(told)];
  if (sheet.counted) return sheet;
  const { row, places } = sheet.items;
  sheet.places = places || Array.from({ length: row[1] }, (_, i) => row[0] + i);
  sheet.rows = new Map(sheet.places.map((place, i) => [place, i]));
  const { said, words, counts = [] } = sheet.answers;
  sheet.tied = new Map();
  if (words) {
    sheet.counted = sheet.places.map((place, i) => {
      const expected = columns.expected?.[place] || [];
      return expected.length ? Number(expected.includes(words[i][0])) : null;
    });
  } else {
    sheet.counted = sheet.places.map((place, i) => Number(said[i] === columns.answer[place]));
    for (const [i, tied, count] of counts) {
      sheet.counted[i] = count;
      sheet.tied.set(i, tied);
    }
  }
  return sheet;
}
