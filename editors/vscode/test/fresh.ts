// A fresh VS Code with the .vsix and a Python with jax on the PATH: no setting, no other extension.
import * as assert from 'node:assert';
import { execFileSync } from 'node:child_process';
import * as vscode from 'vscode';
import { code, extension, inFolder, open, ours, runAll, until } from './harness';

const RULE = 'preinitialized-accumulator-outside-run-state';
const FAULTY = 'plgpu.ACC.init(c)';

async function faulty(): Promise<{ editor: vscode.TextEditor; diagnostic: vscode.Diagnostic }> {
  const editor = await open('faulty.py');
  const uri = editor.document.uri;
  const diagnostic = await until('the diagnostic', () => ours(uri).find((each) => code(each) === RULE), 120_000);
  return { editor, diagnostic };
}

function children(of: number): number[] {
  const rows = execFileSync('ps', ['-eo', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  const pairs = rows.map((row) => row.trim().split(/\s+/).map(Number) as [number, number]);
  const direct = pairs.filter(([, parent]) => parent === of).map(([pid]) => pid);
  return direct.flatMap((pid) => [pid, ...children(pid)]);
}

async function restore(editor: vscode.TextEditor, original: string): Promise<void> {
  const whole = new vscode.Range(0, 0, editor.document.lineCount, 0);
  await editor.edit((edit) => {
    edit.replace(whole, original);
  });
  await editor.document.save();
}

async function actions(uri: vscode.Uri, range: vscode.Range): Promise<vscode.CodeAction[]> {
  return vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', uri, range, 'quickfix', 5);
}

const tests = {
  async 'a fault is underlined exactly, with a link and related places'() {
    const { editor, diagnostic } = await faulty();
    assert.strictEqual(editor.document.getText(diagnostic.range), FAULTY);
    assert.strictEqual(diagnostic.severity, vscode.DiagnosticSeverity.Error);
    assert.ok(typeof diagnostic.code === 'object', 'no link to the page of the rule');
    const page = await vscode.workspace.fs.readFile(diagnostic.code.target);
    assert.match(Buffer.from(page).toString(), new RegExp(`^# ${RULE}`));
    await until('the status', () => running.status().text.includes('checked'));
  },

  async 'a quick fix of the lightbulb is applied and the diagnostic vanishes'() {
    const { editor, diagnostic } = await faulty();
    const uri = editor.document.uri;
    const original = editor.document.getText();
    // Preferred as soon as it was tried, which the first request for actions begins.
    let offered: vscode.CodeAction[] = [];
    let fix: vscode.CodeAction | undefined;
    for (const end = Date.now() + 90_000; fix === undefined && Date.now() < end; ) {
      offered = await actions(uri, diagnostic.range);
      fix = offered.find((each) => each.isPreferred === true && each.title.startsWith('Use pl.run_state'));
    }
    assert.ok(fix?.edit, `no preferred fix among: ${offered.map((each) => each.title).join('; ')}`);
    assert.ok(offered.some((each) => each.title === `Silence ${RULE} on this line`));
    assert.ok(offered.some((each) => each.title === `Explain ${RULE}`));
    assert.ok(await vscode.workspace.applyEdit(fix.edit));
    assert.match(editor.document.getText(), /pl\.run_state\(multiply\)\(plgpu\.ACC\.init\(c\)\)/);
    await until('the diagnostic to vanish', () => ours(uri).length === 0, 90_000);
    await restore(editor, original);
    await faulty();
  },

  async 'all safe fixes on save'() {
    const { editor } = await faulty();
    const original = editor.document.getText();
    const configuration = vscode.workspace.getConfiguration('editor');
    await configuration.update('codeActionsOnSave', { 'source.fixAll.pallas': 'explicit' }, true);
    try {
      await editor.edit((edit) => {
        edit.insert(new vscode.Position(0, 0), '# edited\n');
      });
      await editor.document.save();
      assert.match(editor.document.getText(), /pl\.run_state\(multiply\)/);
      await until('the diagnostic to vanish', () => ours(editor.document.uri).length === 0);
    } finally {
      await configuration.update('codeActionsOnSave', undefined, true);
      await restore(editor, original);
    }
    await faulty();
  },

  async 'quick edits end with the diagnostics of the last text'() {
    const { editor } = await faulty();
    const original = editor.document.getText();
    for (let i = 0; i < 40; i++) {
      await editor.edit(
        (edit) => {
          edit.insert(new vscode.Position(1, 0), `x${i} = (\n`.slice(0, i % 2 ? undefined : -1));
        },
        { undoStopBefore: false, undoStopAfter: false },
      );
    }
    await restore(editor, `# one line more\n${original}`);
    const uri = editor.document.uri;
    const moved = await until('the moved diagnostic', () => {
      const found = ours(uri);
      return found.length === 1 && found[0] !== undefined && editor.document.getText(found[0].range) === FAULTY && found[0];
    });
    assert.strictEqual(code(moved), RULE);
    await restore(editor, original);
    await faulty();
  },

  async 'a setting counts without a restart'() {
    const { editor } = await faulty();
    const before = (await extension()).serverProcess();
    const configuration = vscode.workspace.getConfiguration('pallas-lsp');
    await configuration.update('rules', { [RULE]: 'warning' }, true);
    const severity = (): vscode.DiagnosticSeverity | undefined => ours(editor.document.uri)[0]?.severity;
    await until('the warning', () => severity() === vscode.DiagnosticSeverity.Warning);
    await configuration.update('rules', undefined, true);
    await until('the error', () => severity() === vscode.DiagnosticSeverity.Error);
    assert.strictEqual((await extension()).serverProcess(), before);
  },

  async 'a setting of the workspace cannot say what is started'() {
    const before = (await extension()).serverProcess();
    const settings = inFolder('.vscode', 'settings.json');
    const evil = { 'pallas-lsp.path': ['/bin/false'], 'pallas-lsp.interpreter': ['/bin/false'], 'pallas-lsp': { path: ['/bin/false'] } };
    await vscode.workspace.fs.writeFile(settings, Buffer.from(JSON.stringify(evil)));
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await vscode.commands.executeCommand('pallas-lsp.restart');
    await faulty();
    assert.notStrictEqual((await extension()).serverProcess(), before);
    await vscode.workspace.fs.delete(settings);
  },

  async 'the server is restarted'() {
    const { editor } = await faulty();
    const before = (await extension()).serverProcess();
    await vscode.commands.executeCommand('pallas-lsp.restart');
    const after = await until('another server', () => running.serverProcess());
    assert.notStrictEqual(after, before);
    await until('the diagnostic', () => ours(editor.document.uri).length === 1);
  },

  async 'a killed worker is replaced'() {
    const { editor } = await faulty();
    const server = (await extension()).serverProcess();
    assert.ok(server !== undefined);
    const workers = children(server);
    assert.ok(workers.length > 0, 'the server has no worker');
    for (const pid of workers) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // it went with its parent
      }
    }
    const original = editor.document.getText();
    await restore(editor, `# a line more\n${original}`);
    await until('the diagnostic on the next line', () => {
      const [found] = ours(editor.document.uri);
      return found !== undefined && editor.document.getText(found.range) === FAULTY && children(server).length > 0;
    });
    assert.strictEqual((await extension()).serverProcess(), server);
    await restore(editor, original);
    await faulty();
  },

  async 'a killed server is started again'() {
    const { editor } = await faulty();
    const before = (await extension()).serverProcess();
    assert.ok(before !== undefined);
    process.kill(before, 'SIGKILL');
    await until('another server', () => running.serverProcess() !== undefined && running.serverProcess() !== before);
    const original = editor.document.getText();
    await restore(editor, `# a line more\n${original}`);
    await until('the diagnostic', () => {
      const [found] = ours(editor.document.uri);
      return found !== undefined && editor.document.getText(found.range) === FAULTY && running.status().text.includes('checked');
    });
    await restore(editor, original);
    await faulty();
  },

  async 'a correct kernel has no diagnostic'() {
    const editor = await open('correct.py');
    await until('the status', () => running.status().text.includes('1 checked'));
    assert.deepStrictEqual(ours(editor.document.uri), []);
    assert.match(running.status().bar, /Pallas 1\/1/);
  },

  async 'a launch says what it was checked with, and shows its jaxpr and MLIR'() {
    const editor = await open('correct.py');
    const uri = editor.document.uri;
    let lenses: vscode.CodeLens[] = [];
    for (const end = Date.now() + 90_000; lenses.length < 3 && Date.now() < end; ) {
      lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>('vscode.executeCodeLensProvider', uri, 10);
    }
    assert.match(lenses[0]?.command?.title ?? '', /^checked with f16\[256,1000\] from /);
    for (const [name, pattern] of [
      ['jaxpr', /program_id/],
      ['MLIR', /tt\.func/],
    ] as const) {
      const lens = lenses.find((each) => each.command?.title === name);
      assert.ok(lens?.command, `no lens ${name}`);
      const [source, line] = lens.command.arguments as [string, number];
      const view = await vscode.commands.executeCommand<vscode.TextDocument>(lens.command.command, source, line);
      assert.strictEqual(view.uri.scheme, 'pallas-view');
      assert.match(view.getText(), pattern);
    }
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
  },

  async 'the whole workspace is checked'() {
    const uri = inFolder('closed.py');
    await vscode.workspace.fs.copy(inFolder('faulty.py'), uri);
    const answer = await vscode.commands.executeCommand<{ files: number; findings: number; message: string }>(
      'pallas-lsp.checkWorkspace',
    );
    assert.deepStrictEqual([answer.files, answer.findings], [3, 2], answer.message);
    await until('the diagnostic of the closed file', () => ours(uri).length === 1);
    await vscode.workspace.fs.delete(uri);
    await until('the diagnostic of the deleted file to vanish', () => ours(uri).length === 0);
  },

  async 'shapes are learned again, and there is no GPU to confirm on'() {
    await faulty();
    const learned = await vscode.commands.executeCommand<{ message: string }>('pallas-lsp.learnShapes');
    assert.match(learned.message, /1 of 1 kernel launches reached/);
    const confirmed = await vscode.commands.executeCommand<{ message: string }>('pallas-lsp.confirm');
    assert.match(confirmed.message, /no GPU|confirmed on|nothing to confirm/);
  },

  async 'a notebook has its diagnostics in its cells, and fixes too'() {
    const notebook = await vscode.workspace.openNotebookDocument(inFolder('notebook.ipynb'));
    await vscode.window.showNotebookDocument(notebook);
    const cell = notebook.cellAt(2).document;
    const diagnostic = await until('the diagnostic in its cell', () => ours(cell.uri)[0], 90_000);
    assert.strictEqual(cell.getText(diagnostic.range), FAULTY);
    let fix: vscode.CodeAction | undefined;
    for (const end = Date.now() + 90_000; fix === undefined && Date.now() < end; ) {
      const offered = await actions(cell.uri, diagnostic.range);
      fix = offered.find((each) => each.edit !== undefined && each.title.startsWith('Use pl.run_state'));
    }
    assert.ok(fix?.edit, 'no fix in the notebook');
    assert.ok(await vscode.workspace.applyEdit(fix.edit));
    assert.match(cell.getText(), /pl\.run_state\(multiply\)\(plgpu\.ACC\.init\(c\)\)/);
    await until('the diagnostic to vanish', () => ours(cell.uri).length === 0);
    await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
  },

  async 'debug information and the pages of rules'() {
    await faulty();
    const information = JSON.parse(await vscode.commands.executeCommand<string>('pallas-lsp.debugInformation')) as {
      launch: { description: string };
      server: { documents: { worker?: { jax: string } }[] };
    };
    assert.match(information.launch.description, /useBundled/);
    assert.ok(information.server.documents.some((each) => each.worker?.jax !== undefined));
    const page = await vscode.commands.executeCommand<string>('pallas-lsp.explainRule', RULE);
    assert.match(page, /## What it does/);
  },
};

let running: Awaited<ReturnType<typeof extension>>;

export async function run(): Promise<void> {
  running = await extension();
  await runAll(tests);
}
