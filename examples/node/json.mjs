// A JSON reader that keeps what JSON.parse loses: whether a number was written as 1 or 1.0, integers
// of any size, and repeated keys.

/** A graph is not in this format, or the model cannot read it. */
export class GraphError extends Error {
  constructor(problem, remedy) {
    super(`${problem} ${remedy}`);
    this.name = 'GraphError';
    this.problem = problem;
    this.remedy = remedy;
  }
}

/** A number that was written with a point or an exponent: 1.0 is not a label, but 1 is. */
export class Real {
  constructor(text) {
    this.text = text;
    this.value = Number(text);
  }
}

/** Parse a text; throws a SyntaxError, or a GraphError for NaN and for repeated keys. */
export function parseJson(text) {
  const reader = new Reader(text);
  const value = reader.value();
  if (reader.peek() !== undefined) reader.refuse();
  return value;
}

/** A parsed value as JSON, in the way Python writes it. */
export function toJson(value) {
  if (value instanceof Real) return value.text;
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return `[${value.map(toJson).join(', ')}]`;
  if (value !== null && typeof value === 'object') {
    const pairs = Object.entries(value).map(([key, each]) => `${toJson(key)}: ${toJson(each)}`);
    return `{${pairs.join(', ')}}`;
  }
  const text = JSON.stringify(value) ?? String(value);
  return text.replace(
    /[\u007f-\uffff]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A text whose unpaired surrogates are escaped. */
export function shown(text) {
  return text.replace(/\p{Surrogate}/gu, (each) => `\\u${each.charCodeAt(0).toString(16)}`);
}

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  value() {
    const next = this.peek();
    if (next === '{') return this.object();
    if (next === '[') return this.array();
    if (next === '"') return this.string();
    const constant = this.take(/null|true|false|NaN|-?Infinity/y);
    if (constant !== null) {
      if (/^[ntf]/.test(constant)) return JSON.parse(constant);
      throw new GraphError(`not JSON (${constant} is not a JSON number).`, 'Use finite numbers.');
    }
    const number = this.take(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (number === null) this.refuse();
    if (/[.eE]/.test(number)) return new Real(number);
    return Number.isSafeInteger(Number(number)) ? Number(number) : BigInt(number);
  }

  array() {
    const found = [];
    this.at++;
    if (this.skip(']')) return found;
    do found.push(this.value());
    while (this.skip(','));
    if (!this.skip(']')) this.refuse();
    return found;
  }

  object() {
    const found = Object.create(null);
    this.at++;
    if (this.skip('}')) return found;
    do {
      if (this.peek() !== '"') this.refuse();
      const key = this.string();
      if (!this.skip(':')) this.refuse();
      const value = this.value();
      if (key in found) {
        throw new GraphError(`the key '${shown(key)}' appears twice.`, 'Keep one of them.');
      }
      found[key] = value;
    } while (this.skip(','));
    if (!this.skip('}')) this.refuse();
    return found;
  }

  string() {
    const found = this.take(/"(?:[^"\\\x00-\x1f]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    if (found === null) this.refuse();
    return JSON.parse(found);
  }

  /** The next character that is not white space. */
  peek() {
    while (' \t\n\r'.includes(this.text[this.at] ?? 'end')) this.at++;
    return this.text[this.at];
  }

  skip(character) {
    const found = this.peek() === character;
    if (found) this.at++;
    return found;
  }

  take(pattern) {
    pattern.lastIndex = this.at;
    const found = pattern.exec(this.text)?.[0] ?? null;
    if (found !== null) this.at += found.length;
    return found;
  }

  refuse() {
    const found = this.text[this.at];
    const what = found === undefined ? 'the line ends early' : `unexpected ${toJson(found)}`;
    throw new SyntaxError(`${what} at column ${this.at + 1}`);
  }
}
