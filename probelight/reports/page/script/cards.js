// An item with its choices and answers.

const MOST_CHOICES = 10;
const format = (number) => number.toLocaleString("en");

// Texts of data become text nodes and attributes, never markup.
function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children.filter((child) => child !== null && child !== ""));
  return node;
}

// The label of the answers, or of those they are compared with, with the model if they have two.
function called(view, other) {
  const { model, told } = other || { model: view.model, told: view.run };
  return view.against && view.against.model !== view.model ? `${model.name}, ${told.label}` : told.label;
}

const runLink = ({ run, label }) => make("a", { href: `#run-${run}` }, label);

// Softmax over the scores; a null is the lowest score there is.
function shares(scores) {
  const numbers = scores.map((score) => (score === null ? -Infinity : score));
  const top = Math.max(...numbers);
  if (top === -Infinity) return numbers.map(() => 0);
  const powers = numbers.map((number) => Math.exp(number - top));
  const sum = powers.reduce((total, power) => total + power, 0);
  return powers.map((power) => power / sum);
}

function scoreCell(answered, choice, className) {
  if (!answered) return null;
  if (answered.i === undefined) return make("td", { class: className }, "not asked");
  const { scores, said } = answered.sheet.answers;
  const score = scores[answered.i][choice];
  if (score === undefined) return make("td", { class: className }, "–");
  const tied = answered.sheet.tied.get(answered.i) || 1;
  const isSaid = said[answered.i] === choice;
  const mark = isSaid ? (tied > 1 ? ` answer, one of ${tied} tied` : " answer") : "";
  const text = score === null ? (said[answered.i] === null ? "not a number" : "−∞") : String(score).replace("-", "−");
  const filled = (100 * shares(scores[answered.i])[choice]).toFixed(1);
  return make("td", { class: className }, text, make("small", {}, mark),
    make("span", { class: "bar", "aria-hidden": "true" }, make("span", { style: `width:${filled}%` })));
}

function choicesTable(view, columns, place, now, was) {
  const choices = [...(columns.choices[place] || [])];
  const num = Math.max(choices.length, now.sheet.answers.scores[now.i].length);
  while (choices.length < num) choices.push("");
  const scores = now.sheet.answers.scores[now.i];
  const gold = columns.answer[place];
  // Of very many choices the right one, the answers and the best ones are shown first.
  const first = new Set([gold, now.sheet.answers.said[now.i], was?.i === undefined ? gold : was.sheet.answers.said[was.i]]);
  const best = choices.map((_, i) => i).sort((a, b) => (scores[b] ?? -Infinity) - (scores[a] ?? -Infinity));
  for (const i of best) if (first.size < MOST_CHOICES) first.add(i);
  const rows = choices.map((text, i) => {
    const name = make("th", { scope: "row", class: i === gold ? "gold" : "" },
      i === gold ? "✓ " : "", text || "(empty)", make("small", {}, i === gold ? " right answer" : ""));
    const row = make("tr", {}, name, scoreCell(was, i, "was"), scoreCell(now, i, "now"));
    row.hidden = num > MOST_CHOICES && !first.has(i);
    return row;
  });
  const head = make("tr", {}, make("th", { scope: "col" }, "choice"),
    was ? make("th", { scope: "col" }, called(view, view.against)) : null,
    make("th", { scope: "col" }, called(view)));
  const table = make("table", {}, make("thead", {}, head), make("tbody", {}, ...rows));
  if (!rows.some((row) => row.hidden)) return table;
  const more = make("button", { type: "button" }, `Show all ${format(num)} choices`);
  more.onclick = () => {
    for (const row of rows) row.hidden = false;
    more.remove();
  };
  return make("div", {}, table, more);
}

function wordsTable(view, columns, place, now, was) {
  const target = columns.choices?.[place]?.[0];
  const rows = [[was, view.against], [now, null]].filter(([own]) => own).map(([own, other]) => {
    const words = own.i === undefined ? "not asked" : own.sheet.answers.words[own.i].join(", ");
    const score = own.i === undefined ? undefined : own.sheet.answers.scores[own.i][0];
    const probability = target && score !== undefined && score !== null ? `${target}: probability ${score}` : "";
    return make("tr", {}, make("th", { scope: "row" }, called(view, other)),
      make("td", {}, words || "–", probability ? make("small", {}, ` (${probability})`) : null));
  });
  return make("table", {}, make("tbody", {}, ...rows));
}

function verdict(view, i, was) {
  const said = SHOW.slice(1).filter((kind) => kinds[kind](view, i, was));
  const count = view.sheet.counted[i];
  if (count > 0 && count < 1) said.push(`score ${Number(count.toPrecision(2))}`);
  if (view.sheet.answers.said?.[i] === null) said.push("no answer");
  return said.join(", ") || "not scored";
}

function card(view, columns, [place, i, was]) {
  const id = itemName(columns, place);
  const now = { sheet: view.sheet, i };
  const before = view.other ? { sheet: view.other, i: was } : null;
  const isContext = Boolean(view.sheet.answers.words);
  const fact = (column, text) => {
    const value = columns[column]?.[place] ?? null;
    return value === null ? null : make("span", {}, text(value));
  };
  const group = columns.group?.[place] ?? null;
  const every = make("button", { type: "button" }, "answers of all runs");
  const article = make("li", { class: "item" },
    make("p", { class: "about" },
      make("span", { class: "verdict" }, verdict(view, i, was)),
      make("a", { href: address(view, { item: id }), title: "Link to this item" }, id),
      group === null ? null : make("span", {}, "concept ",
        make("a", { href: address(view, { cluster: group, item: "" }) }, group)),
      fact("hops", (hops) => `${hops} ${hops === 1 ? "hop" : "hops"}`),
      fact("distractor_type", (type) => `wrong answers: ${type}`),
      fact("distractor_hops", (hops) => `wrong answers at ${hops} ${hops === 1 ? "hop" : "hops"}`),
      every),
    columns.question?.[place] ? make("p", { class: "question" }, columns.question[place], isContext ? " …" : "") : null,
    isContext && columns.expected?.[place]?.length
      ? make("p", { class: "about" }, make("span", {}, `expected: ${columns.expected[place].join(", ")}`)) : null,
    (isContext ? wordsTable : choicesTable)(view, columns, place, now, before));
  every.onclick = () => everyAnswer(view, columns, place, every, article);
  if (view.item) everyAnswer(view, columns, place, every, article);
  return article;
}

async function everyAnswer(view, columns, place, button, article) {
  button.remove();
  const rows = [];
  try {
    for (const model of view.probe.models) {
      for (const told of model.sheets) {
        const sheet = await sheetOf(view.probe, model, told);
        const i = sheet.rows.get(place);
        if (i === undefined) continue;
        const { said, words } = sheet.answers;
        const answer = words ? words[i].join(", ") : said[i] === null ? "no answer" : columns.choices[place][said[i]] || "(empty)";
        const count = sheet.counted[i];
        const counts = count === null ? "–" : count === 1 ? "right" : count === 0 ? "wrong" : `score ${Number(count.toPrecision(2))}`;
        rows.push(make("tr", {}, make("th", { scope: "row" }, `${model.name}, `, runLink(told)),
          make("td", {}, answer), make("td", {}, counts)));
      }
    }
  } catch (error) {
    complain([error.message]);
    return;
  }
  const names = ["run", "answer", "result"].map((name) => make("th", { scope: "col" }, name));
  article.append(make("table", {}, make("thead", {}, make("tr", {}, ...names)), make("tbody", {}, ...rows)));
}
