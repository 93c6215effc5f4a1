// Runs a test module inside VS Code's extension host, beside the installed extension.
// usage: in_extension_host.cjs URL FOLDER TESTS.js EMPTY_EXTENSION
const { open } = require('./browser.cjs');

async function main() {
  const [url, folder, tests, empty] = process.argv.slice(2);
  const { page, close } = await open();
  let exit;
  const ended = new Promise((resolve) => { exit = resolve; });
  await page.exposeFunction('codeAutomationLog', (type, args) => { if (type !== 'debug') console.log(...args); });
  await page.exposeFunction('codeAutomationExit', (code) => exit(code));
  const remote = (file) => `vscode-remote://${new URL(url).host}${file}`;
  const payload = [
    ['extensionDevelopmentPath', remote(empty)], // without one the tests are not run
    ['extensionTestsPath', remote(tests)],
    ['skipWelcome', 'true'],
  ];
  const query = `folder=${encodeURIComponent(folder)}&payload=${encodeURIComponent(JSON.stringify(payload))}`;
  await page.goto(`${url}/?${query}`);
  const limit = new Promise((resolve) => { setTimeout(() => resolve('it took too long'), Number(process.env.EXTENSION_LIMIT_MS)); });
  const code = await Promise.race([ended, limit]);
  if (code !== 0 && process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/extension-host.png` });
  console.log('exit', code);
  await close();
  process.exit(code === 0 ? 0 : 1);
}

main().catch((error) => { console.error(error); process.exit(1); });
