// Bundles src/extension.ts, and with an argument a test suite, into one file each.  usage: build.mjs [SUITE.ts OUT.js]
import { build } from 'esbuild';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

export async function bundle(entry, outfile, minify = false) {
  await build({
    absWorkingDir: root,
    entryPoints: [entry],
    outfile,
    bundle: true,
    minify,
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    external: ['vscode'],
    logLevel: 'warning',
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [entry = 'src/extension.ts', outfile = 'dist/extension.js'] = process.argv.slice(2);
  await bundle(entry, outfile);
}
