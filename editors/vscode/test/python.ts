// With the Python extension: its selected interpreter is taken, and another selection counts at once.
import * as assert from 'node:assert';
import * as vscode from 'vscode';
import { extension, open, ours, runAll, until } from './harness';

interface Selecting {
  select(python: string): void;
}

const tests = {
  async 'the selected interpreter traces the kernels'() {
    const running = await extension();
    const editor = await open('faulty.py');
    await until('the diagnostic', () => ours(editor.document.uri).length === 1, 120_000);
    const information = await vscode.commands.executeCommand<string>('pallas-lsp.debugInformation');
    assert.match(information, /Python extension/);
    assert.ok(running.serverProcess() !== undefined);
  },

  async 'another selection counts at once'() {
    const running = await extension();
    const before = running.serverProcess();
    const editor = await open('faulty.py');
    const python = vscode.extensions.getExtension<Selecting>('ms-python.python')?.exports;
    assert.ok(python);
    python.select('/usr/bin/python3'); // it has no jax
    await until('the trouble', () => running.status().detail.includes('has no jax'));
    assert.match(running.status().bar, /error/);
    assert.notStrictEqual(running.serverProcess(), before);
    assert.ok(editor.document.uri.fsPath.endsWith('faulty.py'));
  },
};

export async function run(): Promise<void> {
  await runAll(tests);
}
