// The commands of the palette. Those that the server carries out are sent to it by the same name.
import * as vscode from 'vscode';
import type { Session } from './session';
import type { Status } from './status';
import type { Views } from './views';

interface Finished {
  message?: string;
}

export class Commands {
  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly session: Session,
    private readonly status: Status,
    private readonly views: Views,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  register(): void {
    const handlers: Record<string, (...args: never[]) => unknown> = {
      restart: () => this.session.restart(),
      showLog: () => {
        this.log.show();
      },
      checkFile: () => this.checkFile(),
      checkWorkspace: () => this.tell('checkWorkspace', 'Checking the workspace'),
      confirm: () => this.onFile('confirm', 'Confirming on the GPU'),
      cancel: () => this.ask('cancel'),
      learnShapes: () => this.onFile('learnShapes', 'Looking for shapes'),
      explainRule: (rule?: string) => this.explainRule(rule),
      trust: () => this.trust(),
      debugInformation: () => this.debugInformation(),
      showJaxpr: (uri?: string, line?: number) => this.views.show('jaxpr', uri, line),
      showMlir: (uri?: string, line?: number) => this.views.show('mlir', uri, line),
      showPtx: (uri?: string, line?: number) => this.views.show('ptx', uri, line),
    };
    for (const [name, handler] of Object.entries(handlers)) {
      this.context.subscriptions.push(vscode.commands.registerCommand(`pallas-lsp.${name}`, handler));
    }
  }

  /** Ask the server to carry out a command; says why that is not possible. */
  private async ask(name: string, ...args: unknown[]): Promise<unknown> {
    const client = this.session.running;
    if (client === undefined) {
      void vscode.window.showWarningMessage(
        'Pallas LSP: the server does not run. Restart it with Pallas LSP: Restart Server; the log says why it ended.',
      );
      return undefined;
    }
    try {
      return await client.sendRequest('workspace/executeCommand', { command: `pallas-lsp.${name}`, arguments: args });
    } catch (error) {
      void vscode.window.showErrorMessage(`Pallas LSP: ${error instanceof Error ? error.message : String(error)}`);
      return undefined;
    }
  }

  /** Ask with a progress notification, and show the sentence that the server answers with. */
  private async tell(name: string, title: string, ...args: unknown[]): Promise<unknown> {
    const answer = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Window, title: `Pallas LSP: ${title}` },
      () => this.ask(name, ...args),
    );
    const message = (answer as Finished | null | undefined)?.message;
    if (message) {
      void vscode.window.showInformationMessage(`Pallas LSP: ${message}`);
    }
    return answer;
  }

  private current(): vscode.Uri | undefined {
    const uri = vscode.window.activeNotebookEditor?.notebook.uri ?? vscode.window.activeTextEditor?.document.uri;
    if (uri === undefined) {
      void vscode.window.showInformationMessage('Pallas LSP: open a Python file first.');
    }
    return uri;
  }

  private async onFile(name: string, title: string): Promise<unknown> {
    const uri = this.current();
    return uri === undefined ? undefined : this.tell(name, title, uri.toString());
  }

  private async checkFile(): Promise<unknown> {
    const uri = this.current();
    if (uri === undefined) {
      return undefined;
    }
    const answer = await this.ask('checkFile', uri.toString());
    const status = this.status.of(uri);
    if (status !== undefined) {
      vscode.window.setStatusBarMessage(`Pallas LSP: ${status.message}`, 5000);
    }
    return answer;
  }

  private async explainRule(rule?: string): Promise<unknown> {
    const name = rule ?? (await this.pickRule());
    if (name === undefined) {
      return undefined;
    }
    const page = await this.ask('explainRule', name, { show: false });
    if (typeof page === 'string') {
      const document = await vscode.workspace.openTextDocument({ language: 'markdown', content: page });
      await vscode.commands.executeCommand('markdown.showPreview', document.uri);
    }
    return page;
  }

  private async pickRule(): Promise<string | undefined> {
    const editor = vscode.window.activeTextEditor;
    const here = editor === undefined ? [] : vscode.languages.getDiagnostics(editor.document.uri);
    const found = here
      .filter((each) => each.source === 'pallas' && editor?.selection.intersection(each.range) !== undefined)
      .map((each) => (typeof each.code === 'object' ? String(each.code.value) : String(each.code)));
    if (found.length === 1) {
      return found[0];
    }
    const rules = await this.ask('rules');
    const items = (Array.isArray(rules) ? (rules as { name: string; summary: string }[]) : []).map((each) => ({
      label: each.name,
      detail: each.summary,
    }));
    return (await vscode.window.showQuickPick(items, { placeHolder: 'Rule to explain', matchOnDetail: true }))?.label;
  }

  private async trust(): Promise<void> {
    if (vscode.workspace.isTrusted) {
      void vscode.window.showInformationMessage('Pallas LSP: this workspace is trusted; its kernels are traced.');
    } else {
      await vscode.commands.executeCommand('workbench.trust.manage');
    }
  }

  private async debugInformation(): Promise<string> {
    const manifest = this.context.extension.packageJSON as { version: string };
    const answer = this.session.running === undefined ? 'null' : await this.ask('debugInformation');
    const information = {
      extension: manifest.version,
      vscode: vscode.version,
      remote: vscode.env.remoteName ?? null,
      trusted: vscode.workspace.isTrusted,
      launch: this.session.launch ?? null,
      status: this.status.describe(),
      server: JSON.parse(typeof answer === 'string' ? answer : 'null') as unknown,
    };
    const content = JSON.stringify(information, null, 2);
    const document = await vscode.workspace.openTextDocument({ language: 'json', content });
    await vscode.window.showTextDocument(document);
    return content;
  }
}
