-- What starts the server and what it is told; used by lsp/pallas_lsp.lua and by the fallback for Neovim 0.10.
local M = {}

M.name = 'pallas_lsp'
M.filetypes = { 'python' }
M.root_markers = { 'pyproject.toml', 'setup.py', 'setup.cfg', '.git', '.hg' }

--- The latest `pallas/status` of each document, by URI.
M.status = {}

--- The command that starts the server: `vim.g.pallas_lsp_cmd`, else the program on the PATH.
function M.cmd()
  return vim.g.pallas_lsp_cmd or { 'pallas-lsp', 'serve' }
end

local function on_status(_, status)
  M.status[status.uri] = status
  vim.api.nvim_exec_autocmds('User', { pattern = 'PallasLspStatus', modeline = false, data = status })
end

function M.client()
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.experimental = { pallasStatus = true }
  return {
    name = M.name,
    cmd = M.cmd(),
    filetypes = M.filetypes,
    root_markers = M.root_markers,
    capabilities = capabilities,
    init_options = { commands = false },
    settings = { ['pallas-lsp'] = vim.g.pallas_lsp_settings or vim.empty_dict() },
    handlers = { ['pallas/status'] = on_status },
    commands = {
      ['pallas-lsp.explainRule'] = function(command)
        require('pallas_lsp').explain((command.arguments or {})[1])
      end,
    },
  }
end

return M
