// The settings, read so that a workspace cannot set what may start a program.
import * as vscode from 'vscode';

export const SECTION = 'pallas-lsp';

interface Property {
  scope?: string;
}

/** What package.json says of each setting, by its name below the section. */
function properties(context: vscode.ExtensionContext): Record<string, Property> {
  const manifest = context.extension.packageJSON as {
    contributes: { configuration: { properties: Record<string, Property> } };
  };
  const found: Record<string, Property> = {};
  for (const [name, property] of Object.entries(manifest.contributes.configuration.properties)) {
    found[name.slice(SECTION.length + 1)] = property;
  }
  return found;
}

export class Settings {
  private readonly properties: Record<string, Property>;

  constructor(context: vscode.ExtensionContext) {
    this.properties = properties(context);
  }

  /**
   * One setting. Those of scope `machine` come from the user's settings alone: VS Code ignores a workspace's values for
   * them, and here they are not even looked at.
   */
  get(name: string, resource?: vscode.Uri): unknown {
    const configuration = vscode.workspace.getConfiguration(SECTION, resource ?? null);
    if (this.properties[name]?.scope === 'machine') {
      const values = configuration.inspect(name);
      return values?.globalValue ?? values?.defaultValue;
    }
    return configuration.get(name);
  }

  strings(name: string): string[] {
    const value = this.get(name);
    const items: unknown[] = Array.isArray(value) ? value : [value];
    return items.filter((item): item is string => typeof item === 'string' && item.trim() !== '');
  }

  /** All settings as the server wants them: nested by the dots in their names. */
  forServer(resource?: vscode.Uri): Record<string, unknown> {
    const all: Record<string, unknown> = {};
    for (const name of Object.keys(this.properties)) {
      const value = this.get(name, resource);
      const [first = name, second] = name.split('.');
      if (second === undefined) {
        all[first] = value;
      } else {
        all[first] = { ...(all[first] as Record<string, unknown> | undefined), [second]: value };
      }
    }
    return all;
  }
}
