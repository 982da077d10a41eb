// npm run ort: copies the three files of onnxruntime-web that the page uses to ort/.

import { cpSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const [from = join(here, 'node_modules'), to = join(here, 'ort')] = process.argv.slice(2);
mkdirSync(to, { recursive: true });
for (const name of [
  'ort.wasm.min.mjs',
  'ort-wasm-simd-threaded.mjs',
  'ort-wasm-simd-threaded.wasm',
]) {
  cpSync(join(from, 'onnxruntime-web', 'dist', name), join(to, name));
}
