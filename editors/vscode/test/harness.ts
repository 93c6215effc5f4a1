// Runs named tests one after the other in the extension host and prints a line for each.
import * as vscode from 'vscode';

export type Tests = Record<string, () => Promise<void>>;

export async function until<T>(what: string, look: () => T | undefined | false | null, ms = 180_000): Promise<T> {
  const end = Date.now() + ms;
  for (;;) {
    const value = look();
    if (value !== undefined && value !== false && value !== null) {
      return value;
    }
    if (Date.now() > end) {
      throw new Error(`timed out waiting for ${what}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export interface Api {
  status(): { text: string; detail: string; bar: string };
  serverProcess(): number | undefined;
}

export async function extension(): Promise<Api> {
  const found = vscode.extensions.getExtension<Api>('pallas-lsp.pallas-lsp');
  if (found === undefined) {
    throw new Error('the extension is not installed');
  }
  return found.activate();
}

export function inFolder(...names: string[]): vscode.Uri {
  const folder = vscode.workspace.workspaceFolders?.[0];
  if (folder === undefined) {
    throw new Error('no folder is open');
  }
  return vscode.Uri.joinPath(folder.uri, ...names);
}

export async function open(...names: string[]): Promise<vscode.TextEditor> {
  return vscode.window.showTextDocument(await vscode.workspace.openTextDocument(inFolder(...names)));
}

export function code(diagnostic: vscode.Diagnostic): string {
  return String(typeof diagnostic.code === 'object' ? diagnostic.code.value : diagnostic.code);
}

/** The diagnostics of ours in a document. */
export function ours(uri: vscode.Uri): vscode.Diagnostic[] {
  return vscode.languages.getDiagnostics(uri).filter((each) => each.source === 'pallas');
}

export async function runAll(tests: Tests): Promise<void> {
  console.log(`VS Code ${vscode.version}, remote: ${vscode.env.remoteName ?? 'no'}`);
  let passed = 0;
  let failed = 0;
  for (const [name, test] of Object.entries(tests)) {
    const began = Date.now();
    try {
      await test();
      passed++;
      console.log(`ok   ${name} (${Date.now() - began} ms)`);
    } catch (error) {
      failed++;
      for (const [uri, each] of vscode.languages.getDiagnostics()) {
        console.log(uri.path, JSON.stringify(each.map((found) => [code(found), found.range.start.line + 1, found.message])));
      }
      console.log(`status: ${JSON.stringify((await extension()).status())}`);
      console.log(`FAIL ${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      break; // what follows would only wait as long again
    }
  }
  console.log(`${passed} passed, ${failed} failed`);
  if (failed > 0) {
    throw new Error(`${failed} failed`);
  }
}
