// A kernel's jaxpr, MLIR and PTX as read-only documents that follow the text they are of.
import * as vscode from 'vscode';
import { VIEWS, type ViewKind, type ViewsAnswer } from './protocol';
import type { Session } from './session';
import type { Status } from './status';

export const SCHEME = 'pallas-view';
const LANGUAGE: Record<ViewKind, string[]> = { jaxpr: ['haskell', 'plaintext'], mlir: ['mlir', 'llvm', 'plaintext'], ptx: ['ptx', 'plaintext'] };

interface Of {
  uri: string;
  line: number;
  kind: ViewKind;
}

export class Views implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  private readonly subscriptions: { dispose(): unknown }[];

  readonly onDidChange = this.changed.event;

  constructor(
    private readonly session: Session,
    status: Status,
  ) {
    this.subscriptions = [
      this.changed,
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      status.onDidChange((each) => {
        if (!each.busy) {
          this.refresh(each.uri);
        }
      }),
    ];
  }

  /** Open what the kernel launched at a line became; `uri` and `line` are those of a CodeLens or of the cursor. */
  async show(kind: ViewKind, uri?: string, line?: number): Promise<vscode.TextDocument | undefined> {
    const editor = vscode.window.activeTextEditor;
    const source = uri ?? editor?.document.uri.toString();
    if (source === undefined) {
      return undefined;
    }
    const answer = await this.ask({ uri: source, line: line ?? editor?.selection.active.line ?? 0, kind });
    if (answer.views.length === 0) {
      void vscode.window.showInformationMessage(`Pallas LSP: ${answer.reason}`);
      return undefined;
    }
    const query = JSON.stringify({ uri: source, line: answer.line, kind } satisfies Of);
    const name = `${answer.kernel || 'kernel'}.${kind}`.replaceAll('/', '.');
    const view = vscode.Uri.from({ scheme: SCHEME, path: `/${name}`, query });
    this.changed.fire(view);
    const document = await vscode.workspace.openTextDocument(view);
    await vscode.window.showTextDocument(document, { viewColumn: vscode.ViewColumn.Beside, preview: false, preserveFocus: true });
    const known = await vscode.languages.getLanguages();
    const language = LANGUAGE[kind].find((each) => known.includes(each));
    return language === undefined ? document : vscode.languages.setTextDocumentLanguage(document, language);
  }

  async provideTextDocumentContent(uri: vscode.Uri): Promise<string> {
    const answer = await this.ask(JSON.parse(uri.query) as Of);
    if (answer.views.length === 0) {
      return `// ${answer.reason}\n`;
    }
    return answer.views.map((view) => `// ${view.title}\n${view.text.trimEnd()}\n`).join('\n');
  }

  dispose(): void {
    for (const each of this.subscriptions) {
      each.dispose();
    }
  }

  private async ask(of: Of): Promise<ViewsAnswer> {
    const client = this.session.running;
    if (client === undefined) {
      return { kernel: '', line: of.line, views: [], reason: 'The server does not run; restart it with Pallas LSP: Restart Server.' };
    }
    return client.sendRequest<ViewsAnswer>(VIEWS, { textDocument: { uri: of.uri }, line: of.line, kind: of.kind });
  }

  private refresh(uri: string): void {
    const source = vscode.Uri.parse(uri).toString();
    for (const document of vscode.workspace.textDocuments) {
      if (document.uri.scheme === SCHEME) {
        const of = JSON.parse(document.uri.query) as Of;
        if (vscode.Uri.parse(of.uri).toString() === source) {
          this.changed.fire(document.uri);
        }
      }
    }
  }
}
