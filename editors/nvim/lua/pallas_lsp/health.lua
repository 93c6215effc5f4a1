-- :checkhealth pallas_lsp
local config = require('pallas_lsp.config')

local M = {}

local function run(command)
  local ok, done = pcall(function()
    return vim.system(command, { text = true, timeout = 60000 }):wait()
  end)
  if not ok then
    return false, tostring(done)
  end
  return done.code == 0, vim.trim((done.stdout or '') .. (done.stderr or ''))
end

function M.check()
  vim.health.start('Pallas LSP')
  if vim.fn.has('nvim-0.10') == 0 then
    vim.health.error('Neovim 0.10 or later is needed')
    return
  end
  local command = config.cmd()
  local program = command[1]
  if vim.fn.executable(program) == 0 then
    vim.health.error(program .. ' is not on the PATH', {
      'Install Pallas LSP with pip, or name its program: vim.g.pallas_lsp_cmd = { "/path/to/pallas-lsp", "serve" }',
    })
    return
  end
  local base = vim.list_slice(command, 1, #command - 1)
  local works, version = run(vim.list_extend(vim.list_slice(base), { '--version' }))
  if works then
    vim.health.ok(version .. ' at ' .. vim.fn.exepath(program))
  else
    vim.health.error(table.concat(base, ' ') .. ' --version failed: ' .. version)
  end
  if vim.lsp.enable ~= nil then
    if vim.lsp.is_enabled == nil or vim.lsp.is_enabled(config.name) then
      vim.health.ok("vim.lsp.enable('pallas_lsp') was called")
    else
      vim.health.warn("the server is not enabled", { "Add vim.lsp.enable('pallas_lsp') to your init.lua" })
    end
  end
  local clients = vim.lsp.get_clients({ name = config.name })
  if #clients == 0 then
    vim.health.info('no server runs; it starts with the first Python file')
  end
  for _, client in ipairs(clients) do
    vim.health.ok(('a server runs for %s'):format(client.config.root_dir or 'a single file'))
  end
  local doctor, text = run(vim.list_extend(vim.list_slice(base), { 'doctor' }))
  vim.health[doctor and 'ok' or 'warn']('pallas-lsp doctor:\n' .. text)
end

return M
