// Finding a Python for the server: nothing of a workspace that is not trusted is ever started.
import { execFile } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';

export interface Python {
  readonly path: string;
  readonly version: string;
  readonly source: string;
}

export interface Candidate {
  readonly path: string;
  readonly source: string;
}

export const ON_PATH = 'PATH';
const OLDEST = [3, 11] as const;
const WINDOWS = process.platform === 'win32';
const IN_ENVIRONMENT = WINDOWS ? ['Scripts/python.exe', 'python.exe'] : ['bin/python', 'bin/python3'];
const NAMES = WINDOWS
  ? ['python.exe', 'python3.exe']
  : ['python3', 'python', ...[15, 14, 13, 12, 11].map((minor) => `python3.${minor}`)];
const FOLDERS = ['.venv', 'venv', 'env'];

/** A setting's value as the path of an interpreter: `~`, variables and environment folders are resolved. */
export function expand(value: string, folders: readonly string[]): string {
  let text = value.trim().replace(/^~(?=$|[/\\])/, os.homedir());
  text = text.replace(/\$\{workspaceFolder\}/g, () => folders[0] ?? '');
  text = text.replace(/\$\{env:(\w+)\}|\$(\w+)/g, (whole, named?: string, plain?: string) => {
    return process.env[named ?? plain ?? ''] ?? whole;
  });
  if (!path.isAbsolute(text)) {
    const inPath = /[/\\]/.test(text) ? undefined : onPath([text], folders)[0];
    text = inPath ?? path.join(folders[0] ?? process.cwd(), text);
  }
  return inEnvironment(text) ?? text;
}

function inEnvironment(folder: string): string | undefined {
  return IN_ENVIRONMENT.map((name) => path.join(folder, name)).find(isFile);
}

export function isFile(file: string): boolean {
  try {
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

/** The virtual environments at the top of workspace folders. */
export function inFolders(folders: readonly string[]): string[] {
  return folders.flatMap((folder) => FOLDERS.flatMap((name) => inEnvironment(path.join(folder, name)) ?? []));
}

/** Programs on the PATH, leaving out entries that are relative or lie in a workspace folder. */
export function onPath(names: readonly string[], folders: readonly string[]): string[] {
  const entries = (process.env.PATH ?? '').split(path.delimiter);
  const safe = entries.filter((entry) => path.isAbsolute(entry) && !folders.some((folder) => isInside(entry, folder)));
  return names.flatMap((name) => safe.map((entry) => path.join(entry, name)).filter(isFile));
}

export function pythonsOnPath(folders: readonly string[]): string[] {
  return onPath(NAMES, folders);
}

export function isInside(file: string, folder: string): boolean {
  const relative = path.relative(folder, file);
  return relative === '' || (!relative.startsWith('..') && !path.isAbsolute(relative));
}

/**
 * The first candidate that is a Python of a fitting version; the log hears why the others are not. Of those that were
 * only found on the PATH, one with jax comes first.
 */
export async function firstFitting(
  candidates: readonly Candidate[],
  log: (line: string) => void,
): Promise<Python | undefined> {
  const seen = new Set<string>();
  let withoutJax: Python | undefined;
  for (const { path: python, source } of candidates) {
    if (seen.has(python)) {
      continue;
    }
    seen.add(python);
    const answer = await ask(python);
    if ('trouble' in answer) {
      log(`${python} (${source}) cannot run the server: ${answer.trouble}`);
    } else if (isOld(answer.version)) {
      log(`${python} (${source}) cannot run the server: it is Python ${answer.version}, and 3.11 or later is needed`);
    } else if (source !== ON_PATH || answer.jax) {
      return { path: python, version: answer.version, source };
    } else {
      withoutJax ??= { path: python, version: answer.version, source };
    }
  }
  return withoutJax;
}

function isOld(answer: string): boolean {
  const [major = 0, minor = 0] = answer.split('.').map(Number);
  return major < OLDEST[0] || (major === OLDEST[0] && minor < OLDEST[1]);
}

type Answer = { version: string; jax: boolean } | { trouble: string };

async function ask(python: string): Promise<Answer> {
  const code =
    'import sys, importlib.util as u; print("Pallas %d.%d.%d" % sys.version_info[:3], u.find_spec("jax") is not None)';
  return new Promise((resolve) => {
    execFile(python, ['-I', '-c', code], { timeout: 15_000, cwd: os.tmpdir() }, (error, stdout) => {
      const match = /^Pallas (\d+\.\d+\.\d+) (True|False)/m.exec(stdout);
      if (match?.[1] === undefined) {
        resolve({ trouble: error?.message.split('\n')[0] ?? 'it did not say its version' });
      } else {
        resolve({ version: match[1], jax: match[2] === 'True' });
      }
    });
  });
}
