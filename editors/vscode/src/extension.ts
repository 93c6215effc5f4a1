// Entry point: makes the parts, joins them, and starts the server.
import * as vscode from 'vscode';
import { Commands } from './commands';
import { Launcher } from './launch';
import { PythonExtension } from './pythonExtension';
import { Session } from './session';
import { SECTION, Settings } from './settings';
import { Status } from './status';
import { Views } from './views';

/** What other extensions, and the tests, may look at. */
export interface Api {
  /** What the status item and the status bar show. */
  status(): { text: string; detail: string; bar: string };
  /** The process of the server, while there is one. */
  serverProcess(): number | undefined;
}

export function activate(context: vscode.ExtensionContext): Api {
  const log = vscode.window.createOutputChannel('Pallas LSP', { log: true });
  const settings = new Settings(context);
  const python = new PythonExtension();
  const status = new Status();
  const session = new Session(new Launcher(context, settings, python, log), settings, status, log);
  const views = new Views(session, status);
  context.subscriptions.push(log, python, status, views);
  new Commands(context, session, status, views, log).register();
  context.subscriptions.push(
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(SECTION)) {
        void session.reconsider();
      }
    }),
    python.onDidChange(() => {
      void session.interpreterChanged();
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(() => {
      void session.trusted();
    }),
    new vscode.Disposable(() => {
      running = undefined;
    }),
  );
  running = session;
  void session.restart();
  return { status: () => status.describe(), serverProcess: () => session.pid };
}

let running: Session | undefined;

export async function deactivate(): Promise<void> {
  await running?.stop();
}
