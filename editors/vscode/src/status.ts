// The language status item and the status bar entry: how far the kernels of the file on the screen were checked.
import * as vscode from 'vscode';
import type { DocumentStatus, Problem } from './protocol';

export const SELECTOR: vscode.DocumentSelector = [
  { language: 'python', scheme: 'file' },
  { language: 'python', scheme: 'untitled' },
  { language: 'python', scheme: 'vscode-notebook-cell' },
];

type ServerState =
  | { kind: 'starting' | 'running' | 'stopped' }
  | { kind: 'failed'; message: string; remedy: string };

export class Status implements vscode.Disposable {
  private readonly item = vscode.languages.createLanguageStatusItem('pallas-lsp.status', SELECTOR);
  private readonly bar = vscode.window.createStatusBarItem('pallas-lsp.bar', vscode.StatusBarAlignment.Right, 90);
  private readonly documents = new Map<string, DocumentStatus>();
  private readonly changed = new vscode.EventEmitter<DocumentStatus>();
  private readonly subscriptions: { dispose(): unknown }[];
  private server: ServerState = { kind: 'stopped' };

  readonly onDidChange = this.changed.event;

  constructor() {
    this.item.name = 'Pallas LSP';
    this.bar.name = 'Pallas LSP';
    this.subscriptions = [
      this.item,
      this.bar,
      this.changed,
      vscode.window.onDidChangeActiveTextEditor(() => {
        this.show();
      }),
      vscode.window.onDidChangeActiveNotebookEditor(() => {
        this.show();
      }),
    ];
    this.show();
  }

  set(server: ServerState): void {
    this.server = server;
    if (server.kind !== 'running') {
      this.documents.clear();
    }
    this.show();
  }

  document(status: DocumentStatus): void {
    this.documents.set(vscode.Uri.parse(status.uri).toString(), status);
    this.changed.fire(status);
    this.show();
  }

  of(uri: vscode.Uri): DocumentStatus | undefined {
    return this.documents.get(uri.toString());
  }

  /** For tests and bug reports: what the user sees. */
  describe(): { text: string; detail: string; bar: string } {
    return { text: this.item.text, detail: this.item.detail ?? '', bar: this.bar.text };
  }

  dispose(): void {
    for (const each of this.subscriptions) {
      each.dispose();
    }
  }

  private current(): DocumentStatus | undefined {
    const notebook = vscode.window.activeNotebookEditor?.notebook.uri;
    const uri = notebook ?? vscode.window.activeTextEditor?.document.uri;
    return uri === undefined ? undefined : this.of(uri);
  }

  private show(): void {
    if (this.server.kind === 'failed') {
      this.fill('Pallas LSP does not run', `${this.server.message}. ${this.server.remedy}`, 'error', false);
    } else if (this.server.kind === 'starting') {
      this.fill('Pallas LSP starts', '', 'ok', true);
    } else if (this.server.kind === 'stopped') {
      this.fill('Pallas LSP is off', 'It does not run.', 'ok', false);
    } else {
      const status = this.current();
      if (status === undefined) {
        this.fill('Pallas LSP runs', '', 'ok', false);
      } else {
        const detail = status.problems.map((each) => sentence(each)).join(' ');
        this.fill(status.message || 'Checking', detail, status.health, status.busy);
      }
    }
    this.showBar();
  }

  private fill(text: string, detail: string, health: DocumentStatus['health'], busy: boolean): void {
    this.item.text = text;
    this.item.detail = detail;
    this.item.busy = busy;
    this.item.severity = {
      ok: vscode.LanguageStatusSeverity.Information,
      warning: vscode.LanguageStatusSeverity.Warning,
      error: vscode.LanguageStatusSeverity.Error,
    }[health];
    this.item.command = this.command(health);
  }

  private command(health: DocumentStatus['health']): vscode.Command {
    const untrusted = this.current()?.problems.some((each) => each.kind === 'not-trusted') === true;
    if (untrusted) {
      return { command: 'pallas-lsp.trust', title: 'Trust' };
    }
    if (this.server.kind === 'failed') {
      return { command: 'pallas-lsp.restart', title: 'Restart' };
    }
    return health === 'ok'
      ? { command: 'pallas-lsp.checkFile', title: 'Check again' }
      : { command: 'pallas-lsp.showLog', title: 'Show log' };
  }

  private showBar(): void {
    const status = this.current();
    const found = status?.kernels?.found ?? 0;
    const failed = this.server.kind === 'failed';
    if (!failed && found === 0 && status?.health !== 'error') {
      this.bar.hide();
      return;
    }
    const reached = status?.kernels?.reached ?? 0;
    const trouble = failed || status?.health === 'error' ? '$(error)' : status?.health === 'warning' ? '$(warning)' : '$(circuit-board)';
    const icon = status?.busy === true && !failed ? '$(sync~spin)' : trouble;
    this.bar.text = failed ? '$(error) Pallas' : `${icon} Pallas ${reached}/${found}`;
    this.bar.accessibilityInformation = { label: `Pallas LSP: ${this.item.text}` };
    this.bar.tooltip = this.tooltip(status);
    this.bar.command = this.item.command;
    this.bar.show();
  }

  private tooltip(status: DocumentStatus | undefined): vscode.MarkdownString {
    const lines = [`**Pallas LSP**: ${this.item.text}`];
    if (this.server.kind === 'failed') {
      lines.push(this.item.detail ?? '');
    }
    if (status !== undefined) {
      if (status.stage !== undefined) {
        lines.push(`Stage reached: ${status.stage}`);
      }
      if (status.gpu !== undefined) {
        const verdicts = Object.entries(status.verdicts ?? {}).map(([verdict, count]) => `${count} ${verdict}`);
        lines.push(`GPU: ${status.gpu ?? 'none found'}${verdicts.length > 0 ? `; ${verdicts.join(', ')}` : ''}`);
      }
      lines.push(...status.problems.map((each) => `- ${sentence(each)}`));
    }
    const text = new vscode.MarkdownString(lines.filter(Boolean).join('\n\n'));
    text.isTrusted = false;
    return text;
  }
}

function sentence(problem: Problem): string {
  return `${problem.message}. ${problem.remedy}`.trim();
}
