// Which of the items are shown.

// Upper and lower case are alike.
const pattern = (text) => new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"), "iu");

// Each row: [place of the item, its row in the sheet, its row in the other one or undefined].
function pairs(view) {
  const other = view.other ? view.other.rows : new Map();
  return view.sheet.places.map((place, i) => [place, i, other.get(place)]);
}

const kinds = {
  all: () => true,
  right: (view, i) => view.sheet.counted[i] === 1,
  wrong: (view, i) => view.sheet.counted[i] === 0,
  tied: (view, i) => (view.sheet.tied.get(i) || 0) > 1,
  lost: (view, i, was) => was !== undefined && view.sheet.counted[i] < view.other.counted[was],
  gained: (view, i, was) => was !== undefined && view.sheet.counted[i] > view.other.counted[was],
};

const itemName = (columns, place) => `${columns.id?.[place] || ""}@${columns.position[place]}`;

// Who links to an item need not know which run answered it.
async function findItem(view, columns) {
  for (const told of [view.run, ...view.model.sheets]) {
    const sheet = await sheetOf(view.probe, view.model, told);
    if (sheet.places.some((place) => itemName(columns, place) === view.item)) {
      view.run = told;
      if (view.against?.told === told) view.against = null;
      return;
    }
  }
}

function chosen(view, columns, all) {
  if (view.item) return all.filter(([place]) => itemName(columns, place) === view.item);
  const text = view.q && pattern(view.q);
  const isIn = (place) => text.test(columns.question?.[place] || "")
    || (columns.choices?.[place] || []).some((choice) => text.test(choice));
  const group = columns.group || [];
  const cluster = view.cluster && pattern(view.cluster);
  const whole = group.includes(view.cluster);
  const inCluster = (name) => (whole ? name === view.cluster : name !== null && cluster.test(name));
  return all.filter(([place, i, was]) =>
    kinds[view.show](view, i, was)
    && (!text || isIn(place))
    && (!cluster || inCluster(group[place] ?? null))
    && (!view.hops || String(columns.hops?.[place]) === view.hops));
}
