// `npm run package`: the .vsix with the extension, the server and the server's pure-Python dependencies.
// usage: package.mjs [OUTFILE]; the environment variable PYTHON names the interpreter whose pip is used.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { bundle, root } from './build.mjs';

const project = path.join(root, '..', '..');
const libs = path.join(root, 'bundled', 'libs');
const manifest = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8'));
const outfile = path.resolve(process.argv[2] ?? path.join(root, 'dist', `pallas-lsp-${manifest.version}.vsix`));

function fail(sentence) {
  console.error(`package: ${sentence}`);
  process.exit(1);
}

function run(command, args) {
  try {
    execFileSync(command, args, { cwd: root, stdio: ['ignore', 'inherit', 'inherit'] });
  } catch (error) {
    fail(`${command} failed (${error.message})`);
  }
}

function findPython() {
  const ask = ['-I', '-c', 'import sys, pip; print(sys.version_info >= (3, 11))'];
  for (const python of [process.env.PYTHON, 'python3', 'python'].filter(Boolean)) {
    try {
      if (execFileSync(python, ask, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim() === 'True') return python;
    } catch {
      // not there, or without pip: the next one
    }
  }
  return fail('no Python 3.11 or later with pip was found; name one in the environment variable PYTHON');
}

function dependencies() {
  const text = fs.readFileSync(path.join(project, 'pyproject.toml'), 'utf8');
  const list = /^dependencies = \[([^\]]*)\]/m.exec(text);
  if (!list) fail('pyproject.toml has no list of dependencies');
  return [...list[1].matchAll(/"([^"]+)"/g)].map((match) => match[1]);
}

// Only pure wheels, for whichever Python 3.11 or later the user has; the versions that the tests run with.
function installDependencies(python) {
  fs.rmSync(libs, { recursive: true, force: true });
  run(python, [
    '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-compile', '--target', libs,
    '--only-binary', ':all:', '--platform', 'any', '--implementation', 'py', '--abi', 'none', '--python-version', '3.11',
    '--constraint', path.join(project, 'tests', 'environments', 'dev.txt'), ...dependencies(),
  ]);
  // Programs, and stubs of other libraries: jedi needs those of the standard library alone (5,000 files less).
  for (const unneeded of ['bin', 'jedi/third_party/typeshed/stubs', 'jedi/third_party/django-stubs']) {
    fs.rmSync(path.join(libs, unneeded), { recursive: true, force: true });
  }
}

function* files(folder) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const full = path.join(folder, entry.name);
    if (entry.isDirectory()) yield* files(full);
    else yield full;
  }
}

function copyServer() {
  const source = path.join(project, 'pallas_lsp');
  fs.cpSync(source, path.join(libs, 'pallas_lsp'), {
    recursive: true,
    filter: (from) => path.basename(from) !== '__pycache__' && !from.endsWith('.pyc'),
  });
  const version = /__version__ = "([^"]+)"/.exec(fs.readFileSync(path.join(source, '__init__.py'), 'utf8'));
  if (version?.[1] !== manifest.version) fail(`package.json has version ${manifest.version}, pallas_lsp ${version?.[1]}`);
}

function checkPure() {
  const compiled = [...files(libs)].filter((file) => /\.(so|pyd|dylib|dll|a|o|exe)$/.test(file));
  if (compiled.length > 0) fail(`the bundle must be pure Python, but has ${compiled.join(', ')}`);
}

function writeNotices() {
  const parts = ['# Third-party software in this extension\n'];
  for (const name of fs.readdirSync(libs).filter((each) => each.endsWith('.dist-info')).sort()) {
    const metadata = fs.readFileSync(path.join(libs, name, 'METADATA'), 'utf8').split('\n\n')[0];
    const field = (label) => new RegExp(`^${label}: (.+)$`, 'm').exec(metadata)?.[1];
    const licence = field('License-Expression') ?? field('License') ?? field('Classifier: License :: OSI Approved ::') ?? '';
    parts.push(`- ${field('Name')} ${field('Version')}${licence ? ` (${licence})` : ''}; its licence is in \`bundled/libs/${name}\``);
  }
  for (const name of ['vscode-languageclient', 'vscode-languageserver-protocol', 'vscode-jsonrpc', 'vscode-languageserver-types', 'semver', 'minimatch', 'brace-expansion', 'balanced-match']) {
    const folder = path.join(root, 'node_modules', name);
    if (!fs.existsSync(folder)) continue;
    const { version, license } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const file = fs.readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    const text = file ? fs.readFileSync(path.join(folder, file), 'utf8').trim() : '';
    parts.push(`\n## ${name} ${version} (${license})\n\n${text}\n`);
  }
  fs.writeFileSync(path.join(root, 'THIRD-PARTY.md'), `${parts.join('\n')}\n`);
}

installDependencies(findPython());
copyServer();
checkPure();
writeNotices();
fs.copyFileSync(path.join(project, 'LICENSE'), path.join(root, 'LICENSE'));
fs.mkdirSync(path.dirname(outfile), { recursive: true });
await bundle('src/extension.ts', 'dist/extension.js', true);
const vsce = path.join(root, 'node_modules', '@vscode', 'vsce', 'vsce');
run(process.execPath, [
  vsce, 'package', '--no-dependencies', '--no-rewrite-relative-links', '--allow-missing-repository', '--out', outfile,
  '--allow-package-all-secrets', // there are none; looking for them in each library takes minutes
]);
console.log(`${outfile}: ${(fs.statSync(outfile).size / 1e6).toFixed(1)} MB`);
