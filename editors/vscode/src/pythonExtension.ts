// The interpreter that the user has selected in the Python extension, through that extension's public API.
import * as vscode from 'vscode';

const ID = 'ms-python.python';

interface EnvironmentPath {
  readonly id: string;
  readonly path: string;
}

interface PythonApi {
  readonly environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): EnvironmentPath;
    resolveEnvironment(path: EnvironmentPath): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

export class PythonExtension implements vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscriptions: { dispose(): unknown }[] = [this.changed];
  private api: PythonApi | undefined;
  private trouble: string | undefined;

  /** The selection changed, or the extension was installed or removed. */
  readonly onDidChange = this.changed.event;

  constructor() {
    this.subscriptions.push(
      vscode.extensions.onDidChange(() => {
        const present = PythonExtension.isPresent();
        if (present !== (this.api !== undefined)) {
          this.api = undefined;
          this.changed.fire();
        }
      }),
    );
  }

  static isPresent(): boolean {
    return vscode.extensions.getExtension(ID) !== undefined;
  }

  /** The path of the selected interpreter, or undefined where the extension is missing or has none. */
  async selected(resource?: vscode.Uri): Promise<string | undefined> {
    try {
      const environments = (await this.connect())?.environments;
      if (environments === undefined) {
        return undefined;
      }
      const environment = await environments.resolveEnvironment(environments.getActiveEnvironmentPath(resource));
      return environment?.executable.uri?.fsPath;
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error);
      return undefined;
    }
  }

  /** Why the last question went unanswered, once. */
  takeTrouble(): string | undefined {
    const trouble = this.trouble;
    this.trouble = undefined;
    return trouble;
  }

  dispose(): void {
    for (const each of this.subscriptions) {
      each.dispose();
    }
  }

  private async connect(): Promise<PythonApi | undefined> {
    if (this.api === undefined) {
      const extension = vscode.extensions.getExtension<PythonApi>(ID);
      if (extension === undefined) {
        return undefined;
      }
      const api = await extension.activate();
      this.api = api;
      this.subscriptions.push(
        api.environments.onDidChangeActiveEnvironmentPath(() => {
          this.changed.fire();
        }),
      );
    }
    return this.api;
  }
}
