// The life of the server: started, restarted when what starts it changes, and not restarted for ever when it fails.
import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  type ConfigurationParams,
  type ErrorHandler,
  type LanguageClientOptions,
} from 'vscode-languageclient/node';
import { CannotLaunch, type Launch, type Launcher } from './launch';
import { STATUS, TRUST_CHANGED, type DocumentStatus } from './protocol';
import { SECTION, type Settings } from './settings';
import { SELECTOR, type Status } from './status';

const SETTINGS_CHANGED = 'workspace/didChangeConfiguration';
const RESTARTS = 3;
const WITHIN_MS = 180_000;

export class Session implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private launched: Launch | undefined;
  private queue: Promise<void> = Promise.resolve();
  private deaths: number[] = [];
  private complained: string | undefined;

  constructor(
    private readonly launcher: Launcher,
    private readonly settings: Settings,
    private readonly status: Status,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  get running(): LanguageClient | undefined {
    return this.client?.isRunning() === true ? this.client : undefined;
  }

  get launch(): Launch | undefined {
    return this.launched;
  }

  /** Start or restart, after what was asked for earlier is done. */
  restart(): Promise<void> {
    this.deaths = [];
    return this.next(async () => {
      await this.stopNow();
      await this.startNow();
    });
  }

  /** Something that decides what is started has changed: restart the server where another one would be started now.
   * One that goes on is told with `tell`; of settings it hears from the client anyway. */
  reconsider(tell?: (client: LanguageClient) => Promise<void>): Promise<void> {
    return this.next(async () => {
      const wanted = await this.wanted();
      if (wanted !== undefined && this.running !== undefined && same(wanted, this.launched)) {
        await tell?.(this.running);
      } else if (wanted !== undefined || this.client !== undefined || this.settings.get('enable') !== false) {
        await this.stopNow();
        await this.startNow();
      }
    });
  }

  /** Another interpreter was selected: the server asks for the settings again, which name it. */
  interpreterChanged(): Promise<void> {
    return this.reconsider((client) => client.sendNotification(SETTINGS_CHANGED, { settings: null }));
  }

  /** The workspace became trusted: more interpreters may be started, and the server may run code. */
  trusted(): Promise<void> {
    return this.reconsider(async (client) => {
      await client.sendNotification(TRUST_CHANGED, { trusted: true });
      await client.sendNotification(SETTINGS_CHANGED, { settings: null });
    });
  }

  stop(): Promise<void> {
    return this.next(() => this.stopNow());
  }

  dispose(): void {
    void this.stop();
  }

  /** The process of the server, for tests and the debug information. */
  get pid(): number | undefined {
    return this.client?.serverProcess?.pid;
  }

  private next(work: () => Promise<void>): Promise<void> {
    const done = this.queue.then(work).catch((error: unknown) => {
      this.failed(error);
    });
    this.queue = done;
    return done;
  }

  private async wanted(): Promise<Launch | undefined> {
    try {
      return this.settings.get('enable') === false ? undefined : await this.launcher.find();
    } catch {
      return undefined; // the start that follows says why
    }
  }

  private async startNow(): Promise<void> {
    if (this.settings.get('enable') === false) {
      this.status.set({ kind: 'stopped' });
      return;
    }
    this.status.set({ kind: 'starting' });
    const launch = await this.launcher.find();
    this.log.info(`Starting the server: ${launch.description}`);
    const client = new LanguageClient(
      SECTION,
      'Pallas LSP',
      { command: launch.command, args: [...launch.args], options: { shell: false } },
      this.clientOptions(),
    );
    client.onNotification(STATUS, (status: DocumentStatus) => {
      this.status.document(status);
    });
    this.client = client;
    this.launched = launch;
    await client.start();
    this.complained = undefined;
    this.status.set({ kind: 'running' });
  }

  private async stopNow(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    this.launched = undefined;
    this.status.set({ kind: 'stopped' });
    if (client !== undefined) {
      try {
        await client.dispose(5000);
      } catch (error) {
        this.log.warn(`The server did not end as it should: ${text(error)}`);
      }
    }
  }

  private failed(error: unknown): void {
    const [message, remedy] =
      error instanceof CannotLaunch
        ? [error.message, error.remedy]
        : [`the server could not be started: ${text(error)}`, 'The log says more; correct the setting pallas-lsp.interpreter or report this.'];
    this.client = undefined;
    this.log.error(`${message}. ${remedy}`);
    this.status.set({ kind: 'failed', message: capital(message), remedy });
    if (this.complained !== message) {
      this.complained = message; // once, until a start succeeds
      void this.complain(`Pallas LSP: ${message}. ${remedy}`);
    }
  }

  private async complain(message: string): Promise<void> {
    const select = 'Select Interpreter';
    const show = 'Show Log';
    const answer = await vscode.window.showErrorMessage(message, select, show);
    if (answer === show) {
      this.log.show();
    } else if (answer === select) {
      await vscode.commands.executeCommand(
        ...((vscode.extensions.getExtension('ms-python.python') === undefined
          ? ['workbench.action.openSettings', 'pallas-lsp.interpreter']
          : ['python.setInterpreter']) as [string, ...unknown[]]),
      );
    }
  }

  private clientOptions(): LanguageClientOptions {
    return {
      documentSelector: SELECTOR as LanguageClientOptions['documentSelector'] & object,
      outputChannel: this.log,
      traceOutputChannel: this.log,
      initializationOptions: { trusted: vscode.workspace.isTrusted, status: true, commands: false },
      errorHandler: this.errorHandler(),
      markdown: { isTrusted: false },
      middleware: {
        workspace: {
          configuration: (params: ConfigurationParams) => Promise.all(params.items.map((item) => this.answer(item.scopeUri))),
        },
      },
    };
  }

  private async answer(scope: string | undefined): Promise<unknown> {
    const resource = scope === undefined ? undefined : vscode.Uri.parse(scope);
    const interpreter = await this.launcher.interpreter(resource);
    return { ...this.settings.forServer(resource), interpreter: interpreter === undefined ? [] : [interpreter] };
  }

  private errorHandler(): ErrorHandler {
    return {
      error: () => ({ action: ErrorAction.Continue, handled: true }),
      closed: () => {
        const now = Date.now();
        this.deaths = [...this.deaths.filter((time) => now - time < WITHIN_MS), now];
        if (this.deaths.length <= RESTARTS) {
          this.log.warn('The server ended by itself and is started again.');
          this.status.set({ kind: 'starting' });
          void this.whenRunning();
          return { action: CloseAction.Restart, handled: true };
        }
        this.failed(
          new CannotLaunch(
            `the server ended ${this.deaths.length} times within ${WITHIN_MS / 60_000} minutes and is not started again`,
            'The log says why; restart it with the command Pallas LSP: Restart Server.',
          ),
        );
        return { action: CloseAction.DoNotRestart, handled: true };
      },
    };
  }

  /** The client restarts the server by itself: say so once it is there. */
  private async whenRunning(): Promise<void> {
    const client = this.client;
    for (let tries = 0; tries < 300 && client !== undefined && client === this.client; tries++) {
      await new Promise((resolve) => setTimeout(resolve, 100));
      if (client.isRunning()) {
        this.status.set({ kind: 'running' });
        return;
      }
    }
  }
}

function same(one: Launch, other: Launch | undefined): boolean {
  return JSON.stringify([one.command, one.args]) === JSON.stringify([other?.command, other?.args]);
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function capital(sentence: string): string {
  return sentence.charAt(0).toUpperCase() + sentence.slice(1);
}
