// What to start: decided anew at each start, from the settings, the Python extension and the PATH.
import * as vscode from 'vscode';
import { expand, firstFitting, inFolders, isFile, isInside, ON_PATH, pythonsOnPath, type Candidate } from './interpreter';
import type { PythonExtension } from './pythonExtension';
import type { Settings } from './settings';

export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  /** One line for the log and the debug information. */
  readonly description: string;
}

/** No server can be started: what happened and what to do. */
export class CannotLaunch extends Error {
  constructor(
    message: string,
    readonly remedy: string,
  ) {
    super(message);
  }
}

export function localFolders(): string[] {
  return (vscode.workspace.workspaceFolders ?? [])
    .filter((folder) => folder.uri.scheme === 'file')
    .map((folder) => folder.uri.fsPath);
}

export class Launcher {
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly settings: Settings,
    private readonly python: PythonExtension,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  async find(): Promise<Launch> {
    const folders = localFolders();
    const programs = this.settings.strings('path').map((value) => expand(value, folders));
    const program = programs.find((each) => isFile(each) && this.mayStart(each, folders));
    if (program !== undefined) {
      return { command: program, args: ['serve'], description: `${program}, from the setting path` };
    }
    if (programs.length > 0) {
      this.log.warn(`The setting path names no program that can be started (${programs.join(', ')}); the bundled server is used.`);
    }
    const python = await firstFitting(await this.candidates(folders), (line) => {
      this.log.warn(line);
    });
    if (python === undefined) {
      throw new CannotLaunch(
        'no Python 3.11 or later was found to run the server',
        'Select an interpreter in the Python extension, or name one in the setting pallas-lsp.interpreter.',
      );
    }
    const strategy = this.settings.get('importStrategy') === 'fromEnvironment' ? 'fromEnvironment' : 'useBundled';
    const script = vscode.Uri.joinPath(this.context.extensionUri, 'bundled', 'launch.py').fsPath;
    return {
      command: python.path,
      args: ['-I', '-u', '-X', 'utf8', script, strategy, 'serve'],
      description: `Python ${python.version} at ${python.path} (${python.source}), ${strategy}`,
    };
  }

  /** The interpreter with the user's jax for a folder, where the user or the Python extension named one. */
  async interpreter(resource?: vscode.Uri): Promise<string | undefined> {
    const [named] = this.settings.strings('interpreter');
    if (named !== undefined) {
      return expand(named, localFolders());
    }
    // What is selected may lie in the workspace, so that it is started only in a trusted one.
    return vscode.workspace.isTrusted ? this.python.selected(resource) : undefined;
  }

  private async candidates(folders: readonly string[]): Promise<Candidate[]> {
    const found: Candidate[] = [];
    for (const value of this.settings.strings('interpreter')) {
      found.push({ path: expand(value, folders), source: 'setting interpreter' });
    }
    if (vscode.workspace.isTrusted) {
      const selected = await this.python.selected(vscode.workspace.workspaceFolders?.[0]?.uri);
      if (selected !== undefined) {
        found.push({ path: selected, source: 'Python extension' });
      }
      const trouble = this.python.takeTrouble();
      if (trouble !== undefined) {
        this.log.warn(`The Python extension did not say which interpreter is selected: ${trouble}`);
      }
      found.push(...inFolders(folders).map((path) => ({ path, source: 'workspace' })));
    }
    found.push(...pythonsOnPath(folders).map((path) => ({ path, source: ON_PATH })));
    return found.filter(({ path }) => this.mayStart(path, folders));
  }

  private mayStart(program: string, folders: readonly string[]): boolean {
    return vscode.workspace.isTrusted || !folders.some((folder) => isInside(program, folder));
  }
}
