// Uses the page in examples/web as a person does, and tells what it shows, as JSON.
// node browse.mjs URL CHROMIUM FOLDER_FOR_SCREENSHOTS [OTHER_MODEL.onnx]

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

const [address, executablePath, shots, otherModel] = process.argv.slice(2);
const require = createRequire(join(process.env.IHGNN_NPM, 'node_modules', 'of.cjs'));
const { chromium } = require('playwright-core');
const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');

const OPTIONS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const DESKTOP = { viewport: { width: 1280, height: 900 }, colorScheme: 'light' };
const DARK = { ...DESKTOP, colorScheme: 'dark' };
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

const told = { requests: [], errors: [] };
const browser = await chromium.launch({ executablePath, headless: true, args: OPTIONS });

async function opened(options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.on('request', (request) => told.requests.push(request.url()));
  page.on('pageerror', (error) => told.errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && told.errors.push(message.text()));
  await page.goto(address);
  await ready(page);
  return page;
}

function ready(page) {
  return page.waitForSelector('body[data-state=ready]', { timeout: 60_000 });
}

/** What the page shows about the graph. */
async function shown(page) {
  await ready(page);
  return page.evaluate(() => ({
    graph: document.getElementById('json').value,
    class: document.getElementById('class').textContent.trim(),
    problem: document.getElementById('problem').textContent,
    probabilities: [...document.querySelectorAll('#probabilities li')].map((each) =>
      Number(each.dataset.probability),
    ),
    order: [...document.querySelectorAll('#order li')].map((each) => Number(each.dataset.node)),
    effects: Object.fromEntries(
      [...document.querySelectorAll('#nodes tbody tr')].map((each) => [
        each.dataset.node,
        Number(each.dataset.effect),
      ]),
    ),
    homophily: Object.fromEntries(
      [...document.querySelectorAll('#nodes tbody tr')].map((each) => [
        each.dataset.node,
        Number(each.cells[3].textContent),
      ]),
    ),
    notes: [...document.querySelectorAll('#notes li')].map((each) => each.textContent),
  }));
}

async function unmet(page) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => globalThis.axe.run());
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
}

async function choose(page, name, value) {
  await page.locator(`input[name=${name}][value="${value}"]`).check({ force: true });
}

const page = await opened(DESKTOP);
told.example = await shown(page);
await page.screenshot({ path: join(shots, 'light.png') });
told.unmet = await unmet(page);

// By mouse: C-C-C with an N and an O of its own, and an edge that is drawn and erased again.
await page.click('#clear');
const box = await page.locator('#drawing').boundingBox();
const at = (x, y) => [box.x + x, box.y + y];
await page.mouse.click(...at(100, 100));
const drag = async (from, to) => {
  await page.mouse.move(...from);
  await page.mouse.down();
  await page.mouse.move(...to, { steps: 4 });
  await page.mouse.up();
};
await drag(at(100, 100), at(220, 100)); // to an empty place: a new node
await drag(at(220, 100), at(340, 130));
await choose(page, 'label', 1);
await drag(at(340, 130), at(420, 240));
await choose(page, 'label', 2);
await page.mouse.click(...at(120, 260));
await drag(at(120, 260), at(420, 240));
await drag(at(120, 260), at(100, 100));
await choose(page, 'tool', 'erase');
await page.mouse.click(...at(110, 180)); // the last edge
told.drawn = await shown(page);
await page.keyboard.press('Control+z');
told.undone = (await shown(page)).graph;
await choose(page, 'tool', 'draw');

// By keyboard alone: a path of three, its middle made an O, closed to a ring, one more node.
await page.click('#clear');
await choose(page, 'label', 0);
await page.focus('#drawing');
for (const key of ['n', 'n', 'n', 'e', 'ArrowLeft']) await page.keyboard.press(key);
told.focused = await page.evaluate(() => document.activeElement.getAttribute('aria-label'));
await page.evaluate(() => document.querySelector('#drawing [data-node="0"]').focus());
await page.keyboard.press('Enter');
await page.evaluate(() => document.querySelector('#drawing [data-node="1"]').focus());
for (const key of ['3', 'n', 'Shift+ArrowUp']) await page.keyboard.press(key);
told.typed = await shown(page);
await page.keyboard.press('Delete');
told.deleted = (await shown(page)).graph;

// As JSON, first with a mistake.
await page.click('#json-details summary');
await page.fill('#json', '{"node_labels": [0, 1], "edges": [[0, 2]]}');
told.refusal = await page.textContent('#json-problem');
await page.fill(
  '#json',
  '{"node_labels": [0, 99, 1, 0], "edges": [[0, 1], [1, 2], [2, 3], [3, 3]]}',
);
told.pasted = await shown(page);

// Another model, of the other layout; then something that is no model.
if (otherModel) {
  await page.setInputFiles('#model-file', otherModel);
  told.other = await shown(page);
}
await page.setInputFiles('#model-file', {
  name: 'x.onnx',
  mimeType: '',
  buffer: Buffer.from('nothing'),
});
await page.waitForSelector('#problem:not([hidden])');
told.notAModel = await page.textContent('#problem');

const dark = await opened(DARK);
await choose(dark, 'view', 'effect');
await dark.screenshot({ path: join(shots, 'dark.png') });
told.unmetInDark = await unmet(dark);

const phone = await opened(PHONE);
await phone.screenshot({ path: join(shots, 'phone.png'), fullPage: true });
told.overflow = await phone.evaluate(() => document.documentElement.scrollWidth - innerWidth);
await phone.tap('#clear');
await phone.tap('#drawing');
told.tapped = (await shown(phone)).graph;

await browser.close();
console.log(JSON.stringify(told));
