// Acts in the window as a user does, with mouse and keyboard, and takes screenshots.
// usage: drive_window.cjs URL FOLDER SCENARIO SHOTS
const fs = require('node:fs');
const path = require('node:path');
const { open } = require('./browser.cjs');

const RULE = 'preinitialized-accumulator-outside-run-state';
const LONG = { timeout: 60000 };
const SHORT = { timeout: 30000 };

async function workbench(page, url, folder) {
  await page.goto(`${url}/?folder=${encodeURIComponent(folder)}`, { waitUntil: 'domcontentloaded' });
  await page.locator('.monaco-workbench').waitFor(LONG);
}

async function openFile(page, name) {
  await page.locator('.explorer-folders-view .monaco-list-row', { hasText: name }).dblclick(LONG);
  await page.locator('.monaco-editor .view-lines').first().waitFor(LONG);
}

async function palette(page, command) {
  await page.keyboard.press('F1');
  const input = page.locator('.quick-input-widget input').first();
  await input.waitFor(SHORT);
  await input.fill(`>${command}`);
  await page.locator('.quick-input-widget .monaco-list-row', { hasText: command }).first().click(SHORT);
}

const problems = (page) => page.locator('.markers-panel .monaco-list-row', { hasText: RULE });
const bar = (page, text) => page.locator('.statusbar-item', { hasText: text }).first();

const scenarios = {
  // The fault underlined, in the Problems panel, fixed through the lightbulb, gone.
  async fix(page, shot) {
    await openFile(page, 'faulty.py');
    await page.locator('.monaco-editor .squiggly-error').first().waitFor(LONG);
    await page.keyboard.press('Control+Shift+KeyM');
    await problems(page).first().dblclick(SHORT);
    await page.locator('.monaco-editor .view-line', { hasText: 'ACC.init' }).first().waitFor(SHORT);
    await bar(page, 'Pallas 1/1').waitFor(SHORT);
    await shot('problems');
    const line = page.locator('.monaco-editor .view-line', { hasText: 'ACC.init' }).first();
    await line.locator('span', { hasText: 'ACC' }).last().click();
    await page.locator('.monaco-editor [class*="lightbulb"]:visible, .monaco-editor [class*="light-bulb"]:visible').first().waitFor(SHORT);
    await page.keyboard.press('Control+Period');
    const item = page.locator('.action-widget .monaco-list-row', { hasText: 'Use pl.run_state' });
    await item.waitFor(SHORT);
    console.log('menu:', (await page.locator('.action-widget').first().innerText()).replace(/\s*\n+\s*/g, ' | '));
    await shot('quick-fix');
    await item.click();
    await page.locator('.monaco-editor .view-line', { hasText: 'pl.run_state(multiply)' }).first().waitFor(LONG);
    await page.keyboard.press('Control+KeyS');
    await problems(page).first().waitFor({ state: 'detached', timeout: 60000 });
    await page.locator('.monaco-editor .squiggly-error').first().waitFor({ state: 'detached', timeout: 10000 });
    await shot('fixed');
  },

  // The kernel's traced program beside its text, through the palette.
  async view(page, shot) {
    await openFile(page, 'correct.py');
    await bar(page, 'Pallas 1/1').waitFor(LONG);
    await page.locator('.monaco-editor .view-line', { hasText: 'pallas_call' }).first().click();
    await palette(page, 'Pallas LSP: Show Jaxpr of the Kernel');
    await page.locator('.tab', { hasText: '.jaxpr' }).first().waitFor(LONG);
    await page.locator('.monaco-editor .view-line', { hasText: 'program_id' }).first().waitFor(LONG);
    await shot('jaxpr');
  },

  // Nothing of an untrusted workspace runs until the user trusts it.
  async untrusted(page, shot) {
    await page.locator('.statusbar-item', { hasText: 'Restricted Mode' }).waitFor(LONG);
    await openFile(page, 'faulty.py');
    await bar(page, 'Pallas 0/1').waitFor(LONG);
    await page.keyboard.press('Control+Shift+KeyM');
    await page.waitForTimeout(3000);
    if (fs.existsSync(process.env.RAN)) throw new Error('code of the workspace was run');
    if (await problems(page).count()) throw new Error('a kernel was traced in a workspace that is not trusted');
    await shot('untrusted');
    await bar(page, 'Pallas 0/1').click();
    await page.locator('.workspace-trust-editor').first().waitFor(SHORT);
    await page.locator('.workspace-trust-editor').getByRole('button', { name: /^Trust$/ }).first().click(SHORT);
    await problems(page).first().waitFor(LONG);
    await shot('trusted');
  },

  // No Python: a message that says what to do, and a status that stays.
  async nopython(page, shot) {
    await openFile(page, 'faulty.py');
    const message = page.locator('.notification-list-item', { hasText: 'no Python 3.11 or later was found' });
    await message.first().waitFor(LONG);
    console.log('message:', (await message.first().innerText()).replace(/\s*\n+\s*/g, ' | '));
    await bar(page, 'Pallas').waitFor(SHORT);
    await shot('no-python');
    await message.getByRole('button', { name: 'Select Interpreter' }).click(SHORT);
    await page.locator('.settings-editor').first().waitFor(SHORT);
  },
};

async function main() {
  const [url, folder, scenario, shots] = process.argv.slice(2);
  const { page, close } = await open();
  const outside = new Set();
  page.on('request', (request) => {
    const { protocol, hostname } = new URL(request.url());
    if (/^(https?|wss?):$/.test(protocol) && !['127.0.0.1', 'localhost'].includes(hostname)) outside.add(hostname);
  });
  const shot = (name) => page.screenshot({ path: path.join(shots, `${name}.png`) });
  let failed = 0;
  try {
    await workbench(page, url, folder);
    await scenarios[scenario](page, shot);
    console.log(`${scenario}: done`);
    if (process.env.SHOW_OUTSIDE) console.log('outside:', [...outside]);
  } catch (error) {
    failed = 1;
    console.error(error);
    if (process.env.DUMP) console.log(await page.content());
    await shot(`failed-${scenario}`).catch(() => undefined);
  }
  await close();
  process.exit(failed);
}

main();
