// Source text in colours: names of Python, texts, numbers and comments, line by line.

const TOKENS = /(#.*$)|((?:\b[rbfuRBFU]{1,2})?(?:"""(?:.*?(?:"""|$))|'''(?:.*?(?:'''|$))|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'))|\b(and|as|assert|break|class|continue|def|del|elif|else|except|False|finally|for|from|global|if|import|in|is|lambda|None|nonlocal|not|or|pass|raise|return|True|try|while|with|yield)\b|\b(0[xX][\da-fA-F_]+|\d[\d_]*\.?\d*(?:[eE][+-]?\d+)?)\b/g;

// All lines of a text.
function colouredPython(text) {
  let open = null;
  return text.split("\n").flatMap((line) => {
    const [parts, now] = coloured(line, open);
    open = now;
    return [...parts, "\n"];
  });
}

// The parts of a line, and the quotes that are open behind it.
function coloured(text, open) {
  const parts = [];
  let at = 0;
  if (open) {
    const end = text.indexOf(open);
    if (end < 0) return [[el("span", { class: "str" }, text)], open];
    at = end + 3;
    parts.push(el("span", { class: "str" }, text.slice(0, at)));
    open = null;
  }
  TOKENS.lastIndex = at;
  for (let match; (match = TOKENS.exec(text)); ) {
    if (match.index > at) parts.push(text.slice(at, match.index));
    const kind = match[1] !== undefined ? "com" : match[2] !== undefined ? "str" : match[3] !== undefined ? "key" : "num";
    parts.push(el("span", { class: kind }, match[0]));
    at = TOKENS.lastIndex;
    const quotes = match[2]?.match(/^\w*("""|''')/)?.[1];
    if (quotes && (match[2].length < match[2].indexOf(quotes) + 6 || !match[2].endsWith(quotes))) open = quotes;
  }
  if (at < text.length) parts.push(text.slice(at));
  return [parts, open];
}
