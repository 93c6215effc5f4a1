// The part of the Python extension's public interface that tells which interpreter is selected.
const fs = require('node:fs');
const path = require('node:path');
const vscode = require('vscode');

exports.activate = () => {
  let selected = JSON.parse(fs.readFileSync(path.join(__dirname, 'selected.json'), 'utf8')).python;
  const changed = new vscode.EventEmitter();
  return {
    select(python) {
      selected = python;
      changed.fire({ path: python });
    },
    environments: {
      getActiveEnvironmentPath: () => ({ id: selected, path: selected }),
      resolveEnvironment: async ({ path: python }) => ({ executable: { uri: vscode.Uri.file(python) } }),
      onDidChangeActiveEnvironmentPath: changed.event,
    },
  };
};
